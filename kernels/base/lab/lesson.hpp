#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/lab/declared.hpp"
#include "kernels/base/lab/nearest.hpp"
#include "kernels/base/lab/report.hpp"
#include "kernels/base/lab/turn.hpp"
#include "kernels/base/simt/backends.hpp"
#include "kernels/base/simt/device.hpp"

namespace tilestep::lab {

/// Receives the progress of a run.
class Progress {
 public:
  virtual ~Progress() = default;
  /// `fraction` is 0–1; `note` names the current activity in a few words.
  virtual void report(double fraction, std::string_view note) = 0;
  /// The run is blocked by others; `note` says by which: "third in line for the GPU".
  virtual void wait(std::string_view note) { report(0, note); }
  /// True once the caller has cancelled the run; `check()` then throws Cancelled.
  virtual bool cancelled() const = 0;
  void check() const {
    if (cancelled()) throw Cancelled();
  }
};

/// A Progress that discards everything.
class NoProgress final : public Progress {
 public:
  void report(double, std::string_view) override {}
  bool cancelled() const override { return false; }
};

struct LessonInfo {
  std::string id;        ///< "online-softmax"
  std::string title;     ///< "Online softmax"
  std::string chapter;   ///< "Attention"
  std::string takeaway;  ///< one sentence, shown beside the title
  /// Id of the table that `tilestep run` shows; empty: the first of the report.
  std::string main_table = {};
};

struct Replay;  // replay.hpp
/// The Replay of a lesson that declares none.
const Replay& same_on_all_machines();

/// Non-default settings that a lesson has most to say about. `tilestep record` keeps a run of each, so
/// that a machine without a GPU can show them as a GPU ran them.
struct Telling {
  std::string name;  ///< also its file name: "no-barrier"
  std::string why;   ///< one sentence on what to look for
  Settings settings;
};

/// One lesson, without any UI. Stateless; every call is independent.
class Lesson {
 public:
  virtual ~Lesson() = default;
  virtual const LessonInfo& info() const = 0;
  virtual const Knobs& knobs() const = 0;
  /// Runs the traced kernel with `settings` (defaults for what is absent) and checks it against the
  /// reference. Throws Error for settings that are not allowed; calls `progress.check()` often.
  virtual Report run(const Settings& settings, simt::Device& device, Progress& progress) const = 0;
  /// Times the lesson's ladder of kernels beside the device's own peer. Needs device.can_time();
  /// throws Error (unavailable) otherwise.
  virtual Report bench(simt::Device& device, Progress& progress) const = 0;
  /// The knobs that a number belongs to where they differ from its run's: a bench number, or one of a
  /// kernel with its own settings. Nothing: it belongs to no setting of the knobs.
  virtual std::optional<Settings> case_of(const Measurement&) const { return std::nullopt; }
  /// At least three for a finished lesson, each accepted by `run` and different from the others and the
  /// defaults; a lesson in progress may have none.
  virtual std::span<const Telling> telling() const { return {}; }
  /// Settings that expose errors of an edited kernel beyond the current knobs, each quick under emulation: together
  /// they run every source that `run` can run, its variants, edges that fill no tile, masks without a key and other
  /// data. Each holds only the knobs that differ from the defaults.
  virtual std::span<const Settings> trials() const { return {}; }
  /// The bench at sizes that are quick under emulation, on a device without a clock: only its checks matter, of
  /// kernels that no run launches. By default nothing: the lesson's runs launch everything that can be emulated.
  virtual std::optional<Report> small_bench(simt::Device&, Progress&) const { return std::nullopt; }
  /// The parts of a run that depend on the machine rather than the kernel. By default none.
  virtual const Replay& replay() const { return same_on_all_machines(); }
};

/// Throws Error (unavailable) saying why `what` cannot be timed here, if it cannot.
void require_timing(const simt::Device& device, std::string_view what);

/// While this object lives, the device can ask whether the run was cancelled.
class StopWhenCancelled {
 public:
  StopWhenCancelled(simt::Device& device, const Progress& progress) : device_(device) {
    device_.stop_when([&progress] { return progress.cancelled(); });
  }
  ~StopWhenCancelled() { device_.stop_when({}); }
  StopWhenCancelled(const StopWhenCancelled&) = delete;
  StopWhenCancelled& operator=(const StopWhenCancelled&) = delete;

 private:
  simt::Device& device_;
};

/// A lesson made of its parts. All that `my_lesson/lesson.cpp` needs:
///
///     struct Params { int keys = 16; };
///
///     lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
///       const auto& kernels = static_cast<const Kernels&>(device.kernels(kLessonId));
///       …launch, compare with the reference…
///       lab::Report report;
///       report.summary = "…";            // one sentence
///       report.tables.push_back(…);      // and measurements, checks, trace
///       return report;
///     }
///
///     const lab::Lesson& lesson() {
///       static const auto knobs = lab::KnobTable<Params>().integer(
///           &Params::keys, {"keys", "Keys", "", "How many keys there are."}, 1, 64);
///       static const lab::LessonOf<Params> lesson(
///           kLesson, "Load a tile once, use it many times.", knobs, run);
///       return lesson;
///     }
///
/// `kLesson` is the lesson's line of lessons.def; see kernels/lessons.hpp.
///
/// It checks the settings, stops the device when the caller cancels, makes users that time on one GPU
/// take turns, and fills in the members
/// of every report: lesson, params and device.
template <class Params>
class LessonOf final : public Lesson {
 public:
  using Run = Report (*)(const Params& params, simt::Device& device, Progress& progress);
  /// Its report is about the default params, except where its tables say otherwise.
  using Bench = std::function<Report(simt::Device& device, Progress& progress)>;

