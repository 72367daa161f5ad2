#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/lab/assets.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/workbench/finding_kind.hpp"
#include "kernels/base/workbench/judge.hpp"

namespace tilestep::lab {
namespace {

/// A row of the table `findings`.
struct FoundIn {
  std::string kind, text;
  bool mistake = false;
  int line = 0;  ///< 0: unknown

  /// "…, but d_in has 1000 elements (bounds, line 7)"
  std::string words() const {
    return line > 0 ? fmt::format("{} ({}, line {})", text, kind, line)
                    : fmt::format("{} ({})", text, kind);
  }
};

constexpr const char* kNoReport = "the program's report is incomplete";

const Table& table_of(const Report& report, std::string_view id, std::size_t columns) {
  const Table* table = report.table(id);
  if (table == nullptr || table->columns.size() < columns)
    throw Error(kNoReport, ExitCode::check_failed);
  return *table;
}

std::vector<FoundIn> findings_in(const Report& report) {
  const Table& table = table_of(report, "findings", 7);
  std::vector<FoundIn> all;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    FoundIn one{table.text(row, 0), table.text(row, 5), table.text(row, 1) != "no"};
    for (const std::size_t column : {std::size_t{2}, std::size_t{3}}) {
      const auto* line = std::get_if<double>(&table.rows[row].at(column));
      if (line != nullptr && one.line == 0) one.line = static_cast<int>(*line);
    }
    all.push_back(std::move(one));
  }
  return all;
}

const nlohmann::json& in_trace(const Report& report, const char* name) {
  const auto found = report.trace->find(name);
  if (found == report.trace->end()) throw Error(kNoReport, ExitCode::check_failed);
  return *found;
}

std::vector<std::string> printed_lines(const Report& report) {
  const nlohmann::json& printed = in_trace(report, "printed");
  std::istringstream stream(printed.is_string() ? printed.get<std::string>() : std::string());
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string quoted(const std::vector<std::string>& lines, std::size_t at) {
  return at < lines.size() ? fmt::format("'{}'", shown_value(lines[at])) : "nothing";
}

class ProgramJudge {
 public:
  ProgramJudge(const Exercise& exercise, std::string_view text, const RunProgram& run)
      : exercise_(exercise), text_(text), run_(run) {
    for (const ExerciseGoal& goal : exercise_.goals) {
      verdict_.goals.push_back({goal.text, std::nullopt, true});
    }
  }

  ExerciseVerdict verdict() {
    try {
      look();
    } catch (const Error& error) {
      // A missing compiler or sandbox is not the student's mistake.
      if (error.code() == ExitCode::unavailable) throw;
      fail_with(error);
    }
    if (verdict_.failed) return failed();
    verdict_.ok = true;
    verdict_.sentence =
        "Solved: no mistake found, and it prints the same as the solved program, in every order "
        "of the threads that was tried";
    for (const ExerciseGoal& goal : exercise_.goals) {
      verdict_.sentence += fmt::format("; {} finding", goal.text);
    }
    verdict_.sentence += ".";
    return std::move(verdict_);
  }

 private:
  ExerciseFailure& fail(HintKey kind, std::string what) {
    ExerciseFailure& failure = verdict_.failed.emplace();
    failure.kind = kind;
    failure.what = std::move(what);
    return failure;
  }

  void fail_with(const Error& error) {
    const bool compiles = dynamic_cast<const SourceError*>(&error) == nullptr;
    ExerciseFailure& failure = fail(compiles ? HintKey::crash : HintKey::compile, error.what());
    for (const Diagnostic& each : diagnostics_of(error)) {
      if (each.line > 0 && failure.line == 0) failure.line = each.line;
    }
  }

  void look() {
    ++verdict_.runs;
    const Report report = run_(text_);
    const std::vector<FoundIn> findings = findings_in(report);
    if (has_mistake(findings)) return;
    if (const nlohmann::json& status = in_trace(report, "status"); status != 0) {
      fail(HintKey::crash,
           fmt::format("the program ends with status {}; 0 says that it went well", status.dump()));
      return;
    }
    if (!prints_the_same(report)) return;
    verdict_.cases_right = 1;
    reaches_goals(findings);
  }

  bool has_mistake(const std::vector<FoundIn>& findings) {
    for (const FoundIn& each : findings) {
      if (!each.mistake) continue;
      if (verdict_.failed) {
        verdict_.failed->checks.push_back(each.kind);
        continue;
      }
      const bool crash = each.kind == name_of(FindingKind::crash);
      ExerciseFailure& failure = fail(crash ? HintKey::crash : HintKey::mistake, each.words());
      failure.checks = {each.kind};
      failure.line = each.line;
    }
    return verdict_.failed.has_value();
  }

  bool prints_the_same(const Report& report) {
    if (table_of(report, "launches", 1).rows.empty()) {
      fail(HintKey::prints, "the program launches no kernel");
      return false;
    }
    ++verdict_.runs;
    const Report solved = run_(asset(exercise_.program));
    const auto problems = findings_in(solved);
    if (!solved.ok()) {
      throw Error(fmt::format("the solved program of {} fails: {}", exercise_.id(),
                              problems.empty() ? solved.summary : problems.front().words()),
                  ExitCode::unavailable);
    }
    const std::vector<std::string> got = printed_lines(report), want = printed_lines(solved);
    if (got == want) return true;
    const auto differ =
        std::mismatch(got.begin(), got.end(), want.begin(), want.end()).first - got.begin();
    const auto at = static_cast<std::size_t>(differ);
    fail(HintKey::prints,
         fmt::format("line {} of the output is {}, and the solved program prints {}", at + 1,
                     quoted(got, at), quoted(want, at)));
    return false;
  }

  void reaches_goals(const std::vector<FoundIn>& findings) {
    for (std::size_t i = 0; i < exercise_.goals.size(); ++i) {
      const ExerciseGoal& goal = exercise_.goals[i];
      double count = 0;
      for (const FoundIn& each : findings) {
        if (each.kind != goal.id) continue;
        ++count;
        if (verdict_.failed) continue;
        ExerciseFailure& failure =
            fail(HintKey::goal, "the results are right, but " + each.words());
        failure.checks = {each.kind};
        failure.line = each.line;
      }
      verdict_.goals[i].value = count;
      verdict_.goals[i].ok = count == 0;
    }
    if (verdict_.failed) verdict_.failed->value = verdict_.goals.front().value.value_or(0);
  }

  /// The sentence and its hint.
  ExerciseVerdict failed() {
    const ExerciseFailure& failure = *verdict_.failed;
    // Goals count for results that are right.
    for (GoalResult& goal : verdict_.goals) goal.ok = goal.ok && goal.value.has_value();
    verdict_.sentence = fmt::format("Not yet: {}.", failure.what);
    const auto hint = std::find_if(exercise_.hints.begin(), exercise_.hints.end(),
                                   [&](const Hint& each) { return applies(each, failure); });
    if (hint != exercise_.hints.end()) verdict_.hint = hint->text;
    return std::move(verdict_);
  }

  bool applies(const Hint& hint, const ExerciseFailure& failure) const {
    switch (hint.key) {
      case HintKey::otherwise:
        return true;
      case HintKey::wrote:
        return wrote(exercise_, text_, hint.about);
      case HintKey::mistake:
        return failure.kind == HintKey::mistake && failure.failed(hint.about);
      default:
        return failure.kind == hint.key;
    }
  }

  const Exercise& exercise_;
  const std::string_view text_;
  const RunProgram& run_;
  ExerciseVerdict verdict_;
};

}  // namespace

ExerciseVerdict judge_program(const Exercise& exercise, std::string_view text,
                              const RunProgram& run) {
  return ProgramJudge(exercise, text, run).verdict();
}

}  // namespace tilestep::lab
