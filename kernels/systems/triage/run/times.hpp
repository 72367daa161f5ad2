#pragma once

#include <optional>
#include <string>

#include "kernels/base/lab/timing.hpp"
#include "kernels/systems/triage/run/reading.hpp"

/// What only a GPU can say: measured at the size that fills one, here or when the lesson was recorded.
namespace tilestep::triage {

/// The size that is timed: a layer's weights and cache are several times what L2 holds.
inline constexpr Shape kTimedShape{.layers = 2,
                                   .width = 4096,
                                   .heads = 32,
                                   .dim = 128,
                                   .context = 8192,
                                   .inner = 1024,
                                   .vocabulary = 16384,
                                   .splits = 16,
                                   .expert_blocks = 33,
                                   .rows = 4};
inline constexpr std::size_t kTimedPeriod = 1000003;  // a prime: rows and layers differ

/// Of a step, in µs: a usual one, the fourth, and the mean of the loop.
struct StepTimes {
  double usual = 0, fourth = 0;
  lab::Spread mean;
};
StepTimes step_times(Program& program, lab::Progress& progress, const lab::Pace& pace);

/// The rows that a plan has in recorded tables: "sound", "case-3", "mix-7"; empty: none.
std::string label_of(const Plan& plan);

class Times {
 public:
  virtual ~Times() = default;
  /// "measured on NVIDIA H200", "recorded on NVIDIA H200, 2026-11-30"; empty: there are none.
  virtual std::string from() const { return {}; }
  virtual double copy_gb_per_s() { return 0; }
  /// Nothing: it was not measured.
  virtual std::optional<StepTimes> steps(const Plan&) { return std::nullopt; }
  /// Times, and with them bytes, FLOP, registers, for the kernels of a step at the size that is timed.
  virtual std::optional<std::vector<KernelReading>> kernels(const Plan&, int /*step*/) {
    return std::nullopt;
  }
  virtual std::optional<Timeline> timeline(const Plan&, int /*step*/) { return std::nullopt; }
};
/// On a GPU those measured now; elsewhere those recorded, for the shape that was; or none.
std::unique_ptr<Times> times_for(simt::Device& device, lab::Progress& progress, int layers,
                                 int batch);

/// A timeline's spans as a recorded cell: "embed 1 2.5; norm 3.1 4" (begin and end in µs), and back.
std::string spans_text(const Timeline& timeline, bool host);
void add_spans(Timeline& timeline, std::string_view text, bool host);

}  // namespace tilestep::triage
