#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "kernels/base/lab/check.hpp"
#include "kernels/numbers/accumulator_precision/bench/bench.hpp"
#include "kernels/numbers/accumulator_precision/bench/hopper.hpp"
#include "kernels/numbers/accumulator_precision/kernels.hpp"

// Each output of wgmma-fp8 is a dot product of random numbers: the software model must give the
// same bits. Several models are tried, so that a wrong default shows.

namespace tilestep::accumulator_precision {
namespace {

using lab::whole;

/// Percentage of outputs that `model` reproduces bit for bit.
double equal_percent(const GemmProblem& problem, const std::vector<float>& hardware,
                     const HopperModel& model) {
  const auto k = static_cast<std::size_t>(problem.shape.k);
  const auto n = static_cast<std::size_t>(problem.shape.n);
  std::size_t equal = 0;
  for (std::size_t i = 0; i < hardware.size(); ++i) {
    const float dot = hopper_fp8_dot(std::span(problem.a_bits).subspan(i / n * k, k),
                                     std::span(problem.b_bits).subspan(i % n * k, k), model);
    equal += dot == hardware[i] ? 1 : 0;
  }
  return 100 * static_cast<double>(equal) / static_cast<double>(hardware.size());
}

/// A problem and the hardware's result.
struct Trial {
  GemmProblem problem;
  std::vector<float> hardware;

  Trial(const Bench& bench, const GemmShape& shape, GemmData data)
      : problem(bench, shape, data, kTrialSeeds[0]),
        hardware(problem.result(bench, GemmVariant::wgmma_fp8)) {}
};

struct Score {
  HopperModel model;
  double percent[std::size(kGemmData)] = {};
  double lowest() const { return *std::min_element(std::begin(percent), std::end(percent)); }
};

lab::Table model_table(const GemmShape& trial, const std::vector<Score>& scores) {
  lab::Table table{
      "hopper_model",
      fmt::format("Models of the FP8 path: share of {} dot products of {} that are bit-equal",
                  trial.m * trial.n, trial.k),
      {whole("fraction_bits", "fraction bits"), whole("group", "products/step"),
       lab::column("exponent", "exponent of a product"), "cut",
       whole("mantissa_bits", "mantissa bits kept"), "default"}};
  for (const GemmData data : kGemmData) {
    table.columns.push_back(lab::real(name_of(data), "", "%", 2));
  }
  for (const Score& score : scores) {
    const HopperModel& m = score.model;
    std::vector<lab::Cell> row = {m.fraction_bits,
                                  m.group,
                                  m.normalized ? "of the product" : "sum of the factors'",
                                  m.toward_zero ? "toward zero" : "down",
                                  m.mantissa_bits,
                                  m == HopperModel{} ? "yes" : ""};
    for (const double percent : score.percent) row.emplace_back(percent);
    table.add(std::move(row));
  }
  return table;
}

}  // namespace

void bench_model(Bench& bench) {
  if (!can_run(bench.device.info(), GemmVariant::wgmma_fp8)) return;
  const GemmShape& shape = bench.sizes.trial;
  const int long_depth = bench.sizes.long_depth;
  std::vector<Score> scores;
  for (const HopperModel& model : hopper_candidates()) scores.push_back({model, {}});
  double lowest = 100;
  for (std::size_t d = 0; d < std::size(kGemmData); ++d) {
    const Trial trial(bench, shape, kGemmData[d]);
    for (Score& score : scores) {
      bench.progress.check();
      score.percent[d] = equal_percent(trial.problem, trial.hardware, score.model);
    }
    const Trial deep(bench, {shape.m, shape.n, long_depth}, kGemmData[d]);
    const double equal = equal_percent(deep.problem, deep.hardware, HopperModel{});
    lowest = std::min({lowest, equal, scores.front().percent[d]});
    bench.report.add(lab::derived(
        "model_bit_equal", name_of(kGemmData[d]), equal, "%",
        fmt::format("share of {} dot products of {} for which the default software model and "
                    "wgmma-fp8 agree in every bit",
                    shape.m * shape.n, long_depth)));
  }
  bench.report.add(lab::within(
      "model_bit_equal", 100 - lowest, 0,
      fmt::format("Percent of dot products for which the default software model and wgmma-fp8 "
                  "differ in any bit: the worst of {} kinds of data at K = {} and {}, {} dot "
                  "products each.",
                  std::size(kGemmData), shape.k, long_depth, shape.m * shape.n)));
  std::stable_sort(scores.begin(), scores.end(),
                   [](const Score& x, const Score& y) { return x.lowest() > y.lowest(); });
  bench.report.add(model_table(shape, scores));
}

}  // namespace tilestep::accumulator_precision
