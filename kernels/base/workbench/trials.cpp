#include "kernels/base/workbench/trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "kernels/base/lab/plural.hpp"
#include "kernels/base/simt/emulator/clockless.hpp"
#include "kernels/base/workbench/fault_lines.hpp"
#include "kernels/base/workbench/guarded.hpp"
#include "kernels/base/workbench/orders.hpp"
#include "kernels/base/workbench/sources.hpp"

namespace tilestep::workbench {
namespace {

using Clock = std::chrono::steady_clock;
using simt::ThreadOrder;

constexpr const char* kTable = "trials";
constexpr const char* kSmallBench = "the bench at small sizes";

/// What a lesson's trace says a kernel asks of the machine, by the measurement's id, and its words.
constexpr std::pair<std::string_view, std::string_view> kCosts[] = {
    {"sectors_per_request", "sectors/request"},   {"bank_ways", "bank-conflict ways"},
    {"bank_conflict_ways", "bank-conflict ways"}, {"global_loads", "loads from global memory"},
    {"bytes_fetched", "bytes fetched"},           {"asked_bytes", "bytes read and written"},
};
/// A cost that grew by less than this is no news.
constexpr double kNoteworthy = 1.001;

/// What the checks have found wrong, as the end of a sentence; empty: nothing. Who uses shared memory without a barrier is
/// told first: the wrong numbers come of it.
std::string found_in(const lab::Report& report) {
  const lab::Check* worst = nullptr;
  for (const lab::Check& check : report.checks) {
    if (check.ok) continue;
    for (const char* watched : {"shared_memory", "global_memory", "array_bounds", kOrderCheck}) {
      if (check.id == watched) return check.detail;
    }
    if (worst == nullptr) worst = &check;
  }
  if (worst == nullptr) return {};
  const lab::Check& check = *worst;
  if (std::isnan(check.max_error)) return fmt::format("the check {} finds NaN", check.id);
  if (std::isinf(check.max_error)) {
    return fmt::format("the check {} finds NaN or an infinity", check.id);
  }
  return fmt::format("the check {} is off by {:.3g}, and {:.3g} is allowed", check.id,
                     check.max_error, check.tolerance);
}

class Trials {
 public:
  Trials(const TrialRun& run, lab::Progress& progress)
      : run_(run),
        progress_(progress),
        module_{run.kernels.file(), run.path},
        shared_(is_shared(run.lesson.info().id, run.path)) {}

  lab::Report report() {
    if (run_.orders_at) try_orders();
    if (order_ && !order_->ok) return made();
    const auto all = run_.lesson.trials();
    const auto start = Clock::now();
    for (std::size_t i = 0; i < all.size(); ++i) {
      progress_.check();
      progress_.report(static_cast<double>(i) / static_cast<double>(all.size()),
                       fmt::format("{} ({} of {})", words_of(all[i]), i + 1, all.size()));
      Trial trial{words_of(all[i]), Trial::Result::not_tried, "", ""};
      if (lost_ || Clock::now() - start > run_.budget) {
        trials_.push_back(std::move(trial));
      } else if (tried(trial, all[i])) {
        trials_.push_back(std::move(trial));
      }
    }
    if (trials_.empty()) try_bench();
    return made();
  }

 private:
  void try_orders() {
    progress_.report(0, "other orders of the threads");
    const auto run = [&](const simt::EmulationOptions& options) {
      const auto begin = Clock::now();
      const auto device = simt::make_emulated_device(run_.kernels.table(), options);
      lab::Report first = run_.lesson.run(*run_.orders_at, *device, progress_);
      const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
      check_orders(
          first,
          {run_.lesson, *run_.orders_at, run_.kernels.table(), run_.original, options, module_},
          took, progress_);
      // The others were said of the run that was there before.
      std::erase_if(first.checks, [](const lab::Check& check) { return check.id != kOrderCheck; });
      return first;
    };
    Trial trial;
    const auto first = attempt(trial, run, ThreadOrder::ascending);
    if (trial.result == Trial::Result::wrong) {
      order_ = lab::Check{kOrderCheck, false, 0, 0, trial.found};
    } else {
      for (const lab::Check& check : first->checks) {
        if (check.id == kOrderCheck) order_ = check;
      }
    }
  }

