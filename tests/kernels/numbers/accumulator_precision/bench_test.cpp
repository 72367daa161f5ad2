#include "kernels/numbers/accumulator_precision/bench/bench.hpp"

#include "kernels/numbers/accumulator_precision/bench/hopper.hpp"
#include "kernels/numbers/accumulator_precision/kernels.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"

using namespace tilestep;
using namespace tilestep::accumulator_precision;
using namespace tilestep::tests;

namespace {

/// The emulated kernels, and tensor cores in software: wgmma-fp8 as the model has it, the others
/// exact.
class SoftwareTensorCores final : public Kernels {
 public:
  bool broken = false;  ///< the BF16 products are a little off

  void sums(simt::Device& device, const SumShape& shape, const SumMethod& method,
            simt::Span<const float> terms, simt::Span<float> sums,
            const simt::Tape& tape) const override {
    kernels_.sums(device, shape, method, terms, sums, tape);
  }
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

const BenchSizes kTiny{64, {128, 256}, 256, 64, {64, 64, 128}, 128};

/// A GPU that has such tensor cores.
struct Pretended : TimedKernels<SoftwareTensorCores> {
  explicit Pretended(int compute_capability) {
    device.pretend().compute_capability = compute_capability;
  }
  lab::Report bench() { return bench_report(device, unwatched, kTiny); }
};

}  // namespace

TEST_CASE("the bench of accumulators has all that was recorded", "[accumulator_precision]") {
  Pretended gpu(90);
  const lab::Report report = gpu.bench();
  check_has_what_was_recorded(report, kLessonId, true);
  // So few products lose less than 4096 do.
  check_holds(report, [](std::string_view id) { return id == "straight_loses"; });
  // Error and rate of the same data in one row, for each kind of data and variant.
  const lab::Table& both = *report.table("rate_and_error");
  REQUIRE(both.rows.size() == 3 * kGemmVariants.size());
  CHECK(report.table("tensor_core_rate")->rows.size() == kGemmVariants.size());
  const auto error = [&](std::size_t row) { return number_in(both, row, "error"); };
  REQUIRE(both.columns[8].id == "data");
  CHECK(both.text(0, 8) == "uniform");
  CHECK(error(0) > 0.01);
  CHECK(error(4) < error(0));
  CHECK(number_in(*report.table("tensor_core_rate"), 0, "error") == error(0));
  CHECK(contains(report.measurement("gemm_rate")->detail, "uniform"));
}

TEST_CASE(
    "without Hopper the bench has the 16-bit products alone, and a wrong one is none of the rates",
    "[accumulator_precision]") {
  Pretended gpu(80);
  gpu.kernels.broken = true;
  const lab::Report report = gpu.bench();
  CHECK(report.table("tensor_core_rate")->rows.size() == 3);
  CHECK(report.table("hopper_model") == nullptr);
  CHECK(contains(report.summary, "no wgmma"));
  for (const lab::Check& check : report.checks) {
    if (check.id.starts_with("bound_")) CHECK(check.ok == (check.id != "bound_mma-bf16"));
  }
  CHECK(report.measurement("gemm_rate", "mma-bf16") == nullptr);
}

TEST_CASE("the quick bench of accumulators has rates and errors of one kind of data",
          "[accumulator_precision]") {
  Pretended gpu(90);
  BenchSizes sizes = kTiny;
  sizes.quick = true;
  const lab::Report report = bench_report(gpu, unwatched, sizes);
  check_quick(report, {"tensor_core_error", "rate_and_error", "hopper_model"});
  CHECK(report.table("tensor_core_rate")->rows.size() == kGemmVariants.size());
}
