#include "kernels/base/workbench/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/base/workbench/orders.hpp"

namespace tilestep::lab {
namespace {

using workbench::kOrderCheck;

// Checks that every run of an edited kernel has beside the lesson's (orders.hpp, guarded.hpp).
constexpr std::string_view kSharedCheck = "shared_memory", kGlobalCheck = "global_memory",
                           kBoundsCheck = "array_bounds";

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Which kind of failure an error of a run is, by what the workbench, the emulation and the lab say.
HintKey kind_of(std::string_view error) {
  const std::pair<std::string_view, HintKey> kinds[] = {
      {"does not compile", HintKey::compile},
      {"cannot be linked", HintKey::compile},
      {"cannot be used: no kernels", HintKey::compile},
      {"was not compiled within", HintKey::compile},
      {"the lesson's kernels have to be in it", HintKey::compile},
      {"elements (allowed", HintKey::bounds},
      {"of a shared array where", HintKey::bounds},
      {"as vectors of", HintKey::bounds},
      {"dynamic shared memory from byte", HintKey::bounds},
      {"bytes of shared memory from address", HintKey::bounds},
      {"may still be under way", HintKey::unsafe},
      {"may still read", HintKey::unsafe},
      {"is missing", HintKey::unsafe},
      {"must come together", HintKey::barrier},
      {"must reach the same one", HintKey::barrier},
      {" waits in ", HintKey::barrier},
      {" waits at ", HintKey::barrier},
      {"without wgmma_wait", HintKey::unsafe},
      {"without store_wait", HintKey::unsafe},
      {"before it has waited", HintKey::unsafe},
      {"took longer than", HintKey::deadline},
      {"still runs after", HintKey::deadline},
      {"was ended: the run has taken", HintKey::deadline},
      {"had not ended after", HintKey::deadline},
  };
  for (const auto& [part, kind] : kinds) {
    if (contains(error, part)) return kind;
  }
  return HintKey::crash;
}

/// What an error says to a student.
std::string words_of_error(std::string_view error) {
  // The lesson looks up by number what the kernel's trace should have.
  if (contains(error, "_M_range_check") || contains(error, "::at")) {
    return "its trace does not fit the lesson: accesses are missing, or are others than those of "
           "this "
           "kernel";
  }
  return std::string(error);
}

/// The code without white space.
std::string dense(std::string_view code) {
  std::string text;
  for (const char c : code) {
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') text += c;
  }
  return text;
}

std::size_t count_in(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// The words of a case: "with preset=rising keys=48", "with the lesson's own settings".
std::string words_of(const ExerciseCase& one) {
  if (one.assignments.empty()) return "with the lesson's own settings";
  std::string words = "with";
  for (const std::string& each : one.assignments) words += " " + each;
  return words;
}

std::string of_order(simt::ThreadOrder order) {
  if (order == simt::ThreadOrder::ascending) return "";
  return fmt::format(", threads in {} order", name_of(order));
}

/// The number that a goal is about, of a table the largest in its column; nothing: the report has none.
std::optional<double> value_of(const ExerciseGoal& goal, const Report& report) {
  if (goal.column.empty()) {
    const Measurement* found = report.measurement(goal.id, goal.variant);
    return found == nullptr ? std::nullopt : std::optional(found->value);
  }
  const Table* table = report.table(goal.id);
  if (table == nullptr) return std::nullopt;
  const auto column = std::find_if(table->columns.begin(), table->columns.end(),
                                   [&](const Column& each) { return each.id == goal.column; });
  if (column == table->columns.end()) return std::nullopt;
  const auto at = static_cast<std::size_t>(column - table->columns.begin());
  std::optional<double> largest;
  for (const auto& row : table->rows) {
    const auto* value = std::get_if<double>(&row.at(at));
    if (value == nullptr) continue;
    if (!largest || *value > *largest) largest = *value;
  }
  return largest;
}

bool holds(const ExerciseGoal& goal, std::optional<double> value) {
  return value && (goal.at_most ? *value <= goal.bound : *value >= goal.bound);
}

class Judge {
 public:
  Judge(const Exercise& exercise, std::string_view kernel, const Knobs& knobs, const RunKernel& run,
        const std::function<std::int64_t()>& draw_seed, JudgeUntil until)
      : exercise_(exercise),
        kernel_(kernel),
        knobs_(knobs),
        run_(run),
        draw_seed_(draw_seed),
        until_(until) {
    for (const ExerciseGoal& goal : exercise_.goals) {
      verdict_.goals.push_back({goal.text, std::nullopt, true});
    }
  }

  ExerciseVerdict verdict() {
    // This run is what compiles the kernel: no seed of the others is known by then.
    const bool begun = passes(exercise_.cases.front(), simt::ThreadOrder::ascending);
    for (const ExerciseCase& one : exercise_.cases) {
      if (!goes_on()) return failed();
      if (!begun && &one == &exercise_.cases.front()) continue;
      if (right_in_all_orders(one)) ++verdict_.cases_right;
    }
    if (verdict_.failed) return failed();
    // Wrong results would say nothing about goals, so that these come last.
    for (std::size_t i = 0; i < exercise_.goals.size(); ++i) {
      if (!verdict_.goals[i].ok) return missed(exercise_.goals[i], verdict_.goals[i]);
    }
    verdict_.ok = true;
    verdict_.sentence =
        fmt::format("Solved: right in {}, {}{}", count_of(exercise_.cases.size(), "case"),
                    on_gpu_.empty() ? "in every order of the threads" : "on " + on_gpu_,
                    exercise_.goals.empty() ? "." : ", and " + goals_in_words() + ".");
    return std::move(verdict_);
  }

 private:
  bool goes_on() const {
    if (!verdict_.failed) return true;
    const HintKey kind = verdict_.failed->kind;
    return until_ == JudgeUntil::end && kind != HintKey::compile && kind != HintKey::deadline &&
           kind != HintKey::crash;
  }

  bool right_in_all_orders(const ExerciseCase& one) {
    for (const auto order : all_of<simt::ThreadOrder>()) {
      if (!passes(one, order)) return false;
      if (orders_compared_) break;
    }
    return true;
  }

  static std::string count_of(std::size_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  }

  std::string goals_in_words() const {
    std::string words;
    for (const GoalResult& goal : verdict_.goals) {
      words += fmt::format("{}{} (it is {:.4g})", words.empty() ? "" : ", ", goal.text,
                           goal.value.value_or(0));
    }
    return words;
  }

  Settings settings_of(const ExerciseCase& one) {
    Settings settings;
    for (const std::string& each : one.assignments) knobs_.set(settings, each);
    const auto all = knobs_.all();
    const bool seeded =
        std::any_of(all.begin(), all.end(), [](const Knob& knob) { return knob.id == "seed"; });
    if (seeded && verdict_.runs > 0 && !settings.contains("seed")) {
      settings["seed"] = draw_seed_();
    }
    return settings;
  }

  /// What went wrong in one run; nothing: nothing did.
  std::optional<ExerciseFailure> look(const ExerciseCase& one, simt::ThreadOrder order,
                                      const Settings& settings) {
    ExerciseFailure failure;
    failure.case_name = one.name;
    failure.order = order;
    ++verdict_.runs;
    try {
      orders_compared_ = false;
      for (const Report& report : run_(settings, order)) take(report, one, failure);
      if (!failure.checks.empty()) return failure;
      return std::nullopt;
    } catch (const Error& error) {
      const auto diagnostics = diagnostics_of(error);
      failure.kind = kind_of(error.what());
      // No compiler and no worker are nobody's mistake.
      const bool of_kernel = failure.kind != HintKey::crash ||
                             error.code() != ExitCode::unavailable || worker_died(error.what());
      if (!of_kernel) throw;
      for (const Diagnostic& each : diagnostics) {
        if (each.line > 0 && failure.line == 0) failure.line = each.line;
      }
      failure.what = failure.kind == HintKey::compile
                         ? error.what()
                         : fmt::format("{} the kernel fails{}: {}", words_of(one), of_order(order),
                                       words_of_error(error.what()));
      if (failure.kind == HintKey::compile) failure.case_name.clear();
      return failure;
    }
  }

  /// Notes what a report has of goals and of checks that failed.
  void take(const Report& report, const ExerciseCase& one, ExerciseFailure& failure) {
    note_goals(one, report);
    // A GPU runs the threads in an order of its own.
    on_gpu_ = report.device.backend == "cuda" ? report.device.name : "";
    for (const Check& check : report.checks) {
      orders_compared_ |= check.id == kOrderCheck;
      if (check.ok) continue;
      failure.checks.push_back(check.id);
      if (failure.checks.size() > 1) continue;  // the first is told of
      failure.kind = HintKey::check;
      failure.value = check.max_error;
      failure.bound = check.tolerance;
      failure.what = what_failed(one, check, failure.order);
    }
    orders_compared_ |= !on_gpu_.empty();
  }

  static std::string what_failed(const ExerciseCase& one, const Check& check,
                                 simt::ThreadOrder order) {
    // These say in their detail what was wrong where.
    const bool of_memory =
        check.id == kSharedCheck || check.id == kGlobalCheck || check.id == kBoundsCheck;
    if (check.id == kOrderCheck || (of_memory && contains(check.detail, "; no"))) {
      return fmt::format("{} the result depends on the order of the threads: {}", words_of(one),
                         check.detail);
    }
    if (of_memory) return fmt::format("{} {}", words_of(one), check.detail);
    return fmt::format("{} the check '{}' fails: it is off by {:.4g}, and {:.4g} is allowed{}",
                       words_of(one), check.id, check.max_error, check.tolerance, of_order(order));
  }

  static bool worker_died(std::string_view error) {
    return contains(error, "worker") || contains(error, "_M_range_check") ||
           contains(error, "::at") || contains(error, "not enough memory");
  }

  void note_goals(const ExerciseCase& one, const Report& report) {
    for (std::size_t i = 0; i < exercise_.goals.size(); ++i) {
      const ExerciseGoal& goal = exercise_.goals[i];
      if (!goal.in_case.empty() && goal.in_case != one.name) continue;
      const std::optional<double> value = value_of(goal, report);
      GoalResult& result = verdict_.goals[i];
      if (!result.ok) continue;
      result.ok = holds(goal, value);
      const bool worse = !result.value || !value ||
                         (goal.at_most ? *value > *result.value : *value < *result.value);
      if (worse) result.value = value;
    }
  }

  bool passes(const ExerciseCase& one, simt::ThreadOrder order) {
    const Settings settings = settings_of(one);
    std::optional<ExerciseFailure> failure = look(one, order, settings);
    if (!failure) return true;
    if (verdict_.failed) return false;                           // the first is told of
    if (failure->kind == HintKey::check && !orders_compared_) {  // is it the order that matters?
      for (const auto other : all_of<simt::ThreadOrder>()) {
        if (other == order || failure->other_order_passes) continue;
        failure->other_order_passes = !look(one, other, settings);
      }
    }
    verdict_.failed = std::move(failure);
    return false;
  }

  ExerciseVerdict failed() {
    if (verdict_.failed->other_order_passes) {
      verdict_.failed->what += "; with the threads in another order it is right";
    }
    return conclude();
  }

  ExerciseVerdict missed(const ExerciseGoal& goal, const GoalResult& result) {
    ExerciseFailure failure;
    failure.kind = HintKey::goal;
    failure.case_name = goal.in_case;
    failure.bound = goal.bound;
    failure.value = result.value.value_or(std::nan(""));
    failure.what =
        result.value
            ? fmt::format("the results are right, but {} is {:.4g}; the goal is {} {:.4g}", goal.id,
                          *result.value, goal.at_most ? "at most" : "at least", goal.bound)
            : fmt::format("the results are right, but nothing was traced for the goal {}",
                          goal.text);
    verdict_.failed = std::move(failure);
    return conclude();
  }

  /// The sentence and its hint.
  ExerciseVerdict conclude() {
    const ExerciseFailure& failure = *verdict_.failed;
    verdict_.sentence = fmt::format("Not yet: {}.", failure.what);
    for (const Hint& hint : exercise_.hints) {
      if (!applies(hint, failure)) continue;
      verdict_.hint = hint.text;
      break;
    }
    return std::move(verdict_);
  }

  bool applies(const Hint& hint, const ExerciseFailure& failure) const {
    switch (hint.key) {
      case HintKey::otherwise:
        return true;
      case HintKey::order:
        return failure.other_order_passes || failure.failed(kOrderCheck);
      case HintKey::check:
        return failure.failed(hint.about);
      case HintKey::case_:
        return failure.case_name == hint.about;
      case HintKey::wrote:
        return wrote(exercise_, kernel_, hint.about);
      default:
        return failure.kind == hint.key;
    }
  }

  const Exercise& exercise_;
  const std::string_view kernel_;
  const Knobs& knobs_;
  const RunKernel& run_;
  const std::function<std::int64_t()>& draw_seed_;
  const JudgeUntil until_;
  ExerciseVerdict verdict_;
  bool orders_compared_ = false;  ///< by the last run itself, or there is no choice of them
  std::string on_gpu_;            ///< its name; empty: emulated
};

}  // namespace

bool wrote(const Exercise& exercise, std::string_view text, std::string_view code) {
  const std::string words = dense(code);
  return count_in(dense(text), words) > count_in(dense(starter(exercise)), words);
}

ExerciseVerdict judge(const Exercise& exercise, std::string_view kernel, const Knobs& knobs,
                      const RunKernel& run, const std::function<std::int64_t()>& draw_seed,
                      JudgeUntil until) {
  return Judge(exercise, kernel, knobs, run, draw_seed, until).verdict();
}

ExercisePoints points_of(const Exercise& exercise, const ExerciseVerdict& verdict, bool timed) {
  const std::size_t speeds = timed ? exercise.speeds.size() : 0;
  const std::size_t cases = exercise.is_program() ? 1 : exercise.cases.size();
  ExercisePoints points{verdict.cases_right,
                        static_cast<int>(cases + exercise.goals.size() + speeds)};
  if (verdict.cases_right < static_cast<int>(cases)) return points;
  for (const GoalResult& goal : verdict.goals) points.got += goal.ok && goal.judged;
  return points;
}

}  // namespace tilestep::lab
