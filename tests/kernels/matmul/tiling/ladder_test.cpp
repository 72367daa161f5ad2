// Every rung of the ladder against double, over sizes that no tile divides and such that all do.

#include <string>

#include "kernels/base/lab/closest.hpp"
#include "kernels/matmul/tiling/run/report.hpp"
#include "tests/catch.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::tiling;
using namespace tilestep::tests;

namespace {

constexpr int kSizes[] = {1, 7, 16, 33, 64, 100, 128, 257};

bool is_right(const std::vector<float>& c, const numeric::AllBounded& exact) {
  return c.size() == exact.value.size() && lab::compared(c, exact.value, exact.bound).ok();
}

/// All rungs on one shape, counted (bounds-checked kernels) and as they are timed.
void check_shape(simt::Device& device, const GemmShape& shape, bool counted) {
  const Matrices fp32 = make_matrices(shape, 7, false);
  const Matrices bf16 = make_matrices(shape, 7, true);
  const numeric::AllBounded exact = reference_product(shape, fp32, Adding::in_order);
  const numeric::AllBounded exact_bf16 = reference_product(shape, bf16, Adding::tensor_core);
  for (int i = 0; i < kVariants; ++i) {
    const auto variant = static_cast<Variant>(i);
    const bool tensor_core = variant == Variant::tensor_core;
    const CountedRun run =
        run_gemm(device, variant, kBestConfiguration, shape, tensor_core ? bf16 : fp32, counted);
    if (is_right(run.c, tensor_core ? exact_bf16 : exact)) continue;
    FAIL_CHECK(std::string(name_of(variant))
               << " is wrong for " << shape.m << " x " << shape.n << " x " << shape.k);
  }
}

/// What one block of the variant computes where any size is allowed.
const Configuration& any_size_configuration(const Kernels& kernels, Variant variant) {
  for (const Configuration& one : kernels.configurations(variant)) {
    if (one.any_size) return one;
  }
  throw Error("no configuration for any size");
}

}  // namespace

TEST_CASE("every rung is right for every pair of M and N, with K in turn", "[tiling]") {
  const auto device = test_device();
  int turn = 0;
  for (const int m : kSizes) {
    for (const int n : kSizes) {
      const int k = kSizes[turn++ % 8];
      if (tests::kFewShapes && m + n > 200) continue;
      check_shape(*device, {m, n, k}, false);
    }
  }
}

TEST_CASE("every rung is right for every K", "[tiling]") {
  const auto device = test_device();
  for (const int k : kSizes) {
    check_shape(*device, {33, 64, k}, false);
    check_shape(*device, {64, 100, k}, false);
    check_shape(*device, {7, 1, k}, false);
  }
}

TEST_CASE("every rung is right whatever the order of its threads", "[tiling]") {
  in_other_orders(2, [](simt::Device& device) {
    check_shape(device, {33, 70, 40}, false);
    check_shape(device, {64, 64, 96}, false);
    check_shape(device, {65, 17, 100}, false);
  });
}

TEST_CASE("every compiled configuration is right where its tiles divide", "[tiling]") {
  const auto device = test_device(simt::ThreadOrder::shuffled, 5);
  const GemmShape shape{256, 256, 192};
  for (const Variant variant :
       {Variant::shared_tile, Variant::register_tile_1d, Variant::register_tile_2d,
        Variant::vectorized, Variant::double_buffered, Variant::warp_tile, Variant::tensor_core}) {
    const bool tensor_core = variant == Variant::tensor_core;
    const Matrices matrices = make_matrices(shape, 3, tensor_core);
    const numeric::AllBounded exact =
        reference_product(shape, matrices, tensor_core ? Adding::tensor_core : Adding::in_order);
    const auto count = static_cast<int>(tiling::kernels_of(*device).configurations(variant).size());
    for (int configuration = 0; configuration < count; ++configuration) {
      CAPTURE(std::string(name_of(variant)), configuration);
      const auto run = run_gemm(*device, variant, configuration, shape, matrices, false);
      CHECK(is_right(run.c, exact));
    }
  }
}

TEST_CASE("counted loads equal an independent count, and counting changes nothing", "[tiling]") {
  const auto device = test_device();
  const Kernels& kernels = tiling::kernels_of(*device);
  for (const GemmShape shape :
       {GemmShape{64, 64, 64}, GemmShape{33, 100, 17}, GemmShape{129, 7, 40}, GemmShape{1, 1, 1}}) {
    check_shape(*device, shape, true);
    for (int i = 0; i < kVariants; ++i) {
      const auto variant = static_cast<Variant>(i);
      CAPTURE(std::string(name_of(variant)), shape.m, shape.n, shape.k);
      const Configuration& tile = any_size_configuration(kernels, variant);
      // Block by block: the rows and columns that it has, each over all of k.
      std::int64_t expected = 0;
      const bool untiled = variant == Variant::naive || variant == Variant::coalesced;
      const int down = untiled ? 1 : tile.tile_m;
      const int across = untiled ? 1 : tile.tile_n;
      for (int row = 0; row < shape.m; row += down) {
        for (int column = 0; column < shape.n; column += across) {
          const int rows = row + down < shape.m ? down : shape.m - row;
          const int columns = column + across < shape.n ? across : shape.n - column;
          expected += static_cast<std::int64_t>(rows + columns) * shape.k;
        }
      }
      const Matrices matrices = make_matrices(shape, 1, variant == Variant::tensor_core);
      CHECK(run_gemm(*device, variant, kBestConfiguration, shape, matrices, true).loads ==
            expected);
    }
  }
}

TEST_CASE("a shape that the kernels do not take is refused with a reason", "[tiling]") {
  const auto device = test_device();
  const Kernels& kernels = tiling::kernels_of(*device);
  const auto refused = [&](const GemmShape& shape, Variant variant, int configuration) {
    return error_of([&] { kernels.gemm(*device, variant, configuration, shape, {}); });
  };
  CHECK(contains(refused({0, 1, 1}, Variant::naive, 0), "m is 0"));
  CHECK(contains(refused({65536, 1, 65536}, Variant::naive, 0), "2147483647"));
  const Matrices matrices = make_matrices({100, 128, 128}, 1, false);
  const std::string sentence = error_of([&] {
    run_gemm(*device, Variant::warp_tile, 0, {100, 128, 128}, matrices, false);
  });
  CHECK(contains(sentence, "not a multiple"));
  if (device->info().backend == "emulated") {
    CHECK_FALSE(kernels.library(*device).available);
    CHECK(contains(kernels.library(*device).reason, "emulation"));
    CHECK_FALSE(kernels.resources(*device, Variant::warp_tile, 0).compiled);
  }
}
