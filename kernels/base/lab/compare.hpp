#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/lab/replay.hpp"
#include "kernels/base/lab/report.hpp"

/// Compares a run with the same run on another machine.
namespace tilestep::lab {

/// Complete settings with all ineffective knobs at the lesson's defaults: two runs for which these are equal do the
/// same.
Settings in_effect(const Knobs& knobs, Settings settings);

/// The first difference: its path by name, and both values.
struct Difference {
  std::string path;  ///< "trace.steps.l[2]", "tables.tiles.end[0]", "checks.result.ok"
  std::string recorded, replayed;
  std::string
      allowed;  ///< of a floating-point number that differs: "6.1e-07 apart, at most 2.4e-07 allowed"
  std::string sentence() const;
};

struct Comparison {
  std::optional<Difference> difference;
  int compared = 0;  ///< numbers, words and names
  int close = 0;     ///< of these, numbers that differ but within the rounding
  /// The largest of these deviations, as a fraction of the allowed one.
  double farthest = 0;
  std::string farthest_path;
  /// Paths of titles, labels and sentences that read differently: they belong to the build, not to the
  /// run, and do not count as a difference.
  std::vector<std::string> other_words;
  /// Paths that another build has and the recording lacks; no difference either.
  std::vector<std::string> not_recorded;
};

/// Compares tables, checks, trace, and traced or derived measurements: everything except the parts that
/// `replay` attributes to the machine, and timed or counted numbers. Whole numbers, words, names and
/// sizes must be equal; floating-point numbers may differ by replay.rounding times the largest of their
/// list, and rounded numbers in a table by one unit of the last digit. `recorded` has its trace as this
/// build writes it. A recording of another build (`same_build` false) may lack later additions of the
/// lesson: tables, columns, rows after the last, measurements, checks.
Comparison compare(const Report& recorded, const Report& replayed, const Replay& replay,
                   bool same_build = true);

}  // namespace tilestep::lab
