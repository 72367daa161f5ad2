#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/lab/ladder.hpp"

/// A user's rung against one of the lesson's: of the whole bench only these two are timed, in turn and in one process.
namespace tilestep::lab {

struct RacePlan {
  std::string rate_id;   ///< of their ladder: "copy_bandwidth"
  std::string edited;    ///< the rung that runs the user's kernels
  std::string built_in;  ///< the rung that runs the lesson's own
};
/// Prefix of the name of the lesson's rung in measurements and checks.
inline constexpr const char* kBuiltIn = "built-in ";

/// The param that requests it in a bench request: "copy_bandwidth vectorized coalesced".
inline constexpr const char* kRaceParam = "race";
std::string text_of(const RacePlan& plan);
/// Nothing: none was requested. Throws Error for a malformed one, or one without an edited kernel.
std::optional<RacePlan> race_of(const Request& request);
/// The request's params without it.
Settings params_of(const Request& request);

/// While it lives, its thread climbs only the ladder with these two rungs and skips all others; that climb ends the
/// bench by throwing RaceOver. Before each launch `choose` is told whether to use the user's kernels.
class Race {
 public:
  Race(RacePlan plan, std::function<void(bool edited)> choose);
  ~Race();
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;

  /// The calling thread's race; null: none.
  static const Race* under_way();
  bool is_of(const LadderPlan& plan) const;
  /// The ladder with only these two rungs, and with the counters that show what limits a kernel.
  LadderPlan plan_of(const LadderPlan& plan) const;

 private:
  Rung with(Rung rung, bool edited) const;

  const RacePlan plan_;
  const std::function<void(bool)> choose_;
};

/// Thrown to leave a bench; not an error, so no handler on the way treats it as one.
struct RaceOver {
  Climb climb;
  std::vector<Check> checks;
};

/// Runs `bench` as the race `plan`. The report's measurements are the rates of both rungs (`edited`, and kBuiltIn plus
/// the other's name) and their counters; its summary says which part of the GPU the user's kernel keeps busiest, or
/// why that is unknown. Throws Error if the bench has no such ladder, and whatever the bench throws.
Report race(const RacePlan& plan, const std::function<void(bool edited)>& choose,
            simt::Device& device, const std::function<Report()>& bench);

}  // namespace tilestep::lab
