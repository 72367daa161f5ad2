// Every variant against double, over shapes that no tile divides and such that all do; what each break does.

#include <string>

#include "kernels/base/lab/closest.hpp"
#include "kernels/base/simt/backends.hpp"
#include "kernels/matmul/hopper_gemm/run/problem.hpp"
#include "kernels/matmul/hopper_gemm/run/report.hpp"
#include "tests/catch.hpp"
#include "tests/part.hpp"
#include "tests/reports.hpp"

namespace tilestep::hopper_gemm {
const simt::KernelSet& kernels_emulated();
}

using namespace tilestep;
using namespace tilestep::hopper_gemm;
using namespace tilestep::tests;

namespace {

constexpr int kSizes[] = {64, 128, 136, 200, 256, 1000};

bool is_right(const std::vector<float>& c, const numeric::AllBounded& exact) {
  return c.size() == exact.value.size() && lab::compared(c, exact.value, exact.bound).ok();
}

std::vector<float> product(simt::Device& device, const Plan& plan, const Matrices& matrices) {
  const int tiles = plan.tiles_down * plan.tiles_across;
  std::vector<long long> clocks;
  return run_explained(device, {plan, Fault::none, 0, std::max(kSites, tiles * plan.k_tiles())},
                       matrices, clocks);
}

void check(simt::Device& device, const Params& params, Raster raster) {
  Plan plan = plan_of(params);
  plan.raster = raster;
  const Matrices matrices = make_matrices(plan, params.dtype, 5);
  const numeric::AllBounded exact = reference_product(plan, matrices, params.dtype);
  if (is_right(product(device, plan, matrices), exact)) return;
  FAIL_CHECK(std::string(name_of(params.variant))
             << " is wrong for " << params.m << " x " << params.n << " x " << params.k << ", tile "
             << name_of(params.tile) << ", " << params.stages << " stages, " << params.consumers
             << " consumers, swizzle " << name_of(params.swizzle) << ", " << name_of(params.dtype));
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
        params.variant = static_cast<Variant>(turn % 8);
        params.tile = static_cast<WarpgroupTile>(turn / 8 % 3);
        params.stages = 1 + turn % 5;
        params.consumers = 1 + turn / 3 % 2;
        params.swizzle = static_cast<Swizzle>(turn % 4);
        params.dtype = static_cast<DataType>(params.variant == Variant::mma_sync ? 0 : turn % 3);
        params.m = m;
        params.n = n;
        params.k = kSizes[(turn + turn / 6) % 6];
        if (kFewShapes && m + n > 300) continue;
        check(*device, params, static_cast<Raster>(turn / 5 % 3));
      }
    }
  }
}

namespace {

struct Order {
  simt::Completion completion;
  simt::ThreadOrder threads;  ///< descending: consumers before the producer
};
constexpr Order kOrders[] = {{simt::Completion::latest, simt::ThreadOrder::ascending},
                             {simt::Completion::early_copies, simt::ThreadOrder::ascending},
                             {simt::Completion::early_copies, simt::ThreadOrder::descending},
                             {simt::Completion::earliest, simt::ThreadOrder::descending}};

std::unique_ptr<simt::Device> watched(const Order& order, bool report) {
  static const simt::KernelEntry kTable[] = {{"hopper_gemm", kernels_emulated}};
  return simt::make_emulated_device(kTable, {.order = order.threads,
                                             .os_threads = 1,
                                             .completion = order.completion,
                                             .report_unsafe = report});
}

/// Two tiles of C a block, more k-tiles than stages.
Params busy(Variant variant) {
  Params params;
  params.variant = variant;
  params.tile = WarpgroupTile::n64;
  params.stages = 2;
  params.m = 512;
  params.n = 128;
  params.k = 320;
  return params;
}

/// What the emulator says of a fault, in the first order in which it says something.
std::string named(const Params& params, Fault fault, const Matrices& matrices) {
  for (const Order& order : kOrders) {
    std::vector<long long> clocks;
    try {
      run_explained(*watched(order, true), {plan_of(params), fault, 0, 1000}, matrices, clocks);
    } catch (const Error& error) {
      return error.what();
    }
  }
  return {};
}

}  // namespace

