#include "kernels/base/lab/timing.hpp"

#include <algorithm>
#include <cmath>

namespace tilestep::lab {
namespace {

Measurement number(std::string id, std::string_view variant, Provenance provenance, double value,
                   std::string_view unit, std::string detail) {
  Measurement m;
  m.id = std::move(id);
  m.variant = variant;
  m.provenance = provenance;
  m.value = value;
  m.unit = unit;
  m.detail = std::move(detail);
  return m;
}

constexpr double kSettled = 0.01;        // largest difference of two batches
constexpr double kMostSettling = 3;      // times the settling time
constexpr double kBatches = 6;           // in a settling time
constexpr double kMostOfSamples = 6000;  // ms; more samples than `least` take no longer

}  // namespace

void require_timing(const simt::Device& device, std::string_view what) {
  if (device.can_time()) return;
  throw Error(std::string(what) + " can only be timed on a GPU, and " + device.info().name +
                  " runs the kernels under emulation, whose times say nothing about a GPU",
              ExitCode::unavailable);
}

std::vector<double> settled_times(simt::Device& device, const Progress& progress,
                                  const std::function<void()>& launch, const Pace& pace,
                                  bool flush_l2) {
  const auto times = [&](int warmups, double count) {
    progress.check();
    simt::TimingPlan plan;
    plan.warmups = warmups;
    plan.samples = std::max(1, static_cast<int>(count));
    plan.flush_l2 = flush_l2;
    plan.max_seconds = pace.most_seconds;
    return device.time_ms(launch, plan);
  };
  double ms = times(1, 1).front();
  if (ms * pace.least > 1000 * pace.most_seconds) return {};
  for (double ran_ms = 0; ran_ms < kMostSettling * pace.settle_ms;) {
    const std::vector<double> batch = times(0, std::min(500.0, pace.settle_ms / kBatches / ms));
    for (const double one : batch) ran_ms += one;
    const double before = ms;
    ms = spread_of(batch).median;
    if (ran_ms >= pace.settle_ms && std::abs(ms - before) <= kSettled * before) break;
  }
  return times(0, std::clamp(kMostOfSamples / ms, static_cast<double>(pace.least),
                             static_cast<double>(std::max(pace.samples, pace.least))));
}

Spread spread_of(std::vector<double> samples) {
  if (samples.empty()) throw Error("a timing took no samples", ExitCode::unavailable);
  std::sort(samples.begin(), samples.end());
  const auto quantile = [&](double q) {
    const double at = q * static_cast<double>(samples.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, samples.size() - 1);
    return samples[below] + (at - std::floor(at)) * (samples[above] - samples[below]);
  };
  return {quantile(0.5), quantile(0.1), quantile(0.9), static_cast<int>(samples.size())};
}

bool Spread::stable() const {
  return std::abs(p90 - p10) <= 0.10 * std::abs(median);
}

Spread rate_of(const Spread& time_ms, double amount) {
  const auto rate = [&](double ms) { return amount / ms * 1e-6; };
  return {rate(time_ms.median), rate(time_ms.p90), rate(time_ms.p10), time_ms.samples};
}

Measurement measured(std::string id, std::string_view variant, const Spread& spread,
                     std::string_view unit, std::string detail) {
  Measurement m =
      number(std::move(id), variant, Provenance::measured, spread.median, unit, std::move(detail));
  m.p10 = spread.p10;
  m.p90 = spread.p90;
  m.samples = spread.samples;
  return m;
}

Measurement counted(std::string id, std::string_view variant, AnyNumber value,
                    std::string_view unit, std::string detail) {
  return number(std::move(id), variant, Provenance::counted, value.value, unit, std::move(detail));
}

Measurement traced(std::string id, std::string_view variant, AnyNumber value, std::string_view unit,
                   std::string detail) {
  return number(std::move(id), variant, Provenance::traced, value.value, unit, std::move(detail));
}

Measurement derived(std::string id, std::string_view variant, AnyNumber value,
                    std::string_view unit, std::string detail) {
  return number(std::move(id), variant, Provenance::derived, value.value, unit, std::move(detail));
}

}  // namespace tilestep::lab
