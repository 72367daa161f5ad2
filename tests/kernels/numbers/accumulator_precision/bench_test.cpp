#include "kernels/numbers/accumulator_precision/bench.hpp"

#include "kernels/numbers/accumulator_precision/hopper.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"
#include "tests/kernels/numbers/accumulator_precision/support.hpp"

using namespace tilestep;
using namespace tilestep::accumulator_precision;

namespace {

/// The emulated kernels, and tensor cores in software: wgmma-fp8 as the model has it, the others
/// exact.
class SoftwareTensorCores final : public Kernels {
 public:
  bool broken = false;  ///< the BF16 products are a little off

  void sums(simt::Device& device, const SumShape& shape, const SumMethod& method,
            simt::Span<const float> terms, simt::Span<float> sums) const override {
    kernels_.sums(device, shape, method, terms, sums);
  }
  void sums_recorded(simt::Device&, const SumShape&, const SumMethod&, simt::Span<const float>,
                     simt::Span<float>, int, const simt::Tape&) const override {}
  void scaled_gemm(simt::Device& device, const GemmShape& shape,
                   const ScaledOperands& operands) const override {
    kernels_.scaled_gemm(device, shape, operands);
  }
  void exact_gemm(simt::Device& device, const GemmShape& shape, simt::Span<const std::uint8_t> a,
                  simt::Span<const std::uint8_t> b, simt::Span<double> c) const override {
    kernels_.exact_gemm(device, shape, a, b, c);
  }
  void widen(simt::Device& device, simt::Span<const std::uint8_t> bits,
             simt::Span<std::uint16_t> fp16, simt::Span<std::uint16_t> bf16) const override {
    kernels_.widen(device, bits, fp16, bf16);
  }
  void tensor_core_gemm(simt::Device& device, GemmVariant variant, const GemmShape& s,
                        const GemmOperands& operands) const override {
    const auto k = static_cast<std::size_t>(s.k), n = static_cast<std::size_t>(s.n);
    simt::Buffer<double> exact(device, operands.c.count);
    if (variant != GemmVariant::wgmma_fp8) {
      kernels_.exact_gemm(device, s, operands.a, operands.b, exact.span());
    }
    for (std::size_t i = 0; i < operands.c.count; ++i) {
      operands.c.data[i] =
          variant == GemmVariant::wgmma_fp8
              ? hopper_fp8_dot({operands.a.data + i / n * k, k}, {operands.b.data + i % n * k, k})
              : static_cast<float>(exact.span().data[i]);
    }
    if (broken && variant == GemmVariant::mma_bf16) operands.c.data[0] += 1;
  }

 private:
  const Kernels& kernels_ = static_cast<const Kernels&>(kernels_emulated());
};

constexpr simt::KernelEntry kTable[] = {{kLessonId, kernels_emulated}};
const BenchSizes kTiny{64, {128, 256}, 256, 64, {64, 64, 128}, 128};

}  // namespace

TEST_CASE("the bench of accumulators has all that was recorded", "[accumulator_precision]") {
  tests::TimedEmulation device(kTable);
  SoftwareTensorCores kernels;
  device.replaced_kernels = &kernels;
  device.pretend().compute_capability = 90;
  lab::NoProgress progress;
  lab::Report report = bench_report(device, progress, kTiny);
  tests::check_has_what_was_recorded(report, kLessonId, true);
  for (const lab::Check& check : report.checks) {
    CAPTURE(check.id, check.max_error, check.tolerance);
    // So few products lose less than 4096 do.
    CHECK(check.ok == (check.id != "straight_loses"));
  }
  // Error and rate of the same data in one row, for each kind of data and variant.
  const lab::Table& both = *report.table("rate_and_error");
  REQUIRE(both.rows.size() == 3 * kGemmVariants.size());
  CHECK(report.table("tensor_core_rate")->rows.size() == kGemmVariants.size());
  const auto error = [&](std::size_t row) { return std::get<double>(both.rows[row][7]); };
  REQUIRE(both.columns[7].id == "error");
  REQUIRE(both.columns[8].id == "data");
  CHECK(both.text(0, 8) == "uniform");
  CHECK(error(0) > 0.01);
  CHECK(error(4) < error(0));
  CHECK(std::get<double>(report.table("tensor_core_rate")->rows[0][7]) == error(0));
  CHECK(report.measurement("gemm_rate")->detail.find("uniform") != std::string::npos);

  device.pretend().compute_capability = 80;  // spares comparing the models
  kernels.broken = true;
  report = bench_report(device, progress, kTiny);
  for (const lab::Check& check : report.checks) {
    if (check.id.starts_with("bound_")) CHECK(check.ok == (check.id != "bound_mma-bf16"));
  }
  CHECK(report.measurement("gemm_rate", "mma-bf16") == nullptr);
}

TEST_CASE("without Hopper the bench has the 16-bit products alone", "[accumulator_precision]") {
  tests::TimedEmulation device(kTable);
  SoftwareTensorCores kernels;
  device.replaced_kernels = &kernels;
  device.pretend().compute_capability = 80;
  lab::NoProgress progress;
  const lab::Report report = bench_report(device, progress, kTiny);
  CHECK(report.ok());
  CHECK(report.table("tensor_core_rate")->rows.size() == 3);
  CHECK(report.table("hopper_model") == nullptr);
  CHECK(report.summary.find("no wgmma") != std::string::npos);
}
