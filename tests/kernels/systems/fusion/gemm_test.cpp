// Products with epilogues against the lesson hopper-gemm's plain product with a second launch, bit for bit, and both
// against double.

#include "kernels/base/numeric/index.hpp"
#include "kernels/systems/fusion/gemm/problem.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/device.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::fusion;
using tests::contains;

namespace {

simt::KernelEntry kGemmTable[] = {{"hopper_gemm", hopper_gemm::kernels_emulated},
                                  {"fusion", fusion::kernels_emulated}};

std::unique_ptr<simt::Device> gemm_device(simt::ThreadOrder order) {
  simt::EmulationOptions options;
  options.order = order;
  return tests::device_under_test(kGemmTable, options);
}

/// C's columns as the second launch takes them: gates, which lie eight before eight values, before all values.
void part_gates(simt::Buffer<std::uint16_t>& c, int rows, int columns) {
  const std::vector<std::uint16_t> from = c.download();
  std::vector<std::uint16_t> to(from.size());
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const int at = column / 16 * 8 + column % 8 + (column % 16 < 8 ? 0 : columns / 2);
      to[numeric::index_of(row, at, columns)] = from[numeric::index_of(row, column, columns)];
    }
  }
  c.upload(to);
}

void check_epilogue(simt::Device& device, Epilogue epilogue, TileSize size, int m, int n, int k) {
  INFO(name_of(epilogue) << ", " << m << " x " << n << " x " << k);
  Product product(device, {epilogue, n, k}, m);
  product.out.fill(0xFF);
  product.fuse(size);
  device.synchronize();
  const std::vector<std::uint16_t> fused = product.out.download();
  CHECK(product.compared(true).ok());
  CHECK(product.plain(size).verify().ok());
  if (epilogue == Epilogue::swiglu) part_gates(product.gemm.c, m, n);
  product.out.fill(0xFF);
  product.follow(4);
  device.synchronize();
  const std::vector<std::uint16_t> apart = product.out.download();
  std::size_t differ = 0;  // a failure prints no more than that
  for (std::size_t i = 0; i < fused.size(); ++i) differ += fused[i] != apart[i];
  CHECK(differ == 0);
}

}  // namespace

TEST_CASE("Epilogues: fused equals unfused bit for bit, and both double", "[fusion]") {
  for (const auto order :
       {simt::ThreadOrder::shuffled, simt::ThreadOrder::ascending, simt::ThreadOrder::descending}) {
    const auto device = gemm_device(order);
    for (const Epilogue epilogue : {Epilogue::bias, Epilogue::residual, Epilogue::swiglu}) {
      for (const TileSize size : {TileSize::narrow, TileSize::small, TileSize::large}) {
        if (size == TileSize::narrow && epilogue == Epilogue::swiglu) continue;
        check_epilogue(*device, epilogue, size, 7, 48, 48);
        if (order != simt::ThreadOrder::shuffled) continue;
        check_epilogue(*device, epilogue, size, 1, 16, 16);
        check_epilogue(*device, epilogue, size, 64, 272, 80);
        check_epilogue(*device, epilogue, size, 127, 528, 336);
        check_epilogue(*device, epilogue, size, 260, 144, 64);
      }
      if (order != simt::ThreadOrder::shuffled) continue;
      // More tiles than multiprocessors: what is loaded ahead belongs to the next tile.
      const int tiles = 2 * device->info().multiprocessors + 1;
      check_epilogue(*device, epilogue, TileSize::small, 64 * tiles, 128, 16);
    }
  }
}

TEST_CASE("Epilogues: SwiGLU in two launches has its gates before its values", "[fusion]") {
  const auto device = gemm_device(simt::ThreadOrder::ascending);
  Product product(*device, {Epilogue::swiglu, 96, 64}, 3);
  product.plain(TileSize::small).launch();
  product.follow(2);
  device->synchronize();
  CHECK(product.compared(false).ok());
  CHECK_FALSE(product.compared(true).ok());
}

TEST_CASE("Epilogues: shapes that are not allowed are refused in words", "[fusion]") {
  const auto device = gemm_device(simt::ThreadOrder::ascending);
  const auto refused = [&](const ProductShape& shape, Epilogue epilogue = Epilogue::bias) {
    return tests::error_of([&] {
      fusion::kernels_of(*device).multiply(*device, epilogue, TileSize::narrow, shape, {});
    });
  };
  CHECK(contains(refused({0, 16, 8}), "rows of X is 0"));
  CHECK(contains(refused({1, 24, 8}), "multiples of 16"));
  CHECK(contains(refused({1, 16, 12}), "multiples of 8"));
  CHECK(contains(refused({1, 16, 8}, Epilogue::swiglu), "allowed: large, small"));
}
