#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/lesson.hpp"
#include "kernels/base/workbench/exercise.hpp"

/// Whether a student's kernel does what an exercise asks.
namespace tilestep::lab {

/// The first failure.
struct ExerciseFailure {
  HintKey kind = HintKey::crash;  ///< compile … crash, check, goal, speed, mistake or prints
  std::string what;               ///< one sentence without its end
  std::vector<std::string>
      checks;  ///< ids of those that failed, or a program's kinds of mistakes; `what` is about the first
  std::string case_name;  ///< empty: it was not run
  simt::ThreadOrder order = simt::ThreadOrder::ascending;
  bool other_order_passes = false;  ///< right in another order of the threads
  double value = 0, bound = 0;      ///< of a check: error and tolerance; of a goal
  int line = 0;                     ///< of the student's file; 0: unknown

  bool failed(std::string_view check) const {
    return std::find(checks.begin(), checks.end(), check) != checks.end();
  }
};

/// The value a goal was compared with: the worst of all cases.
struct GoalResult {
  std::string text;
  std::optional<double> value;  ///< nothing: the report has no such number
  bool ok = false;
  bool judged = true;  ///< a speed is judged on a GPU alone
};

struct ExerciseVerdict {
  bool ok = false;
  std::string sentence;  ///< for the student
  std::string hint;      ///< advice; empty if it passed
  std::optional<ExerciseFailure> failed;
  std::vector<GoalResult> goals;
  int runs = 0;  ///< how often the kernel ran
  int cases_right =
      0;  ///< in every order of the threads; all that would be only if the judge goes on
};

/// A point for each case and each goal; goals count where all cases are right. A program is one case.
struct ExercisePoints {
  int got = 0, most = 0;
};
/// `timed`: rates are goals too.
ExercisePoints points_of(const Exercise& exercise, const ExerciseVerdict& verdict, bool timed);

/// Whether the judge ends with the first failure, or tries the other cases too, for points: of a kernel that compiles,
/// ends and does not take its process with it.
enum class JudgeUntil { failure, end };

/// Runs the student's kernel and answers its reports: the one that its own process gives and, if that is good, what others
/// make of its outputs. Each has to be good. Throws Error, as `answer` does.
using RunKernel =
    std::function<std::vector<Report>(const Settings& settings, simt::ThreadOrder order)>;
/// Times the student's rung and the lesson's own in turn: the report of lab::race. Throws Error, as `answer` does.
using RunRace = std::function<Report(const ExerciseSpeed& speed)>;

/// Runs `kernel`, the student's whole file, over all cases and orders of the threads up to the first failure; once a
/// case where the run compares the orders itself (its check `thread_order`). The first run, which compiles it, has the
/// lesson's seed; all others have one from `draw_seed`, where the lesson has a knob `seed` that the case leaves alone. Throws Error (unavailable) as `run` does where a kernel cannot be
/// run at all: no compiler, no worker.
ExerciseVerdict judge(const Exercise& exercise, std::string_view kernel, const Knobs& knobs,
                      const RunKernel& run, const std::function<std::int64_t()>& draw_seed,
                      JudgeUntil until = JudgeUntil::failure);

/// Whether `text` has `code` more often than the file that the student started from; white space does not count.
bool wrote(const Exercise& exercise, std::string_view text, std::string_view code);

/// Compiles and runs a whole program: the report of `tilestep inspect`, with other orders of its threads. Throws
/// SourceError where it does not compile, Error where it leaves no report, Error (unavailable) where none can be run.
using RunProgram = std::function<Report(std::string_view text)>;
/// Judges `text`, the student's whole program: it has to end with status 0 and no mistake, print the same as the
/// solved program, which `run` runs too, and reach the goals. Throws Error (unavailable) as `run` does.
ExerciseVerdict judge_program(const Exercise& exercise, std::string_view text,
                              const RunProgram& run);

/// `verdict`, for a passing one, with the measured rates of the exercise added.
ExerciseVerdict judge_speed(const Exercise& exercise, ExerciseVerdict verdict, const RunRace& race);
/// The same without a GPU: says that the rates were not measured.
ExerciseVerdict leave_speed(const Exercise& exercise, ExerciseVerdict verdict);

}  // namespace tilestep::lab
