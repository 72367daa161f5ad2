#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/knob.hpp"
#include "kernels/lessons.hpp"
#include "kernels/systems/triage/run/plan.hpp"
#include "kernels/systems/triage/shape.hpp"

/// The lesson on diagnosis: a decode loop in which a fault is hidden, instruments that cost a probe each, a diagnosis, and a
/// fix that is run.
namespace tilestep::triage {

/// The kernel sources that the picture shows.
inline constexpr std::string_view kProductSource = "kernels/systems/triage/products.cu",
                                  kAttendSource = "kernels/systems/triage/attend.cu",
                                  kBlockSource = "kernels/systems/triage/block.cu";

inline constexpr int kMostLayers = 3, kMostBatch = 4;

struct Params {
  Case which = Case::one;
  std::int64_t seed = 1;  ///< of a mixed case
  std::string probes = "queue,kernels,shapes";
  Bottleneck bottleneck = Bottleneck::open;
  Suspect suspect = Suspect::open;
  Cause cause = Cause::open;
  Fix fix = Fix::none;
  Fix second = Fix::none;  ///< of a mixed case
  int layers = 2, batch = 4;
};
const lab::KnobTable<Params>& knob_table();

/// 1-based lines of the operators' kernels in their sources (source_of), in this build; 0: it has none of its own.
std::array<int, kOps> op_lines();
std::string_view source_of(Op op);

/// A line of what an instrument shows. What its numbers are depends on the instrument (columns_of).
struct Row {
  int look = 0;      ///< the probe that it is of, from 0
  std::string what;  ///< "product", "qkv 1", "step 3"
  std::string note;  ///< the operator, the shape, the host's call
  int op = -1;       ///< of which operator it is; −1: of none
  int lane = 0;      ///< timeline: 0 host, 1 device
  double count = 0;  ///< launches, requests, rows
  double value = 0, second = 0;
  bool operator==(const Row&) const = default;
};
/// The columns `count`, `value` and `second` of an instrument's rows; an empty name: it has no such number. `timed`: the
/// number needs a clock, and is 0 without one.
struct NumberOfRow {
  std::string_view name, unit;
  bool timed = false;
};
std::array<NumberOfRow, 3> columns_of(Instrument instrument);

/// What a diagnosis was worth, once a fix has been applied.
struct Verdict {
  bool applied = false;
  double before_us = 0, after_us = 0, best_us = 0;  ///< of a step, the loop's mean; 0: not timed
  bool right_bottleneck = false, right_operator = false, right_cause = false;
  int faults = 1, fixed = 0;           ///< that were hidden, and that the fixes took away
  int points = 0;                      ///< of 100
  double before_mb = 0, after_mb = 0;  ///< asked of memory in a loop of four steps, traced
  double before_launches = 0, after_launches = 0;  ///< kernels of a loop of four steps
  bool operator==(const Verdict&) const = default;
  /// Times as fast as before; 0: not timed.
  double gain() const { return after_us > 0 ? before_us / after_us : 0; }
  double possible() const { return best_us > 0 ? before_us / best_us : 0; }
  /// The share of the time that could be saved.
  double share() const;
};

struct Trace {
  Case which = Case::one;
  std::vector<Probe> looks;
  std::string times_from;    ///< "measured on …", "recorded on …"; empty: nothing here is timed
  double copy_gb_per_s = 0;  ///< the roof: a copy's rate there; 0: not known, or nobody has looked
  double span = 1;           ///< of timelines, rounded up: µs, or beats where nothing is timed
  double most_us = 1;        ///< of a kernel in a step, likewise
  double most_launches = 1;  ///< of a kernel in a step, likewise
  double most_calls = 1;     ///< of a kind in a step, likewise
  double most_intensity = 1;  ///< FLOP per byte of a kernel, likewise
  std::vector<Row> rows;      ///< look by look
  Bottleneck bottleneck = Bottleneck::open;
  Suspect suspect = Suspect::open;
  Cause cause = Cause::open;
  Fix fix = Fix::none, second = Fix::none;
  double suspect_share =
      0;  ///< of the kernels' time in the loop; 0: not known, or nobody has looked
  Verdict verdict;
  std::array<int, kOps> lines = op_lines();

  bool has_fix() const { return fix != Fix::none || second != Fix::none; }
  /// The picture's steps: the probes, the diagnosis, and the verdict if a fix is applied.
  int length() const { return static_cast<int>(looks.size()) + (has_fix() ? 2 : 1); }
  int diagnosis_step() const { return static_cast<int>(looks.size()) + 1; }
  int verdict_step() const { return static_cast<int>(looks.size()) + 2; }
  /// How many times as fast a step can become if the suspect takes no time; 0: not known.
  double bound() const {
    return suspect_share > 0 && suspect_share < 1 ? 1 / (1 - suspect_share) : 0;
  }
  int probes_left() const { return kProbes - static_cast<int>(looks.size()); }
  bool operator==(const Trace&) const = default;
};

std::vector<lab::Table> tables_of(const Trace& trace);

}  // namespace tilestep::triage
