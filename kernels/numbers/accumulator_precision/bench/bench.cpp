#include "kernels/numbers/accumulator_precision/bench/bench.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <random>
#include <string>

#include "kernels/base/lab/quick.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/numbers/accumulator_precision/bench/hopper.hpp"
#include "kernels/numbers/accumulator_precision/kernels.hpp"
#include "kernels/numbers/accumulator_precision/report.hpp"

// Every variant multiplies the same E4M3 numbers, which FP16 and BF16 hold exactly, so only the
// additions of the products differ. The reference adds them in FP64, where products of E4M3 numbers
// (multiples of 2^-18) lose nothing.

namespace tilestep::accumulator_precision {
namespace {

using lab::column, lab::real, lab::whole;

/// The first-order error bound of one output, relative to Σ|a·b|. Each step of an instruction adds
/// its products to the accumulator, both cut to a number of bits below the largest, and rounds the
/// result; every term is at most Σ|a·b|.
double relative_bound(GemmVariant variant, int k) {
  const auto steps = [&](int group) { return static_cast<double>(k) / group; };
  switch (variant) {
    case GemmVariant::wgmma_fp8:
      return hopper_error_bound({}, k, 1);
    case GemmVariant::wgmma_fp8_promoted:
      // The partial sums of 128 add up to no more than the whole; plus one FP32 rounding for each.
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

/// A product and its results in FP64.
class Judged {
 public:
  Judged(const Bench& bench, const GemmShape& shape, GemmData data, unsigned seed)
      : problem(bench, shape, data, seed),
        bench_(bench),
        exact_(problem.exact(bench, false)),
        absolute_(problem.exact(bench, true)) {}

  /// Runs `variant` and compares each output, relative to Σ|a·b|.
  lab::Closest compare(GemmVariant variant) {
    const std::vector<float> c = problem.result(bench_, variant);
    const double bound = relative_bound(variant, problem.shape.k);
    lab::Closest closest;
    double errors = 0, sizes = 0;
    for (std::size_t i = 0; i < c.size(); ++i) {
      const double off = static_cast<double>(c[i]) - exact_[i];
      errors += off * off;
      sizes += exact_[i] * exact_[i];
      closest.add(off / absolute_[i], 0, bound);
    }
    error_percent[static_cast<std::size_t>(variant)] = 100 * std::sqrt(errors / sizes);
    return closest;
  }

  GemmProblem problem;
  /// By variant, once compared: |C − exact| / |exact|, Frobenius norms.
  std::array<double, count_of<GemmVariant>()> error_percent{};

 private:
  const Bench& bench_;
  std::vector<double> exact_, absolute_;
};

constexpr const char* kBoundDetail =
    "Largest |c - exact| relative to the sum of |a·b|, over all data and K; the numbers are for "
    "the case closest to its bound. Bound: for each step of the instruction one cut of every "
    "product and of the accumulator, and one of the result, all as large as the whole sum of "
    "|a·b| allows.";

std::string bound_id(GemmVariant variant) {
  return fmt::format("bound_{}", name_of(variant));
}

std::vector<GemmVariant> variants_of(const Bench& bench) {
  std::vector<GemmVariant> variants;
  for (const GemmVariant variant : kGemmVariants) {
    if (can_run(bench.device.info(), variant)) variants.push_back(variant);
  }
  return variants;
}

void judge(Bench& bench, GemmVariant variant, double error_percent) {
  const bool straight = variant == GemmVariant::wgmma_fp8;
  const int k = bench.sizes.judged_depth;
  bench.report.add(
      lab::derived("gemm_error", name_of(variant), error_percent, "%",
                   fmt::format("|C - exact| / |exact| at K = {}, entries uniform in 0.5-1.5", k)));
  if (!needs_hopper(variant)) return;
  bench.report.add(lab::Check{
      straight ? "straight_loses" : "promotion_saves",
      straight ? error_percent >= 1 : error_percent < 0.1, error_percent, straight ? 1 : 0.1,
      fmt::format(
          "{} is off by {:.4f} % at K = {}, entries uniform in 0.5-1.5; expected: {}.",
          name_of(variant), error_percent, k,
          straight ? "at least 1 % (then max_error may pass the tolerance)" : "under 0.1 %")});
}

/// The variants on one product; results are compared before timing.
lab::Climb climb(Bench& bench, GemmData data, double from, double to) {
  const GemmShape shape{bench.sizes.rate_edge, bench.sizes.rate_edge, bench.sizes.judged_depth};
  Judged judged(bench, shape, data, 77);
  lab::LadderPlan plan;
  plan.rate = lab::Rate::tflop_per_s;
  plan.work = {.bytes_read = static_cast<double>(shape.m + shape.n) * shape.k,
               .bytes_written = 4.0 * shape.m * shape.n,
               .flops = 2.0 * shape.m * shape.n * shape.k};
  plan.shape = fmt::format("{} x {} x {}, {} data", shape.m, shape.n, shape.k, name_of(data));
  plan.note = "2·M·N·K operations, L2 flushed";
  plan.cells = {{"data", name_of(data)}, {"m", shape.m}, {"n", shape.n}, {"k", shape.k}};
  plan.rate_id = data == GemmData::uniform ? "gemm_rate" : "";
  for (const GemmVariant variant : variants_of(bench)) {
    const auto make = [&judged, &bench, variant]() -> lab::Runnable {
      return {[&judged, &bench, variant] { judged.problem.launch(bench, variant); },
              [&judged, variant] { return judged.compare(variant); }};
    };
    plan.rungs.push_back(lab::rung_of(variant, bound_id(variant), kBoundDetail));
    plan.rungs.back().configurations = {{.name = "", .make = make}};
    plan.rungs.back().cells = {{"variant", name_of(variant)}};
  }
  lab::Climb climb = bench.climb(plan, from, to);
  for (std::size_t i = 0; i < climb.rungs.size(); ++i) {
    const auto variant = static_cast<std::size_t>(variants_of(bench)[i]);
    climb.rungs[i].cells["error"] = judged.error_percent[variant];
  }
  return climb;
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
      a_bits(random_e4m3(data, numeric::elements_of(gemm.m, gemm.k), seed)),
      b_bits(random_e4m3(data, numeric::elements_of(gemm.n, gemm.k), seed + 1)),
      a_(bench.device, a_bits),
      b_(bench.device, b_bits),
      a_fp16_(bench.device, a_bits.size()),
      b_fp16_(bench.device, b_bits.size()),
      a_bf16_(bench.device, a_bits.size()),
      b_bf16_(bench.device, b_bits.size()),
      c_(bench.device, numeric::elements_of(gemm.m, gemm.n)) {
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
  return lab::result_of(bench.device, c_, [&] { launch(bench, variant); });
}

std::vector<double> GemmProblem::exact(const Bench& bench, bool absolute) {
  const auto input = [&](const std::vector<std::uint8_t>& bits) {
    std::vector<std::uint8_t> taken = bits;
    if (absolute) {
      for (std::uint8_t& b : taken) b = static_cast<std::uint8_t>(b & 0x7F);
    }
    return simt::Buffer<std::uint8_t>(bench.device, taken);
  };
  const simt::Buffer<std::uint8_t> a = input(a_bits);
  const simt::Buffer<std::uint8_t> b = input(b_bits);
  simt::Buffer<double> c(bench.device, c_.count());
  bench.kernels.exact_gemm(bench.device, shape, a.span(), b.span(), c.span());
  bench.device.synchronize();
  return c.download();
}

void bench_errors(Bench& bench) {
  const BenchSizes& sizes = bench.sizes;
  lab::Table table{
      "tensor_core_error",
      fmt::format("Relative error of C = A·B of E4M3 numbers, M = N = {}", sizes.error_edge),
      {"data", whole("k", "K")}};
  for (const std::string_view name : names_of(GemmVariant{})) {
    table.columns.emplace_back(name, name, "%");
  }
  double done = 0;
  for (const GemmData data : kGemmData) {
    for (const int k : sizes.depths) {
      bench.progress.report(
          0.05 + 0.5 * done++ / static_cast<double>(std::size(kGemmData) * sizes.depths.size()),
          fmt::format("errors on {} data at K = {}", name_of(data), k));
      bench.progress.check();
      Judged judged(bench, {sizes.error_edge, sizes.error_edge, k}, data, static_cast<unsigned>(k));
      std::vector<lab::Cell> row = {data, k};
      for (const GemmVariant variant : kGemmVariants) {
        row.emplace_back();
        if (!can_run(bench.device.info(), variant)) continue;
        bench.ladder.judge(bound_id(variant), kBoundDetail, judged.compare(variant));
        const double error = judged.error_percent[static_cast<std::size_t>(variant)];
        row.back() = error;
        if (data == GemmData::uniform && k == sizes.judged_depth) judge(bench, variant, error);
      }
      table.add(std::move(row));
    }
  }
  bench.report.add(std::move(table));
}

void bench_rates(Bench& bench) {
  const std::vector<lab::Column> shown = {"variant",
                                          column("m", "M"),
                                          column("n", "N"),
                                          column("k", "K"),
                                          whole("rate", "", "TFLOP/s"),
                                          whole("p10", "", "TFLOP/s"),
                                          whole("p90", "", "TFLOP/s"),
                                          real("error", "error on the same data", "%", 4),
                                          "data"};
  lab::Climb all;
  for (const GemmData data : kGemmData) {
    if (bench.sizes.quick && data != GemmData::uniform) continue;
    const double from = 0.55 + 0.08 * static_cast<double>(data);
    lab::Climb climb = accumulator_precision::climb(bench, data, from, from + 0.08);
    if (data == GemmData::uniform) {
      bench.add_table("tensor_core_rate",
                      "Accuracy's price: throughput and error, entries uniform in 0.5-1.5", shown,
                      climb.rungs);
    }
    all.add(std::move(climb));
  }
  if (bench.sizes.quick) return;
  bench.add_table("rate_and_error", "The same on all kinds of data", shown, all.rungs);
}

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  const BenchSizes asked = lab::sizes_asked(sizes);
  Bench bench{{device, progress}, asked};
  lab::Report& report = bench.report;
  if (asked.quick) {
    lab::leave_out(report, {"errors against K", "other data", "scales", "the software model"});
    bench_rates(bench);
    lab::append(report.checks, bench.ladder.checks());
    report.summary = fmt::format("On {} an FP8 product without promotion reaches {}, with it {}.",
                                 device.info().name, bench.headline("gemm_rate", "wgmma-fp8", 0),
                                 bench.headline("gemm_rate", "wgmma-fp8-promoted", 0));
    return report;
  }
  progress.report(0, "multiplying with scales");
  const std::vector<ScalingResult> scaling = run_scaling(device, 1, progress);
  bench_errors(bench);
  bench_rates(bench);
  lab::append(report.checks, bench.ladder.checks());
  progress.report(0.8, "comparing the software model with the hardware");
  bench_model(bench);
  report.add(scaling_table(scaling));
  report.add(scaling_check(scaling));

  const lab::Measurement* straight = report.measurement("gemm_error", "wgmma-fp8");
  const lab::Measurement* promoted = report.measurement("gemm_error", "wgmma-fp8-promoted");
  if (straight == nullptr || promoted == nullptr) {
    report.summary = fmt::format(
        "{} has no wgmma (compute capability 9.0), so only the 16-bit products were measured.",
        device.info().name);
    return report;
  }
  report.summary = fmt::format(
      "On {} an FP8 product without promotion over K = {} is off by {:.2f} %, at {}; adding "
      "to FP32 every {} along K reduces that to {:.4f} %, at {}.",
      device.info().name, sizes.judged_depth, straight->value,
      bench.headline("gemm_rate", "wgmma-fp8", 0), kGemmTile, promoted->value,
      bench.headline("gemm_rate", "wgmma-fp8-promoted", 0));
  return report;
}

}  // namespace tilestep::accumulator_precision
