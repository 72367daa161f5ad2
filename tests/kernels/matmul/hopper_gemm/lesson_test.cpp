// Every variant against double, over shapes that no tile divides and such that all do; what each break does.

#include <string>

#include "kernels/base/lab/closest.hpp"
#include "kernels/matmul/hopper_gemm/report.hpp"
#include "tests/catch.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::hopper_gemm;
using namespace tilestep::tests;

namespace {

constexpr int kSizes[] = {64, 128, 136, 200, 256, 1000};

bool is_right(const std::vector<float>& c, const numeric::AllBounded& exact) {
  return c.size() == exact.value.size() && lab::compared(c, exact.value, exact.bound).ok();
}

std::vector<float> product(simt::Device& device, const Params& params, const Matrices& matrices) {
  const Plan plan = plan_of(params);
  const GemmShape shape{params.m, params.n, params.k};
  const int tiles = plan.tiles_down * plan.tiles_across;
  std::vector<long long> clocks;
  return run_explained(device,
                       {params.variant, params.dtype, params.raster, params.broken, plan, shape, 0,
                        std::max(kSites, tiles * plan.k_tiles)},
                       matrices, clocks);
}

void check(simt::Device& device, const Params& params) {
  const GemmShape shape{params.m, params.n, params.k};
  const Matrices matrices = make_matrices(shape, params.dtype, Data::random, 5);
  const numeric::AllBounded exact = reference_product(shape, matrices, params.dtype);
  if (is_right(product(device, params, matrices), exact)) return;
  FAIL_CHECK(std::string(name_of(params.variant))
             << " is wrong for " << params.m << " x " << params.n << " x " << params.k << ", tile "
             << name_of(params.tile) << ", " << params.stages << " stages, " << params.consumers
             << " consumers, swizzle " << name_of(params.swizzle) << ", "
             << name_of(params.dtype));
}

}  // namespace

TEST_CASE("every variant is right for every pair of sizes", "[hopper_gemm]") {
  const auto device = test_device();
  int turn = 0;
  for (const int m : kSizes) {
    for (const int n : kSizes) {
      // The third size and the knobs in turn: every two of them meet.
      for (int i = 0; i < 2; ++i, ++turn) {
        Params params;
        params.variant = static_cast<Variant>(turn % 7);
        params.tile = static_cast<WarpgroupTile>(turn / 7 % 3);
        params.stages = 1 + turn % 5;
        params.consumers = 1 + turn / 3 % 2;
        params.cluster = 1 + turn / 2 % 2;
        params.swizzle = static_cast<Swizzle>(turn % 4);
        params.raster = static_cast<Raster>(turn / 5 % 3);
        params.dtype = static_cast<DataType>(params.variant == Variant::mma_sync ? 0 : turn % 3);
        params.m = m;
        params.n = n;
        params.k = kSizes[(turn + turn / 6) % 6];
        if (kFewShapes && m + n > 300) continue;
        check(*device, params);
      }
    }
  }
}
