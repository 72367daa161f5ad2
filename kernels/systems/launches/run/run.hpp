#pragma once

#include <memory>
#include <vector>

#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/lesson.hpp"
#include "kernels/systems/launches/lesson.hpp"
#include "kernels/systems/launches/reference.hpp"

/// The parts that the lesson's answers are put together from.
namespace tilestep::launches {

/// The size of the model that a run emulates.
inline constexpr int kWidth = 64, kInner = 128;

/// Decode steps, one after another, as a host has them done.
struct StepsPlan {
  StepShape model;  ///< `batch` is not used
  Mode mode = Mode::eager;
  Break broken = Break::none;
  int fallback = 0;
  std::vector<int> buckets;
  std::vector<std::vector<int>> tokens;  ///< of each step
  simt::StreamOptions order;
};
struct StepsDone {
  simt::StreamLog log;
  std::vector<StepTrace> steps;  ///< without beats; calls from `first_calls`
  std::vector<int> first_calls;
  std::vector<std::vector<float>> h;  ///< of each step, without padding
  /// Nanoseconds of the device's clock per step and slot, on a device that can time: begin and end.
  std::vector<std::vector<std::pair<double, double>>> stamps;
};
/// Throws Error (unavailable) for a device without streams.
StepsDone steps_done(const StepsPlan& plan, const Weights& weights, simt::Device& device);

struct Run {
  Params params;
  std::vector<std::vector<double>> exact;  ///< h of each step
  double bound = 0;
  StepsDone sound, shown;
  int orders_differ = 0;  ///< numbers that another order of the same calls changed
  lab::Closest product;   ///< of the shape
  int phases_differ = 0;  ///< numbers that the noted persistent kernel has otherwise
  Trace trace;
};
/// Runs the kernels. Throws Error as the device does.
Run run_of(const Params& params, simt::Device& device, lab::Progress& progress);
lab::Report report_of(const Run& run);

}  // namespace tilestep::launches