  /// False: it runs nothing of the source.
  bool tried(Trial& trial, const lab::Settings& settings) {
    const auto run = [&](const simt::EmulationOptions& options) {
      const auto device = simt::make_emulated_device(run_.kernels.table(), options);
      return run_.lesson.run(settings, *device, progress_);
    };
    const auto ascending = attempt(trial, run, ThreadOrder::ascending);
    if (!launches_edited()) return false;
    if (trial.result == Trial::Result::wrong) return true;
    attempt_shuffled(trial, run);
    if (trial.result != Trial::Result::wrong && has_cost(*ascending)) {
      const auto device = simt::make_emulated_device(run_.original);
      trial.cost = cost_of(*ascending, run_.lesson.run(settings, *device, progress_));
    }
    return true;
  }

  /// Of a source that no setting reaches: the bench, small, has its checks.
  void try_bench() {
    progress_.report(0.9, kSmallBench);
    const auto bench = [&](const simt::EmulationOptions& options) {
      simt::emulated::ClocklessDevice device(run_.kernels.table(), options);
      return run_.lesson.small_bench(device, progress_).value_or(lab::Report());
    };
    Trial trial{kSmallBench, Trial::Result::not_tried, "", ""};
    limits_.deadline = std::chrono::seconds(60);  // of many launches
    const auto start = Clock::now();
    attempt(trial, bench, ThreadOrder::ascending);
    if (!launches_edited()) return;
    // Whoever asks ends a trial after a minute, and takes that for a loop without end.
    const bool again =
        trial.result != Trial::Result::wrong && Clock::now() - start < run_.budget / 2;
    if (again) attempt_shuffled(trial, bench);
    trials_.push_back(std::move(trial));
  }

  template <class Run>
  void attempt_shuffled(Trial& trial, const Run& run) {
    attempt(trial, run, ThreadOrder::shuffled);
    if (trial.result == Trial::Result::wrong) {
      trial.found += ", with the threads of a block in shuffled order";
    }
  }

  /// Calls `run` once with the options of its device. Nothing: there is no report.
  template <class Run>
  std::optional<lab::Report> attempt(Trial& trial, const Run& run, ThreadOrder order) {
    launched_.clear();
    trial.result = Trial::Result::right;
    try {
      lab::Report report = guarded(
          module_, [&] { return run({.order = order, .launched = &launched_}); }, limits_);
      trial.found = found_in(report);
      if (trial.found.empty()) return report;
    } catch (const Cancelled&) {
      throw;
    } catch (const KernelStopped& stopped) {
      trial.found = stopped.what();
      lost_ = true;
    } catch (const lab::SourceError& error) {
      trial.found = error.what();
    } catch (const Error& error) {
      if (error.code() == ExitCode::unavailable) throw;
      trial.found = error.what();
    } catch (const std::out_of_range&) {  // the lesson looks up what a trace has to have
      trial.found = "its trace does not fit the lesson";
    }
    trial.result = Trial::Result::wrong;
    return std::nullopt;
  }

  bool launches_edited() {
    std::sort(launched_.begin(), launched_.end());
    launched_.erase(std::unique(launched_.begin(), launched_.end()), launched_.end());
    return stand_in_source(launched_, module_, shared_);
  }

  static bool has_cost(const lab::Report& report) {
    return std::any_of(std::begin(kCosts), std::end(kCosts), [&](const auto& cost) {
      return std::any_of(report.measurements.begin(), report.measurements.end(),
                         [&](const lab::Measurement& each) { return each.id == cost.first; });
    });
  }

  lab::Report made() const {
    lab::Report report;
    report.lesson = run_.lesson.info().id;
    report.params = run_.lesson.knobs().defaults();
    report.device = simt::make_emulated_device(run_.kernels.table())->info();
    report.kernel = run_.kernels.info();
    report.device_lost = lost_;
    if (order_) report.add(*order_);
    report.summary = order_ && !order_->ok ? order_->detail : sentence_of(trials_);
    lab::Table table{kTable,
                     "At the lesson's trial settings",
                     {lab::column("knobs", "knobs"), lab::column("result", "result"),
                      lab::column("found", "found"), lab::column("cost", "beside the original")}};
    std::int64_t wrong = 0;
    for (const Trial& each : trials_) {
      table.add({each.knobs, each.result, each.found, each.cost});
      wrong += each.result == Trial::Result::wrong ? 1 : 0;
    }
    report.add(std::move(table));
    if (trials_.empty()) return report;  // nothing was held true
    report.add({kTable, wrong == 0, static_cast<double>(wrong), 0, report.summary});
    return report;
  }

