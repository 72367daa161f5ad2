#include "kernels/matmul/tiling/bench/bench.hpp"

#include <cmath>

#include "tests/kernels/base/lab/timed_emulation.hpp"

using namespace tilestep;
using namespace tilestep::tiling;
using namespace tilestep::tests;

namespace {

/// The emulated kernels and a library that multiplies with one of them; or, broken, leaves out the
/// last element.
class WithLibrary final : public Kernels {
 public:
  bool broken = false;

  std::span<const Configuration> configurations(Variant variant) const override {
    return kernels_.configurations(variant);
  }
  const Configuration& shown(Variant variant) const override { return kernels_.shown(variant); }
  void gemm(simt::Device& device, Variant variant, int configuration, const GemmShape& shape,
            const Operands& operands, const simt::Tape&) const override {
    kernels_.gemm(device, variant, configuration, shape, operands);
    if (broken && variant == Variant::vectorized) *last(shape, operands.c.data) = std::nanf("");
  }
  void gemm_bf16(simt::Device& device, int configuration, const GemmShape& shape,
                 const OperandsBf16& operands, const simt::Tape&) const override {
    kernels_.gemm_bf16(device, configuration, shape, operands);
  }
  Resources resources(simt::Device& device, Variant variant, int configuration) const override {
    return kernels_.resources(device, variant, configuration);
  }
  void picture(simt::Device&, const PictureRun&, const GemmShape&, const Operands&,
               const simt::Tape&) const override {}
  LibraryStatus library(simt::Device&) const override { return {true, "multiplies", ""}; }
  void library_gemm(simt::Device& device, Precision precision, const GemmShape& s, const void* a,
                    const void* b, float* c) const override {
    const auto m = static_cast<std::size_t>(s.m), n = static_cast<std::size_t>(s.n);
    const auto k = static_cast<std::size_t>(s.k);
    if (precision == Precision::bf16) {
      using Bits = const std::uint16_t*;
      kernels_.gemm_bf16(
          device, kBestConfiguration, s,
          {{static_cast<Bits>(a), m * k}, {static_cast<Bits>(b), k * n}, {c, m * n}, {}});
    } else {
      using Floats = const float*;
      kernels_.gemm(
          device, Variant::shared_tile, kBestConfiguration, s,
          {{static_cast<Floats>(a), m * k}, {static_cast<Floats>(b), k * n}, {c, m * n}, {}});
    }
  }

 private:
  static float* last(const GemmShape& shape, float* c) { return c + shape.m * shape.n - 1; }
  const Kernels& kernels_ = static_cast<const Kernels&>(kernels_emulated());
};

const BenchSizes kTiny{{64, 32}, 32, {{1, 1, 1}, {33, 7, 20}}, 1 << 16};

}  // namespace

TEST_CASE("the bench of tiling has all that was recorded", "[tiling]") {
  TimedKernels<WithLibrary> gpu;
  gpu.device.pretend().l2_bytes = 1 << 16;
  gpu.device.counter = [](const std::string& metric) {
    return metric.ends_with("_elapsed") ? 50.0 : 2048.0;
  };
  const lab::Report report = bench_report(gpu, unwatched, kTiny);
  check_has_what_was_recorded(report, kLessonId, true);
  check_holds(report);
  CHECK(report.measurement("gemm_rate")->detail.starts_with("64³"));
  CHECK(report.measurement("l2_copy_bandwidth") != nullptr);
  // A library and each rung at both sizes; the library's two ways are one row.
  CHECK(report.table("ladder_measured")->rows.size() == 2 * (kVariants + 2));

  // Half of the cycles have a wavefront: shared memory allows twice the rate.
  const lab::Table& ceilings = *report.table("shared_ceiling");
  CHECK(ceilings.rows.size() == kVariants - 2);
  const double rate = number_in(ceilings, "shared-tile", "tflops");
  CHECK(number_in(ceilings, "shared-tile", "ceiling") == Approx(2 * rate));
  CHECK(number_in(ceilings, "shared-tile", "shared_bytes") ==
        Approx(128.0 * 2048 / (2.0 * 32 * 32 * 32)));
  CHECK(report.measurement("shared_ceiling", "naive") == nullptr);
  const lab::Table& counters = *report.table("counters");
  CHECK(number_in(counters, "coalesced", "asked_bytes") ==
        Approx((4.0 * 2 * 32 * 32 * 32 + 4.0 * 32 * 32) * 1e-6));
  CHECK(number_in(counters, "shared-tile", "asked_bytes") <
        number_in(counters, "coalesced", "asked_bytes"));
}

TEST_CASE("tiling's quick bench has the ladder and the roofs", "[tiling]") {
  TimedKernels<WithLibrary> gpu;
  BenchSizes sizes = kTiny;
  sizes.edges = {32};
  sizes.quick = true;
  const lab::Report report = bench_report(gpu, unwatched, sizes);
  check_quick(report, {"counters", "shared_ceiling"});
  CHECK(report.table("ladder_measured")->rows.size() == kVariants + 2);
  CHECK(report.table("roofline") != nullptr);
  CHECK(BenchSizes::of_quick().edges.size() == 1);
}

TEST_CASE("the bench of tiling does not time a rung that is wrong", "[tiling]") {
  TimedKernels<WithLibrary> gpu;
  gpu.kernels.broken = true;
  const lab::Report report = bench_report(gpu, unwatched, kTiny);
  CHECK(report.measurement("gemm_rate", "vectorized") == nullptr);
  CHECK(report.measurement("gemm_rate", "warp-tile") != nullptr);
  check_holds(report, [](std::string_view id) { return contains(id, "vectorized"); });
}

TEST_CASE("tiled attention stands under DRAM's roof and under L2's", "[tiling]") {
  const auto points = attention_points({4, 6, 900});
  REQUIRE(points.size() == 3);
  CHECK(points[0].bound == "DRAM");
  CHECK(points[0].tflops == Approx(4 * points[0].flop_per_byte));
  // K and V once from DRAM: 4·L²·d / (8·L·d) = L / 2.
  CHECK(points[1].flop_per_byte == Approx(4096));
  CHECK(points[1].bound == "compute");
  CHECK(points[1].tflops == 900);
  CHECK(points[2].bound == "L2");
  CHECK(points[2].flop_per_byte == Approx(126.03).epsilon(0.001));
  CHECK(points[2].tflops == Approx(6 * points[2].flop_per_byte));
  CHECK(attention_points({4, 0, 900}).size() == 2);
}
