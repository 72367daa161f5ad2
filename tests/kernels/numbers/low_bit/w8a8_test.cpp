// W8A8 against sums in double of the codes and scales that the quantizing kernel wrote.
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/numeric/small_float.hpp"
#include "kernels/catalog.hpp"
#include "kernels/numbers/low_bit/bench/bench.hpp"
#include "kernels/numbers/low_bit/reference.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"
#include "tests/kernels/device.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::low_bit;
using namespace tilestep::tests;

namespace {

enum class EightNumbers {
  normal,
  whole,  ///< from −127 to 127, both in each row: INT8's scales are powers of two, and all is exact
  extremes,  ///< ±1: codes are the largest, and nothing cancels where signs agree
};

/// W or X in 8 bits on a device, as `quantize` writes it.
class InEightBits {
 public:
  InEightBits(simt::Device& device, Format format, const Matrix& matrix, EightNumbers numbers,
              std::mt19937& random)
      : format_(format),
        columns_(static_cast<std::size_t>(matrix.columns)),
        codes_(device, numeric::elements_of(matrix.rows, matrix.columns)),
        scales_(device, static_cast<std::size_t>(matrix.rows * scale_bytes(format))) {
    std::normal_distribution<double> normal;
    std::vector<std::uint16_t> bits;
    for (std::size_t i = 0; i < codes_.span().count; ++i) {
      const std::size_t at = i % columns_;
      double value = normal(random);
      if (numbers == EightNumbers::whole) {
        value =
            (at < 2 ? (at == 0 ? 127.0 : -127.0) : static_cast<double>(random() % 255) - 127) / 64;
      }
      // In one row of three all have the same sign: the largest sum there is.
      if (numbers == EightNumbers::extremes)
        value = i / columns_ % 3 == 0 || random() % 2 == 0 ? 1 : -1;
      bits.push_back(static_cast<std::uint16_t>(
          numeric::encode(numeric::kBf16, numeric::round_to(numeric::kBf16, value))));
    }
    const simt::Buffer<std::uint16_t> from(device, bits);
    simt::Buffer<Range> ranges(device, static_cast<std::size_t>(matrix.rows) + 1);
    const auto& kernels = kernels_of(device);
    kernels.ranges(device, matrix, from.span(), ranges.span());
    kernels.quantize(device, matrix, from.span(),
                     {format, Group::row, codes_.span(), scales_.span(), {}, ranges.span()});
    all_codes_ = codes_.download();
    all_scales_ = scales_.download();
  }

  EightBits span() const { return {format_, codes_.span(), scales_.span()}; }
  std::vector<std::uint8_t> row(std::size_t row) const {
    const auto first = all_codes_.begin() + static_cast<std::ptrdiff_t>(row * columns_);
    return {first, first + static_cast<std::ptrdiff_t>(columns_)};
  }
  double scale(std::size_t row) const { return row_scale(format_, all_scales_, row); }

 private:
  Format format_;
  std::size_t columns_;
  simt::Buffer<std::uint8_t> codes_, scales_;
  std::vector<std::uint8_t> all_codes_, all_scales_;
};

struct EightCase {
  LinearPlan plan;
  Matrix matrix;
  int batch;
};

/// The first element of Y that is not what it should be; "": none. Exact: to the last bit of BF16.
std::string eight_complaint(simt::Device& device, Format format, const EightCase& one,
                            EightNumbers numbers) {
  std::mt19937 random(11);
  const InEightBits w(device, format, one.matrix, numbers, random);
  const InEightBits x(device, format, {one.batch, one.matrix.columns}, numbers, random);
  auto y = lab::unwritten<std::uint16_t>(device, numeric::elements_of(one.batch, one.matrix.rows));
  kernels_of(device).linear_eight(device, one.matrix, w.span(), one.plan, one.batch, x.span(),
                                  y.span());
  const std::vector<std::uint16_t> got = y.download();
  const double unit = std::ldexp(1, device.info().compute_capability == 0 ? -23 : -13);
  const bool exact = format == Format::int8 && numbers == EightNumbers::whole;
  const auto rows = static_cast<std::size_t>(one.matrix.rows);
  for (std::size_t n = 0; n < static_cast<std::size_t>(one.batch); ++n) {
    for (std::size_t row = 0; row < rows; ++row) {
      const double element = numeric::decode(numeric::kBf16, got[n * rows + row]);
      numeric::Bounded want =
          expected_product(format, w.row(row), x.row(n), w.scale(row) * x.scale(n), unit);
      if (exact) want = {numeric::round_to(numeric::kBf16, want.value), 0};
      if (std::abs(element - want.value) <= want.bound) continue;
      return fmt::format("row {} of X, {} of W: {}, not {}", n, row, element, want.value);
    }
  }
  return "";
}

// Whole tiles and parts of one, more stages than a ring has and fewer, each number of blocks that share a tile. 256: second
// blocks of a cluster without rows, tiles without end and beginning in one block, an odd number of rows of X.
constexpr EightCase kEightCases[] = {
    {{16, 1}, {128, 256}, 1},   {{16, 2}, {128, 512}, 5},   {{16, 4}, {256, 512}, 16},
    {{16, 8}, {128, 1024}, 7},  {{32, 1}, {128, 1024}, 33}, {{32, 4}, {128, 512}, 9},
    {{64, 2}, {128, 512}, 70},  {{64, 8}, {128, 1024}, 64}, {{128, 1}, {128, 256}, 129},
    {{128, 4}, {256, 512}, 3},  {{128, 8}, {128, 1024}, 1}, {{256, 1}, {128, 256}, 1},
    {{256, 1}, {384, 512}, 40}, {{256, 1}, {256, 768}, 257}};

}  // namespace