  const TrialRun& run_;
  lab::Progress& progress_;
  const EditedModule module_;
  const bool shared_;
  RunLimits limits_;
  std::vector<const void*> launched_;  ///< by the last attempt
  std::vector<Trial> trials_;
  std::optional<lab::Check> order_;  ///< whether other orders of the threads give the same
  bool lost_ = false;                ///< a kernel was stopped in the middle of something
};

}  // namespace

lab::Report run_trials(const TrialRun& run, lab::Progress& progress) {
  return Trials(run, progress).report();
}

std::vector<Trial> trials_of(const lab::Report& report) {
  const lab::Table* table = report.table(kTable);
  std::vector<Trial> all;
  if (table == nullptr || table->columns.size() < 4) return all;
  for (std::size_t i = 0; i < table->rows.size(); ++i) {
    all.push_back({table->text(i, 0),
                   named<Trial::Result>(table->text(i, 1)).value_or(Trial::Result::not_tried),
                   table->text(i, 2), table->text(i, 3)});
  }
  return all;
}

const Trial* first_wrong(const std::vector<Trial>& trials) {
  const auto found = std::find_if(trials.begin(), trials.end(), [](const Trial& each) {
    return each.result == Trial::Result::wrong;
  });
  return found == trials.end() ? nullptr : &*found;
}

std::string sentence_of(const std::vector<Trial>& trials) {
  if (trials.empty()) {
    return "None of this source runs under emulation; tilestep bench runs it on its GPU.";
  }
  const auto count = [&](Trial::Result result) {
    return std::count_if(trials.begin(), trials.end(),
                         [&](const Trial& each) { return each.result == result; });
  };
  if (const Trial* wrong = first_wrong(trials)) {
    const auto others = count(Trial::Result::wrong) - 1;
    return fmt::format("Wrong with {}{}: {}.", wrong->knobs,
                       others == 0 ? "" : " and " + lab::plural(others, "other setting"),
                       wrong->found);
  }
  const auto right = count(Trial::Result::right);
  const auto all = static_cast<std::int64_t>(trials.size());
  if (right == all && trials.front().knobs == kSmallBench) {
    return fmt::format("Right in {}; no run of the lesson reaches this source.", kSmallBench);
  }
  std::string text =
      right == all
          ? fmt::format("Right with {}.", all == 1 ? "the one setting that tells"
                                                   : fmt::format("all {} settings that tell", all))
          : fmt::format("Right with {} of {} settings that tell; there was no time for the others.",
                        right, all);
  const auto dear = std::find_if(trials.begin(), trials.end(),
                                 [](const Trial& each) { return !each.cost.empty(); });
  if (dear != trials.end()) text += fmt::format(" With {} it takes {}.", dear->knobs, dear->cost);
  return text;
}

std::string words_of(const lab::Settings& differing) {
  std::string words;
  for (const auto& [id, value] : differing) {
    words += fmt::format("{}{}={}", words.empty() ? "" : " ", id, lab::to_text(value));
  }
  return words.empty() ? "defaults" : words;
}

std::string cost_of(const lab::Report& edited, const lab::Report& original) {
  double most = kNoteworthy;
  std::string words;
  for (const auto& [id, name] : kCosts) {
    for (const lab::Measurement& now : edited.measurements) {
      if (now.id != id || now.provenance != lab::Provenance::traced) continue;
      const lab::Measurement* then = original.measurement(now.id, now.variant);
      if (then == nullptr || !(then->value > 0) || !(now.value / then->value > most)) continue;
      most = now.value / then->value;
      words = fmt::format("{:.3g} times the {} of the original ({:.6g} against {:.6g})", most, name,
                          now.value, then->value);
    }
  }
  return words;
}

}  // namespace tilestep::workbench