  /// `takeaway` and `main_table` as in LessonInfo. A lesson need not have a bench.
  LessonOf(const LessonName& name, std::string takeaway, KnobTable<Params> table, Run to_run,
           Bench to_bench = nullptr, std::string main_table = {})
      : info_{std::string(name.id), std::string(name.title), std::string(name.chapter),
              std::move(takeaway), std::move(main_table)},
        table_(std::move(table)),
        knobs_(table_.knobs()),
        run_(to_run),
        bench_(std::move(to_bench)) {}
  /// The same for a bench that tests call with small sizes; here it gets `Sizes()`.
  template <class Sizes>
  LessonOf(const LessonName& name, std::string takeaway, KnobTable<Params> table, Run to_run,
           Report (*to_bench)(simt::Device&, Progress&, const Sizes&), std::string main_table = {})
      : LessonOf(
            name, std::move(takeaway), std::move(table), to_run,
            [to_bench](simt::Device& device, Progress& progress) {
              return to_bench(device, progress, Sizes());
            },
            std::move(main_table)) {}

  using CaseOf = std::optional<Settings> (*)(const Measurement& measurement);
  /// The same lesson, with the settings each number belongs to (`case_of`).
  LessonOf with_cases(CaseOf to_case_of) const {
    LessonOf lesson = *this;
    lesson.case_of_ = to_case_of;
    return lesson;
  }

  /// Telling, with its settings as Params: {"no-barrier", "One order of …", {.tile = 16}}.
  struct Told {
    std::string name, why;
    Params params;
  };
  /// The same lesson with its telling settings (`telling`).
  LessonOf with_telling(const std::vector<Told>& all) const {
    LessonOf lesson = *this;
    for (const Told& one : all) {
      lesson.telling_.push_back({one.name, one.why, table_.settings(one.params)});
    }
    return lesson;
  }
  /// The same lesson with its trial settings (`trials`).
  LessonOf with_trials(const std::vector<Params>& all) const {
    LessonOf lesson = *this;
    for (const Params& one : all) {
      lesson.trials_.push_back(differing(table_.settings(one), knobs_.defaults()));
    }
    return lesson;
  }
  /// The same lesson with its bench at small sizes (`small_bench`).
  LessonOf with_small_bench(Bench to_bench) const {
    LessonOf lesson = *this;
    lesson.small_bench_ = std::move(to_bench);
    return lesson;
  }
  /// The same lesson, with the parts of its runs that depend on the machine (`replay`).
  LessonOf with_replay(const Replay& (*to_replay)()) const {
    LessonOf lesson = *this;
    lesson.replay_ = to_replay;
    return lesson;
  }

  const LessonInfo& info() const override { return info_; }
  const Knobs& knobs() const override { return knobs_; }
  std::span<const Telling> telling() const override { return telling_; }
  std::span<const Settings> trials() const override { return trials_; }
  std::optional<Report> small_bench(simt::Device& device, Progress& progress) const override {
    if (small_bench_ == nullptr) return std::nullopt;
    const StopWhenCancelled stop(device, progress);
    return small_bench_(device, progress);
  }
  const Replay& replay() const override { return replay_(); }
  std::optional<Settings> case_of(const Measurement& measurement) const override {
    return case_of_ == nullptr ? std::nullopt : case_of_(measurement);
  }

  Report run(const Settings& settings, simt::Device& device, Progress& progress) const override {
    const Params params = table_.params(settings);
    const StopWhenCancelled stop(device, progress);
    const Turn turn(device, progress);
    return completed(run_(params, device, progress), params, turn, device, progress);
  }

  Report bench(simt::Device& device, Progress& progress) const override {
    if (bench_ == nullptr) {
      throw Error("the lesson " + info_.id + " has nothing to time", ExitCode::unavailable);
    }
    require_timing(device, "the lesson " + info_.id);
    const StopWhenCancelled stop(device, progress);
    const Turn turn(device, progress);
    return completed(bench_(device, progress), Params{}, turn, device, progress);
  }

 private:
  Report completed(Report report, const Params& params, const Turn& turn,
                   const simt::Device& device, Progress& progress) const {
    report.lesson = info_.id;
    report.params = table_.settings(params);
    report.device = device.info();
    report.turn = turn.times();
    progress.report(1, "done");
    return report;
  }

  LessonInfo info_;
  KnobTable<Params> table_;
  Knobs knobs_;
  Run run_;
  Bench bench_, small_bench_;
  CaseOf case_of_ = nullptr;
  std::vector<Telling> telling_;
  std::vector<Settings> trials_;
  const Replay& (*replay_)() = same_on_all_machines;
};

/// A request to a lab.
struct Request {
  enum class Action {
    run,
    bench,
    trials,  ///< for an edited kernel only: runs it at the lesson's trial settings (workbench/trials.hpp)
  };
  std::string lesson;
  Settings params;
  Action action = Action::run;
  std::string backend = "auto";  ///< auto, cuda, emulated or recorded
  /// A source of the lesson edited by the user: the kernels are compiled with it first.
  std::optional<KernelEdit> kernel = std::nullopt;
  /// The order in which the emulation runs the threads of a block between barriers.
  simt::ThreadOrder order = simt::ThreadOrder::ascending;
  /// For an emulated edited kernel: whether to run its threads in other orders too, the check `thread_order`
  /// (workbench/orders.hpp). A run without it finishes sooner, and `trials` of the same knobs can do the check.
  bool orders = true;
};
constexpr auto names_of(Request::Action) {
  return std::to_array<std::string_view>({"run", "bench", "trials"});
}
nlohmann::json to_json(const Request& request);
/// Throws Error naming the allowed values.
Request request_from_json(const nlohmann::json& json);

}  // namespace tilestep::lab
