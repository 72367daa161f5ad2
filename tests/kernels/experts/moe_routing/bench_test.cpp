// The bench of the grouped product where there is no GPU: its layouts, its checks and what it makes
// of a recording are real, the times are pretended.

#include "kernels/experts/moe_routing/bench/bench.hpp"

#include <cmath>
#include <set>

#include "kernels/experts/moe_routing/bench/problem.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"

using namespace tilestep;
using namespace tilestep::moe_routing;
using namespace tilestep::tests;

namespace {

constexpr BenchSize kTiny = {90, 64, 128, {3, 5}};

/// The emulated kernels with two configurations, and a library that multiplies in double. A
/// configuration may be broken: it then leaves the last row of y alone.
class PretendingKernels final : public Kernels {
 public:
  bool broken = false;

  void route(simt::Device&, const RouteShape&, const RouteArrays&) const override {}
  void permute(simt::Device&, const RouteShape&, int, simt::Span<const std::uint16_t>,
               simt::Span<const int>, simt::Span<std::uint16_t>) const override {}
  int multiply(simt::Device&, const GroupedShape&, const GroupedArrays&,
               const simt::Tape&) const override {
    return 0;
  }
  void combine(simt::Device&, const RouteShape&, int, simt::Span<const float>,
               simt::Span<const int>, simt::Span<const float>, simt::Span<float>) const override {}
  std::span<const Configuration> configurations() const override {
    return kernels_.configurations().subspan(2, 2);
  }
  void grouped_gemm(simt::Device& device, int configuration, const GroupedShape& shape,
                    const GroupedArrays& arrays, const simt::Tape& tape) const override {
    kernels_.grouped_gemm(device, configuration + 2, shape, arrays, tape);
    const int rows = shape.scheme == Scheme::packed ? shape.slots : 0;
    if (!broken || rows == 0) return;
    float* last = arrays.y.data + static_cast<std::size_t>((rows - 1) * shape.width);
    std::fill(last, last + shape.width, std::nanf(""));
  }
  LibraryStatus library(simt::Device&) const override { return {true, "loops", ""}; }
  void library_loop(simt::Device&, const GroupedShape& shape, const GroupedArrays& arrays,
                    std::span<const int> first_slot, std::span<const int> kept) const override {
    const auto hidden = static_cast<std::size_t>(shape.hidden);
    const auto width = static_cast<std::size_t>(shape.width);
    for (std::size_t e = 0; e < kept.size(); ++e) {
      for (int row = 0; row < kept[e]; ++row) {
        const auto slot = static_cast<std::size_t>(first_slot[e] + row);
        for (std::size_t column = 0; column < width; ++column) {
          const numeric::Bounded sum = grouped_element(
              {arrays.weights.data + (e * width + column) * hidden, hidden},
              {arrays.x.data + slot * hidden, hidden}, numeric::Adding::tensor_core);
          arrays.y.data[slot * width + column] = static_cast<float>(sum.value);
        }
      }
    }
  }

 private:
  const Kernels& kernels_ = static_cast<const Kernels&>(kernels_emulated());
};

/// Has the older of the two names of a counter alone.
struct Pretended : TimedKernels<PretendingKernels> {
  Pretended() {
    device.pretend().memory_bytes = 1 << 20;
    device.counter = [](const std::string& metric) {
      if (metric == "sm__inst_executed_pipe_tensor.sum") throw Error("no such counter");
      return 64.0;
    };
  }
};

}  // namespace

