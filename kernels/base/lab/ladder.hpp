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

/// The work of a launch by definition; a rate is this over a time, without the extra traffic of caches,
/// padding and repeated reads.
struct Work {
  double bytes_read = 0, bytes_written = 0, flops = 0;
  double bytes() const { return bytes_read + bytes_written; }
};
enum class Rate { gb_per_s, tflop_per_s };
std::string_view unit_of(Rate rate);
/// The rate of `work` done in these times (ms).
Spread rate_of(const Spread& time_ms, const Work& work, Rate rate);

/// A prepared configuration. The functions own their data, or the data outlives the climb.
struct Runnable {
  std::function<void()> launch;  ///< asynchronous
  /// Launches once, on an output filled with NaN or another sentinel, and compares the result with the
  /// reference. Empty where there is nothing to compare, as with the device's own copy.
  std::function<Closest()> verify;
  /// Replaces `launch` for a peer that another process runs and times: milliseconds of each sample,
  /// after the pace's settling time. Empty: not such a peer.
  std::function<std::vector<double>(const Pace& pace)> times = {};
};

/// Values of label columns by column id.
using Cells = std::map<std::string, Cell, std::less<>>;

/// One way to launch a rung: a compiled shape, a number of threads.
struct Configuration {
  std::string name;  ///< "256 threads per block"
  /// Called for each use, so that only one configuration occupies memory at a time.
  std::function<Runnable()> make;
  Cells cells = {};
  std::string check = {};  ///< id of its own check; empty: it counts towards the rung's
};

/// A kernel of the ladder, or a peer measured beside it.
struct Rung {
  std::string name;  ///< as names_of has it: "shared-tile"
  std::string why;   ///< one sentence: the change from the previous rung, and why it is faster
  std::vector<Configuration> configurations;
  std::string check = {};         ///< id of its check
  std::string check_detail = {};  ///< the comparison, and where its tolerance comes from
  std::string peer = {};     ///< name of the peer that `fraction` is relative to; empty: the first
  std::string variant = {};  ///< of its measurements; empty: its name
  std::string rate_id = {};  ///< of a peer's measurement; empty: it has none
  Cells cells = {};
  bool counted = true;  ///< whether the plan's counters apply to it
};
/// The device's own copy of `bytes`, with one configuration.
Rung device_copy(simt::Device& device, std::string name, void* to, const void* from,
                 std::size_t bytes);

/// A hardware counter read during launches of each rung's best configuration, never in a timed run.
struct Counter {
  std::string id;
  std::string unit;
  /// Sets of metrics to add up; the first set that the chip supports is used.
  std::vector<std::vector<std::string>> metrics;
  double scale = 1;
  /// Back to back. More than one for shares of elapsed cycles: counting begins before the first launch and ends
  /// after the last, and the latency between host and device is as long as a short kernel.
  int launches = 1;
};
/// Nothing if the chip supports none of the metric sets. Throws Cancelled.
std::optional<double> count(simt::Device& device, const Counter& counter,
                            const std::function<void()>& launch);

/// The pace of a turn in a round, unless a plan says otherwise.
inline constexpr Pace kTurn{kShown.settle_ms, 14, 7, 20};
/// Rungs that do the same work, and peers that do it too.
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
  /// Whether L2 is flushed before each sample; nothing: only if the data read and written would nearly fit it.
  std::optional<bool> flush_l2 = {};
};

/// A timed row: a rung or peer in its best configuration, or one configuration.
struct Timed {
  std::string name, variant, configuration;
  int chosen = -1;       ///< index of the configuration; −1: none was correct and fast enough
  Spread time_ms, rate;  ///< no samples if none was chosen
  /// By column id: `rung`, `why`, `configuration`, `time`, `rate` (also as `bandwidth` or `tflops`),
  /// `p10`, `p90`, `peer` (its rate), `fraction` (unless unstable), and those declared.
  Cells cells;

  bool timed() const { return rate.samples > 0; }
  /// The number in a cell; nothing if there is none.
  std::optional<double> number(std::string_view id) const;
};

/// The results of a plan, in its order.
struct Climb {
  std::vector<Timed> rungs, peers;
  std::vector<Timed> configurations;  ///< of rungs that had more than one to choose among
  std::vector<Measurement> measurements;

  void add(Climb other);
};

/// Climbs ladders and keeps their checks. First every configuration of every rung and peer is
/// compared with the reference; a wrong one is not timed. Then each is timed briefly to choose the
/// best. Then the best ones are timed in rounds, peers and rungs in turn, each after the clock has
/// settled, so that all meet the same conditions; the samples used to choose are discarded.
/// Hardware counters are read last, in separate runs.
class Ladder {
 public:
  explicit Ladder(simt::Device& device) : device_(device) {}

  /// Throws Cancelled; Error for a launch that the device refuses.
  Climb climb(const LadderPlan& plan, Progress& progress);

  /// Adds to a check a comparison made elsewhere, at other sizes.
  void judge(const std::string& id, const std::string& detail, const Closest& closest);
  /// One per id, in order of first appearance.
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

/// Appends `more` to `all`.
template <class T>
void append(std::vector<T>& all, std::vector<T> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// A number for a sentence: "1234 GB/s", "unstable: 900–1234 GB/s", or "not timed" for nullptr.
std::string headline(const Measurement* rate, int decimals);

/// Part of a run: its progress maps to `from`–`to` of the whole.
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
