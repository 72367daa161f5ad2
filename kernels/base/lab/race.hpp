#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/lab/ladder.hpp"

/// A user's rung against one of the lesson's own: of a whole bench these two are timed, in turn and in one process.
namespace tilestep::lab {

struct RacePlan {
  std::string rate_id;   ///< of their ladder: "copy_bandwidth"
  std::string edited;    ///< the rung that runs the user's kernels
  std::string built_in;  ///< the rung that runs the lesson's own
};
/// What stands before the name of the lesson's rung in measurements and checks.
inline constexpr const char* kBuiltIn = "built-in ";

/// In a request for a bench this stands among the params: "copy_bandwidth vectorized coalesced".
inline constexpr const char* kRaceParam = "race";
std::string text_of(const RacePlan& plan);
/// Nothing: the request asks for none. Throws Error for one of another form, or without an edited kernel.
std::optional<RacePlan> race_of(const Request& request);
/// The request's params without it.
Settings params_of(const Request& request);

/// For as long as it lives, ladders that its thread climbs are not, but for the one with these two rungs: that ends the
/// bench by RaceOver. `choose` is told before each launch whether the user's kernels are meant.
class Race {
 public:
  Race(RacePlan plan, std::function<void(bool edited)> choose);
  ~Race();
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;

  /// The calling thread's; null: there is none.
  static const Race* under_way();
  bool is_of(const LadderPlan& plan) const;
  /// The ladder with these two rungs alone, and with the counters that say what limits a kernel.
  LadderPlan plan_of(const LadderPlan& plan) const;

 private:
  Rung with(Rung rung, bool edited) const;

  const RacePlan plan_;
  const std::function<void(bool)> choose_;
};

/// Leaves a bench; no error, so that nothing on the way takes it for one.
struct RaceOver {
  Climb climb;
  std::vector<Check> checks;
};

/// Runs `bench` as the race `plan`. The report's measurements are the rate of both rungs (`edited`, and kBuiltIn before the
/// other's name) and what was counted of them; its summary says which part of the GPU the user's kernel keeps busiest, or why
/// that is not known. Throws Error where the bench has no such ladder, and what it throws.
Report race(const RacePlan& plan, const std::function<void(bool edited)>& choose,
            simt::Device& device, const std::function<Report()>& bench);

}  // namespace tilestep::lab
