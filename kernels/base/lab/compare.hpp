#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/lab/replay.hpp"
#include "kernels/base/lab/report.hpp"

/// A run and the same run again on another machine, held against each other.
namespace tilestep::lab {

/// Complete settings with knobs that have no effect in them as the lesson has them: two runs of which these are the
/// same do the same.
Settings in_effect(const Knobs& knobs, Settings settings);

/// The first difference: where, by name, and what stands there.
struct Difference {
  std::string path;  ///< "trace.steps.l[2]", "tables.tiles.end[0]", "checks.result.ok"
  std::string recorded, replayed;
  std::string
      allowed;  ///< of a number in floating point: "6.1e-07 apart, and at most 2.4e-07 may be"
  std::string sentence() const;
};

struct Comparison {
  std::optional<Difference> difference;
  int compared = 0;  ///< numbers, words and names
  int close = 0;     ///< of them, numbers within the rounding, and not the same
  /// The farthest of these, as a part of what was allowed.
  double farthest = 0;
  std::string farthest_path;
  /// Where titles, labels and sentences read otherwise: they are of the build and not of the run, and no
  /// difference.
  std::vector<std::string> other_words;
  /// What another build says and the recording does not, and is no difference then.
  std::vector<std::string> not_recorded;
};

/// Compares tables, checks, trace, and the measurements that were traced or derived: all but
/// what `replay` says is of the machine, and what was timed or counted. Whole numbers, words, names
/// and sizes are to be the same; numbers in floating point to lie within replay.rounding of the largest
/// of their list; a number in a table also by a unit of its last digit, where that is rounded. `recorded`
/// has its trace as this build writes it. One of another build (`same_build` false) may lack what a lesson has
/// got since: tables, columns, rows behind the last, measurements, checks.
Comparison compare(const Report& recorded, const Report& replayed, const Replay& replay,
                   bool same_build = true);

}  // namespace tilestep::lab
