#pragma once

#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/timing.hpp"

/// The loop of a bench. A lesson declares its kernels as the rungs of a ladder and gets tables,
/// measurements and checks:
///
///     lab::LadderPlan plan;
///     plan.work = {.bytes_read = 4.0 * n, .bytes_written = 4.0 * n};
///     plan.peers = {lab::device_copy(device, "copy", to, from, 4 * n)};
///     for (const CopyRung rung : all_of<CopyRung>()) plan.rungs.push_back(rung_of(rung));
///     plan.rate_id = "copy_bandwidth";
///     lab::Ladder ladder(device);
///     const lab::Climb climb = ladder.climb(plan, progress);
///     report.tables.push_back(
///         lab::table_of("copy_ladder", "Copies", {{"rung"}, {"bandwidth"}}, climb.rungs));
///     report.measurements = climb.measurements;
///     report.checks = ladder.checks();
namespace tilestep::lab {

/// What a launch does by its definition; a rate is this over a time, whatever caches, padding and
/// repeated reads add to it.
struct Work {
  double bytes_read = 0, bytes_written = 0, flops = 0;
  double bytes() const { return bytes_read + bytes_written; }
};
enum class Rate { gb_per_s, tflop_per_s };
std::string_view unit_of(Rate rate);
/// The rate of `work` done in these times.
Spread rate_of(const Spread& time_ms, const Work& work, Rate rate);

/// A configuration made ready. The functions own what they need, or it outlives the climb.
struct Runnable {
  std::function<void()> launch;  ///< asynchronous
  /// Launches once, on an output that holds NaN or another sign of not being written, and compares
  /// with the reference. Empty where there is nothing to compare, as with the device's own copy.
  std::function<Closest()> verify;
  /// In place of `launch` for a peer that another process runs and times itself: milliseconds of each
  /// sample, after so long a time of settling. Empty: it has none.
  std::function<std::vector<double>(const Pace& pace)> times = {};
};

/// Values of label columns by column id.
using Cells = std::map<std::string, Cell, std::less<>>;

/// One way to launch a rung: a compiled shape, a number of threads.
struct Configuration {
  std::string name;  ///< "256 threads a block"
  /// Called anew for each use, so that no more than one configuration takes memory at a time.
  std::function<Runnable()> make;
  Cells cells = {};
  std::string check = {};  ///< id of a check of its own; empty: it counts for the rung's
};

/// A kernel of the ladder, or a peer that it is measured beside.
struct Rung {
  std::string name;  ///< as names_of has it: "shared-tile"
  std::string why;   ///< one sentence: what changed against the rung before, why it is faster
  std::vector<Configuration> configurations;
  std::string check = {};         ///< id of its check
  std::string check_detail = {};  ///< what is compared, and where the tolerance comes from
  std::string peer = {};          ///< the peer's name that `fraction` refers to; empty: the first
  std::string variant = {};       ///< of its measurements; empty: its name
  std::string rate_id = {};       ///< of a peer's measurement; empty: it has none
  Cells cells = {};
  bool counted = true;  ///< whether the plan's counters say something about it
};
/// The device's own copy of `bytes`, with one configuration.
Rung device_copy(simt::Device& device, std::string name, void* to, const void* from,
                 std::size_t bytes);

/// What hardware counts during launches of each rung's best configuration, never in a timed run.
struct Counter {
  std::string id;
  std::string unit;
  /// Sets of metrics that are added up; the first set that the chip has counts.
  std::vector<std::vector<std::string>> metrics;
  double scale = 1;
  /// In a row. More than one for shares of elapsed cycles: what is counted begins before the first launch and
  /// ends after the last, and the way between host and device takes as long as a short kernel.
  int launches = 1;
};
/// Nothing if the chip has none of the metrics. Throws Cancelled.
std::optional<double> count(simt::Device& device, const Counter& counter,
                            const std::function<void()>& launch);

/// Of a turn in a round, unless a plan says otherwise.
inline constexpr Pace kTurn{kShown.settle_ms, 14, 7, 20};
/// Rungs that do the same work, and peers that do it as well.
struct LadderPlan {
  std::vector<Rung> rungs, peers;
  Work work;
  Rate rate = Rate::gb_per_s;
  std::string shape = {};        ///< begins every detail: "8192³"
  std::string note = {};         ///< ends it
  std::string rate_id = {};      ///< ids of the rungs' measurements; empty: none of that kind
  std::string fraction_id = {};  ///< rate over the peer's
  std::string time_id = {};
  std::vector<Counter> counters = {};
  Cells cells = {};  ///< of every row
  int rounds = 3;
  Pace turn = kTurn;  ///< of a rung or peer in a round
  /// Whether L2 is emptied before each sample; nothing: where what is read and written would nearly fit it.
  std::optional<bool> flush_l2 = {};
};

/// A row of what was timed: a rung or peer in its best configuration, or one configuration.
struct Timed {
  std::string name, variant, configuration;
  int chosen = -1;       ///< number of the configuration; −1: none was right and fast enough
  Spread time_ms, rate;  ///< no samples if none was chosen
  /// By column id: `rung`, `why`, `configuration`, `time`, `rate` (also as `bandwidth` or `tflops`),
  /// `p10`, `p90`, `peer` (its rate), `fraction` (unless unstable), and those declared.
  Cells cells;

  bool timed() const { return rate.samples > 0; }
  /// The number in a cell; nothing if there is none.
  std::optional<double> number(std::string_view id) const;
};

/// What came of a plan, in its order.
struct Climb {
  std::vector<Timed> rungs, peers;
  std::vector<Timed> configurations;  ///< of rungs that had more than one to choose among
  std::vector<Measurement> measurements;

  void add(Climb other);
};

/// Climbs ladders and keeps their checks. First every configuration of every rung and peer is
/// compared with the reference; one that is wrong is not timed. Then each is timed briefly, to
/// choose the best. Then the best ones are timed in rounds, peers and rungs in turn and each after
/// its clock has settled, so that all meet the same conditions; the samples that chose do not
/// count. At last the hardware counts, in runs of their own.
class Ladder {
 public:
  explicit Ladder(simt::Device& device) : device_(device) {}

  /// Throws Cancelled; Error for a launch that the device refuses.
  Climb climb(const LadderPlan& plan, Progress& progress);

  /// Adds to a check what was compared elsewhere, at other sizes.
  void judge(const std::string& id, const std::string& detail, const Closest& closest);
  /// One of each id, in the order in which they came first.
  std::vector<Check> checks() const;

 private:
  struct Verdict {
    std::string id, detail;
    Closest closest;
  };
  simt::Device& device_;
  std::vector<Verdict> verdicts_;
};

/// A table whose rows are filled from the cells of `rows`; empty where a row has no such cell.
Table table_of(std::string id, std::string title, std::vector<Column> columns,
               std::span<const Timed> rows);

/// Puts `more` behind `all`.
template <class T>
void append(std::vector<T>& all, std::vector<T> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// A number for a sentence: "1234 GB/s", "unstable: 900–1234 GB/s", or "not timed" for nullptr.
std::string headline(const Measurement* rate, int decimals);

/// A part of a run, whose progress goes from `from` to `to` of the whole.
class Part final : public Progress {
 public:
  Part(Progress& whole, double from, double to) : whole_(whole), from_(from), to_(to) {}
  void report(double fraction, std::string_view note) override {
    whole_.report(from_ + (to_ - from_) * fraction, note);
  }
  bool cancelled() const override { return whole_.cancelled(); }

 private:
  Progress& whole_;
  double from_, to_;
};

}  // namespace tilestep::lab