TEST_CASE("each wait, fence and release of the specialized kernels is named when it is left out",
          "[hopper_gemm]") {
  const Variant variant = GENERATE(Variant::persistent, Variant::ping_pong);
  const Params params = busy(variant);
  const Matrices matrices = make_matrices({params.m, params.n, params.k}, params.dtype, 5);
  CAPTURE(std::string(name_of(variant)));
  CHECK(named(params, Fault::none, matrices).empty());
  tests::Part part("what is left out of " + std::string(name_of(variant)), 4);
  for (const Fault fault :
       {Fault::skip_full_wait, Fault::skip_empty_wait, Fault::missing_fence, Fault::wrong_bytes,
        Fault::no_publish, Fault::no_meeting, Fault::no_release, Fault::early_release,
        Fault::no_product_wait, Fault::no_store_wait, Fault::no_store_meeting,
        Fault::no_write_meeting, Fault::no_last_meeting}) {
    if (part.skips()) continue;
    CAPTURE(static_cast<int>(fault));
    const std::string said = named(params, fault, matrices);
    CHECK_THAT(said, Catch::Contains("hopper_gemm"));
  }
}

TEST_CASE("each break of the knob changes the numbers in some order", "[hopper_gemm]") {
  for (const Break broken : all_of<Break>()) {
    if (broken == Break::none) continue;
    const Params params = busy(Variant::persistent);
    const GemmShape shape{params.m, params.n, params.k};
    const Matrices matrices = make_matrices(shape, params.dtype, 5);
    const numeric::AllBounded exact = reference_product(shape, matrices, params.dtype);
    bool changed = false;
    for (const Order& order : kOrders) {
      std::vector<long long> clocks;
      try {
        const auto c = run_explained(
            *watched(order, false), {plan_of(params), fault_of(broken), 0, 1000}, matrices, clocks);
        changed = changed || !is_right(c, exact);
      } catch (const Error& error) {
        UNSCOPED_INFO(error.what());
      }
    }
    CAPTURE(std::string(name_of(broken)));
    CHECK(changed);
  }
}

TEST_CASE("the compiled kernels equal double, whatever the order of their threads",
          "[hopper_gemm]") {
  in_other_orders(1, [](simt::Device& device) {
    const Kernels& kernels = hopper_gemm::kernels_of(device);
    const auto all = kernels.configurations();
    for (const GemmShape shape : {GemmShape{200, 200, 256}, GemmShape{64, 136, 128}}) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        CAPTURE(std::string(all[i].name), shape.m, shape.n, shape.k);
        Problem problem(device, shape, all[i].dtype, Data::random, all[i].block_scaled);
        CHECK(kernel_on(problem, static_cast<int>(i)).verify().ok());
      }
    }
  });
}

TEST_CASE("the parts of a multiprocessor that the bench times run under emulation",
          "[hopper_gemm]") {
  // Every wait of theirs is watched; what they multiply is not looked at.
  const auto device = watched({simt::Completion::latest, simt::ThreadOrder::ascending}, true);
  const Kernels& kernels = hopper_gemm::kernels_of(*device);
  constexpr int kBlocks = 2, kColumns = 64, kProducts = 9;
  const std::vector<std::uint16_t> ones(kBlocks * 128 * 256, 0x3F80);
  const simt::Buffer<std::uint16_t> a(*device, ones);
  const simt::Buffer<std::uint16_t> b(*device, kBlocks * kColumns * 256);
  const simt::Buffer<std::uint16_t> stage(*device, (128 + kColumns) * 64);
  simt::Buffer<long long> cycles(*device, kBlocks);
  cycles.fill(0);
  CHECK_NOTHROW(kernels.resident(*device, kColumns, kProducts, stage.span(), cycles.span()));
  CHECK(cycles.download()[1] > 0);
  cycles.fill(0);
  CHECK_NOTHROW(kernels.fed(*device, kColumns, kProducts, a.span(), b.span(), cycles.span()));
  CHECK(cycles.download()[1] > 0);
}

TEST_CASE("an 8 x 8 matrix takes as many passes as its rows meet in the same banks",
          "[hopper_gemm]") {
  const auto device = test_device();
  simt::Buffer<int> places(*device, 32);
  for (const bool stores : {false, true}) {
    for (const int row_bytes : {32, 64, 128}) {
      for (const bool swizzled : {false, true}) {
        hopper_gemm::kernels_of(*device).access_matrices(*device, stores, row_bytes, swizzled, 2,
                                                         places.span());
        CAPTURE(stores, row_bytes, swizzled);
        CHECK(traced_passes(places.download()) == matrix_passes(row_bytes, swizzled));
      }
    }
  }
}
