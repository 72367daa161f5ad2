#include "kernels/numbers/accumulator_precision/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <string>

#include "kernels/base/lab/timing.hpp"
#include "kernels/numbers/accumulator_precision/hopper.hpp"
#include "kernels/numbers/accumulator_precision/kernels.hpp"
#include "kernels/numbers/accumulator_precision/report.hpp"

// Every variant multiplies the same E4M3 numbers, which FP16 and BF16 hold exactly, so that what
// differs is how the products are added up. The reference adds them in FP64, where products of E4M3
// numbers (multiples of 2^-18) lose nothing.

namespace tilestep::accumulator_precision {
namespace {

constexpr int kErrorEdge = 512;  // M and N of the error sweep
constexpr int kRateEdge = 4096;  // M, N and K of the timed GEMMs

/// The most that one output may be off, relative to Σ|a·b|, to first order. Each step of an
/// instruction adds its products to the accumulator, both cut to so many bits of the largest, and
/// rounds the result; every term is at most Σ|a·b|.
double relative_bound(GemmVariant variant, int k) {
  const auto steps = [&](int group) { return static_cast<double>(k) / group; };
  switch (variant) {
    case GemmVariant::wgmma_fp8:
      return hopper_error_bound({}, k, 1);
    case GemmVariant::wgmma_fp8_promoted:
      // The parts of 128 add up to no more than the whole; then one FP32 rounding for each part.
      return hopper_error_bound({}, kGemmTile, 1) + steps(kGemmTile) * 0x1p-24;
    case GemmVariant::mma_fp16_acc16:
      // FP16's half spacing for the result; products and accumulator cut by under 2^-20 each; an
      // instruction may take its 16 products in two steps.
      return steps(8) * (0x1p-11 + 9 * 0x1p-20);
    case GemmVariant::mma_fp16_acc32:
    case GemmVariant::mma_bf16:
      // The same, but the result is FP32's, cut, and at least 22 bits are kept after the point.
      return steps(8) * (0x1p-23 + 9 * 0x1p-22);
  }
  return 0;
}

struct Comparison {
  double error_percent = 0;  ///< |C − exact| / |exact|, Frobenius norms
  double worst = 0;          ///< largest |c − exact| / Σ|a·b| of an output
};

Comparison compare(const std::vector<float>& c, const std::vector<double>& exact,
                   const std::vector<double>& absolute) {
  Comparison result;
  double errors = 0;
  double sizes = 0;
  for (std::size_t i = 0; i < c.size(); ++i) {
    const double off = static_cast<double>(c[i]) - exact[i];
    errors += off * off;
    sizes += exact[i] * exact[i];
    const double relative = std::abs(off) / absolute[i];
    result.worst = relative > result.worst || std::isnan(relative) ? relative : result.worst;
  }
  result.error_percent = 100 * std::sqrt(errors / sizes);
  return result;
}

std::vector<lab::Column> error_columns() {
  std::vector<lab::Column> columns = {{"data", "data", "", -1}, {"k", "K", "", 0}};
  for (const GemmVariant variant : kGemmVariants) {
    columns.push_back({std::string(to_text(variant)), std::string(to_text(variant)), "%", -1});
  }
  return columns;
}

lab::Check bound_check(GemmVariant variant) {
  return {fmt::format("bound_{}", to_text(variant)), true, 0, 0,
          "Largest |c - exact| relative to the sum of |a·b|, over all data and K; the numbers are "
          "those of the case closest to its bound. Bound: for each step of the instruction one cut "
          "of every product and of the accumulator, and one of the result, all as large as the "
          "whole sum of |a·b| allows."};
}

void judge(const Bench& bench, GemmVariant variant, double error_percent) {
  const bool straight = variant == GemmVariant::wgmma_fp8;
  bench.report.measurements.push_back(lab::derived(
      "gemm_error", to_text(variant), error_percent, "%",
      fmt::format("|C - exact| / |exact| at K = {}, entries uniform in 0.5-1.5", kJudgedDepth)));
  if (!needs_hopper(variant)) return;
  bench.report.checks.push_back(
      {straight ? "straight_loses" : "promotion_saves",
       straight ? error_percent >= 1 : error_percent < 0.1, error_percent, straight ? 1 : 0.1,
       fmt::format(
           "{} is off by {:.4f} % at K = {}, entries uniform in 0.5-1.5; expected: {}.",
           to_text(variant), error_percent, kJudgedDepth,
           straight ? "at least 1 % (then max_error may pass the tolerance)" : "under 0.1 %")});
}

}  // namespace

std::vector<std::uint8_t> random_e4m3(GemmData data, std::size_t count, unsigned seed) {
  constexpr std::size_t kPool = 1 << 16;  // rounded once, then drawn from
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(0.5, 1.5);
  std::normal_distribution<double> normal;
  std::vector<std::uint8_t> pool;
  for (std::size_t i = 0; i < kPool; ++i) {
    double value = data == GemmData::uniform ? uniform(generator) : normal(generator);
    if (data == GemmData::outliers && i % 100 == 0) value *= 16;
    pool.push_back(static_cast<std::uint8_t>(numeric::encode(
        numeric::kE4m3,
        numeric::round_to(numeric::kE4m3, value, Rounding::nearest, numeric::Overflow::saturate))));
  }
  std::vector<std::uint8_t> bits(count);
  for (std::uint8_t& b : bits) b = pool[generator() % kPool];
  return bits;
}

GemmProblem::GemmProblem(const Bench& bench, const GemmShape& gemm, GemmData data, unsigned seed)
    : shape(gemm),
      a_bits(random_e4m3(data, static_cast<std::size_t>(gemm.m) * gemm.k, seed)),
      b_bits(random_e4m3(data, static_cast<std::size_t>(gemm.n) * gemm.k, seed + 1)),
      a_(bench.device, std::span<const std::uint8_t>(a_bits)),
      b_(bench.device, std::span<const std::uint8_t>(b_bits)),
      a_fp16_(bench.device, a_bits.size()),
      b_fp16_(bench.device, b_bits.size()),
      a_bf16_(bench.device, a_bits.size()),
      b_bf16_(bench.device, b_bits.size()),
      c_(bench.device, static_cast<std::size_t>(gemm.m) * static_cast<std::size_t>(gemm.n)) {
  const simt::Span<const std::uint8_t> a = a_.span();
  const simt::Span<const std::uint8_t> b = b_.span();
  bench.kernels.widen(bench.device, a, a_fp16_.span(), a_bf16_.span());
  bench.kernels.widen(bench.device, b, b_fp16_.span(), b_bf16_.span());
}

void GemmProblem::launch(const Bench& bench, GemmVariant variant) {
  bench.kernels.tensor_core_gemm(bench.device, variant, shape,
                                 {a_.span(), b_.span(), a_fp16_.span(), b_fp16_.span(),
                                  a_bf16_.span(), b_bf16_.span(), c_.span()});
}

std::vector<float> GemmProblem::result(const Bench& bench, GemmVariant variant) {
  c_.fill(0xFF);
  launch(bench, variant);
  bench.device.synchronize();
  return c_.download();
}

std::vector<double> GemmProblem::exact(const Bench& bench, bool absolute) {
  const auto input = [&](const std::vector<std::uint8_t>& bits) {
    std::vector<std::uint8_t> taken = bits;
    if (absolute) {
      for (std::uint8_t& b : taken) b = static_cast<std::uint8_t>(b & 0x7F);
    }
    return simt::Buffer<std::uint8_t>(bench.device, std::span<const std::uint8_t>(taken));
  };
  const simt::Buffer<std::uint8_t> a = input(a_bits);
  const simt::Buffer<std::uint8_t> b = input(b_bits);
  simt::Buffer<double> c(bench.device, c_.count());
  bench.kernels.exact_gemm(bench.device, shape, a.span(), b.span(), c.span());
  bench.device.synchronize();
  return c.download();
}

void bench_errors(const Bench& bench) {
  lab::Table table{"tensor_core_error",
                   fmt::format("Relative error of C = A·B of E4M3 numbers, M = N = {}", kErrorEdge),
                   error_columns(),
                   {}};
  std::vector<lab::Check> bounds;
  for (const GemmVariant variant : kGemmVariants) bounds.push_back(bound_check(variant));
  int done = 0;
  for (const GemmData data : kGemmData) {
    for (const int k : kDepths) {
      bench.progress.report(0.05 + 0.6 * done++ / (std::size(kGemmData) * std::size(kDepths)),
                            fmt::format("errors on {} data at K = {}", to_text(data), k));
      bench.progress.check();
      GemmProblem problem(bench, {kErrorEdge, kErrorEdge, k}, data, static_cast<unsigned>(k));
      const std::vector<double> exact = problem.exact(bench, false);
      const std::vector<double> absolute = problem.exact(bench, true);
      std::vector<lab::Cell> row = {std::string(to_text(data)), static_cast<double>(k)};
      for (const GemmVariant variant : kGemmVariants) {
        row.emplace_back();
        if (!can_run(bench.device.info(), variant)) continue;
        const Comparison c = compare(problem.result(bench, variant), exact, absolute);
        row.back() = c.error_percent;
        lab::Check& bound = bounds[static_cast<std::size_t>(variant)];
        const double allowed = relative_bound(variant, k);
        bound.ok = bound.ok && c.worst <= allowed;
        if (bound.tolerance == 0 || !(c.worst / allowed <= bound.max_error / bound.tolerance)) {
          bound.max_error = c.worst;
          bound.tolerance = allowed;
        }
        if (data == GemmData::uniform && k == kJudgedDepth) judge(bench, variant, c.error_percent);
      }
      table.rows.push_back(std::move(row));
    }
  }
  bench.report.tables.push_back(std::move(table));
  for (const lab::Check& bound : bounds) {
    if (bound.tolerance > 0) bench.report.checks.push_back(bound);
  }
}

void bench_rates(const Bench& bench) {
  lab::Table table{"tensor_core_rate",
                   "What accuracy costs: throughput of the same kernels, normal data",
                   {{"variant", "variant", "", -1},
                    {"m", "M", "", 0},
                    {"n", "N", "", 0},
                    {"k", "K", "", 0},
                    {"rate", "rate", "TFLOP/s", 0},
                    {"p10", "p10", "TFLOP/s", 0},
                    {"p90", "p90", "TFLOP/s", 0},
                    {"error", "error on uniform data at this K", "%", 4}},
                   {}};
  const GemmShape shape{kRateEdge, kRateEdge, kJudgedDepth};
  GemmProblem problem(bench, shape, GemmData::normal, 77);
  const double flops = 2.0 * shape.m * shape.n * shape.k;
  for (const GemmVariant variant : kGemmVariants) {
    if (!can_run(bench.device.info(), variant)) continue;
    bench.progress.check();
    simt::TimingPlan plan;
    plan.samples = 40;
    plan.flush_l2 = true;
    const lab::Spread time =
        lab::spread_of(bench.device.time_ms([&] { problem.launch(bench, variant); }, plan));
    const lab::Spread rate = lab::rate_of(time, flops * 1e-3);
    const lab::Measurement* error = bench.report.measurement("gemm_error", to_text(variant));
    table.rows.push_back({std::string(to_text(variant)), static_cast<double>(shape.m),
                          static_cast<double>(shape.n), static_cast<double>(shape.k), rate.median,
                          rate.p10, rate.p90,
                          error == nullptr ? lab::Cell() : lab::Cell(error->value)});
    bench.report.measurements.push_back(
        lab::measured("gemm_rate", to_text(variant), rate, "TFLOP/s",
                      fmt::format("{} x {} x {}, normal data, 2·M·N·K operations, L2 flushed",
                                  shape.m, shape.n, shape.k)));
  }
  bench.report.tables.push_back(std::move(table));
}

lab::Report bench_report(simt::Device& device, lab::Progress& progress) {
  if (!device.can_time()) {
    throw Error("tensor cores can only be measured on a GPU, and " + device.info().name +
                    " runs the kernels under emulation, which has none",
                ExitCode::unavailable);
  }
  lab::Report report;
  report.lesson = kLessonId;
  report.params = knob_table().settings(Params{});
  report.device = device.info();
  const auto& kernels = static_cast<const Kernels&>(device.kernels(kLessonId));
  const Bench bench{device, kernels, progress, report};
  progress.report(0, "multiplying with scales");
  const std::vector<ScalingResult> scaling = run_scaling(device, 1, progress);
  bench_errors(bench);
  progress.report(0.65, "timing");
  bench_rates(bench);
  progress.report(0.8, "comparing the software model with the hardware");
  bench_model(bench);
  report.tables.push_back(scaling_table(scaling));
  report.checks.push_back(scaling_check(scaling));

  const lab::Measurement* straight = report.measurement("gemm_error", "wgmma-fp8");
  const lab::Measurement* promoted = report.measurement("gemm_error", "wgmma-fp8-promoted");
  if (straight != nullptr && promoted != nullptr) {
    report.summary = fmt::format(
        "On {} an FP8 product that adds up straight through K = {} is off by {:.2f} %; adding into "
        "FP32 every {} along K brings that to {:.4f} %, at {:.0f} instead of {:.0f} TFLOP/s.",
        report.device.name, kJudgedDepth, straight->value, kGemmTile, promoted->value,
        report.measurement("gemm_rate", "wgmma-fp8-promoted")->value,
        report.measurement("gemm_rate", "wgmma-fp8")->value);
  } else {
    report.summary = fmt::format(
        "{} has no wgmma (compute capability 9.0), so that only the 16-bit products were measured.",
        report.device.name);
  }
  progress.report(1, "done");
  return report;
}

}  // namespace tilestep::accumulator_precision