TEST_CASE("W8A8: Y is X · W of the codes and scales, in every plan and order", "[low_bit]") {
  Part part("W8A8", 8);
  for (const simt::EmulationOptions& order :
       {simt::EmulationOptions{},
        simt::EmulationOptions{.order = simt::ThreadOrder::shuffled,
        .seed = 5,
        .completion = simt::Completion::seeded},
        simt::EmulationOptions{.order = simt::ThreadOrder::descending,
        .completion = simt::Completion::early_copies}}) {
    const auto device = device_under_test(emulated_kernels(), order);
    for (const Format format : {Format::int8, Format::fp8_e4m3}) {
      for (const EightCase& one : kEightCases) {
        if (part.skips()) continue;
        INFO(name_of(format) << ", " << one.plan.tile << " rows of X, " << one.plan.splits
                             << " blocks, batch " << one.batch);
        CHECK(eight_complaint(*device, format, one, EightNumbers::normal) == "");
      }
    }
  }
}

TEST_CASE("W8A8: the largest codes and sums, and INT8 to the last bit", "[low_bit]") {
  const auto device = device_under_test(emulated_kernels());
  for (const EightCase& one :
       {EightCase{{32, 2}, {128, 512}, 20}, EightCase{{256, 1}, {128, 512}, 20}}) {
    CHECK(eight_complaint(*device, Format::int8, one, EightNumbers::whole) == "");
    CHECK(eight_complaint(*device, Format::int8, one, EightNumbers::extremes) == "");
    CHECK(eight_complaint(*device, Format::fp8_e4m3, one, EightNumbers::extremes) == "");
  }
}

TEST_CASE("W8A8: one launch's tiles follow each other in a block", "[low_bit]") {
  // More tiles than the device has clusters.
  const auto device =
      device_under_test(emulated_kernels(), simt::EmulationOptions{.os_threads = 2});
  CHECK(eight_complaint(*device, Format::int8, {{256, 1}, {384, 768}, 300}, EightNumbers::normal) ==
        "");
}

TEST_CASE("W8A8: shapes, formats and plans that there are not are refused by name", "[low_bit]") {
  const auto device = device_under_test(emulated_kernels());
  const auto refused = [&](Format format, const EightCase& one, const char* words) {
    const std::string said =
        tests::error_of([&] { eight_complaint(*device, format, one, EightNumbers::normal); });
    INFO(said);
    CHECK(contains(said, words));
  };
  refused(Format::int8, {{48, 1}, {128, 256}, 2}, "allowed: 16, 32, 64, 128, 256");
  refused(Format::int8, {{0, 8}, {128, 256}, 2}, "allowed: 16, 32, 64, 128, 256");
  refused(Format::int8, {{16, 3}, {128, 256}, 2}, "allowed: 1, 2, 4, 8");
  refused(Format::int8, {{16, 4}, {128, 256}, 2}, "multiples of 4");
  refused(Format::int8, {{256, 2}, {128, 256}, 2}, "a tile of 256 is 2; allowed: 1–1");
  refused(Format::int8, {{16, 1}, {96, 256}, 2}, "multiples of 128");
  refused(Format::fp8_e5m2, {{16, 1}, {128, 256}, 2}, "allowed: int8, fp8-e4m3");
}

TEST_CASE("the bench of few bits times W8A8 beside W4A16", "[low_bit]") {
  const BenchSizes sizes{.matrix = {16, 256},
                         .layers = {{128, 256}},
                         .alike = 1,
                         .batches = {2},
                         .square = 256,
                         .unfused = {1}};
  TimedEmulation device;
  const lab::Report report = bench_report(device, unwatched, sizes);
  check_holds(report);
  CHECK(table_in(report, "w8a8").rows.size() == 2);
  CHECK(contains(table_in(report, "w8a8").to_csv(), "none: "));  // beside no library
  const lab::Measurement* rate = report.measurement("w8a8_fp8_rate", "128 × 256 2");
  REQUIRE(rate != nullptr);
  CHECK(rate->value == Approx(2.0 * 2 * 128 * 256 / 1e9));
  device.pretend().compute_capability = 80;
  const lab::Report without = bench_report(device, unwatched, sizes);
  CHECK(without.table("w8a8") == nullptr);
  CHECK(contains(without.summary, "W8A8 is left out: it needs compute capability 9.0"));
}