TEST_CASE("the bench has a rate for every scheme, routing and number of experts", "[moe_gemm]") {
  Pretended gpu;
  const lab::Report report = bench_report(gpu, unwatched, kTiny);
  check_has_what_was_recorded(report, kLessonId, false, "tensor_pipe");
  check_holds(report);
  for (const lab::Check& check : report.checks) CHECK(check.max_error <= check.tolerance);
  CHECK(report.checks.size() == 4);
  const lab::Table& rates = table_in(report, "moe_rate");
  REQUIRE(rates.rows.size() == 2 * 5 * 3);
  const double tflops = 2.0 * 90 * 64 * 128 * 1e-9;
  for (std::size_t row = 0; row < rates.rows.size(); ++row) {
    CHECK(number_in(rates, row, "tflops") == Approx(tflops));
    CHECK(number_in(rates, row, "of_cublas") == Approx(1));
    CHECK(number_in(rates, row, "slots") >= 90);
  }
  // Every row of the ladder has a rate and a fraction under its name, which the command line asks.
  const lab::Table& ladder = table_in(report, "ladder");
  CHECK(ladder.rows.size() == 6);
  for (std::size_t row = 0; row < ladder.rows.size(); ++row) {
    CHECK(report.measurement("moe_rate", ladder.text(row, 0)) != nullptr);
    CHECK(report.measurement("fraction_of_cublas", ladder.text(row, 0)) != nullptr);
  }
  CHECK(report.measurement("skew_keeps", "packed, skewed 1") != nullptr);
  CHECK(report.measurement("library_bf16", "loops") != nullptr);
  const lab::Measurement* busy = report.measurement("busy_share", "packed, skewed 1");
  REQUIRE(busy != nullptr);
  CHECK(busy->value > 0);
  CHECK(busy->value <= 100);
  CHECK(lab::to_json(report).dump().size() < 200000);
  const lab::Table& counters = table_in(report, "moe_counters");
  REQUIRE(counters.rows.size() == 6);
  CHECK(number_in(counters, 0, "tensor_instructions") == 64);
  CHECK(number_in(counters, 0, "tensor_pipe") == 64);
}

TEST_CASE("the quick bench has the two routings that are compared", "[moe_gemm]") {
  Pretended gpu;
  BenchSize size = kTiny;
  size.quick = true;
  const lab::Report report = bench_report(gpu, unwatched, size);
  check_quick(report, {"moe_counters"});
  CHECK(table_in(report, "moe_rate").rows.size() == 2 * 3);
  CHECK(report.measurement("skew_keeps", "packed, skewed 1") != nullptr);
}

TEST_CASE("the bench leaves out what does not fit in memory", "[moe_gemm]") {
  Pretended gpu;
  // Room for the weights and the packed tokens, not for five times the tokens.
  const double packed = 90.0 * (2 * 64 + 4 * 128) + 5.0 * 64 * 128 * 2;
  gpu.device.pretend().memory_bytes = static_cast<std::size_t>(packed * 1.3);
  const lab::Report report = bench_report(gpu, unwatched, kTiny);
  CHECK(report.measurement("moe_rate", "packed, one-hot, 5 experts") != nullptr);
  CHECK(report.measurement("moe_rate", "padded-to-capacity, one-hot, 5 experts") == nullptr);
  CHECK(report.table("moe_rate")->rows.size() == 30);
}

TEST_CASE("the bench's checks see a row that was not computed", "[moe_gemm]") {
  Pretended gpu;
  gpu.kernels.broken = true;
  const lab::Report report = bench_report(gpu, unwatched, kTiny);
  check_holds(report, [](std::string_view id) { return id == "grouped_packed"; });
}

TEST_CASE("runs of one expert become one bar, and lanes are thinned out evenly", "[moe_gemm]") {
  std::vector<RanTile> tiles;
  for (int lane = 0; lane < 10; ++lane) {
    for (int i = 0; i < 6; ++i) {
      tiles.push_back({lane, i / 2, 10.0 * i, 10.0 * i + 9});
    }
  }
  CHECK(busy_share(tiles) == Approx(54.0 / 59));
  const auto all = runs_of_experts(tiles, 30);
  REQUIRE(all.size() == 30);
  CHECK(all[0].begin_us == 0);
  CHECK(all[0].end_us == 19);
  CHECK(all[1].expert == 1);
  const auto some = runs_of_experts(tiles, 12);
  CHECK(some.size() == 12);
  std::set<int> lanes;
  for (const RanTile& run : some) lanes.insert(run.lane);
  CHECK(lanes == std::set<int>{0, 3, 6, 9});
}
