#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/names.hpp"

/// An exercise: a kernel of a lesson with a hole, a task, and what a student's kernel is held to. It is data,
/// a Markdown file `assets/exercises/<lesson>/<exercise>.md`, so that a kernel may be rewritten around it:
///
///     # Put back the rescale
///     - source: kernels/attention/online_softmax/one_pass.cu
///
///     What the kernel should do and why, in paragraphs.
///
///     ## Cases
///     - rising: preset=rising keys=48        a name, then knobs as `--set` takes them
///     - defaults:                            no knobs: the lesson's defaults
///
///     ## Goal                                 omitted if right results suffice
///     - bank_ways of shared-tile/store <= 1   a measurement, `of` its variant
///     - requests.sectors in rising <= 4       the largest of a table's column, `in` one case alone
///
///     ## Speed                                omitted if speed is not judged; only on a GPU
///     - softmax_bandwidth of online-one-read >= 0.9                its rate against the lesson's own
///     - softmax_bandwidth of online-two-pass >= 1.1 x three-pass   or against another rung's
///                                           both of a ladder of the lesson's bench, timed in turn in one process
///
///     ## Solution                             a fenced block: whole lines that stand in the source once
///     ## Hole                                 the block that stands in their place
///     ## Wrong: the sum alone                 three or more: an attempt, then a line
///     - says: rescale                         with words of the verdict on it
///     ## Slow: a fence after each load        the same of one that is right, and on a GPU too slow
///
///     ## Hints
///     - check output: Both ℓ and O …          the first whose key is what went wrong is given
///     - otherwise: …                          the last one
///
/// Keys of hints: `compile`, `bounds`, `barrier`, `order` (right in one order of the threads, wrong in
/// another), `unsafe` (an asynchronous copy or product that was not waited for), `deadline`, `crash`,
/// `check ID`, `case NAME`, `goal`, `speed`, `wrote CODE` (the kernel has these words, which neither the
/// source nor the hole has; white space does not count) and `otherwise`.
///
/// The first chapter, *First steps*, has whole programs with a `main` in place of kernels, which are judged as
/// `tilestep inspect` sees them: `assets/exercises/first-steps/<exercise>.md` with the solved program beside it. Their
/// form differs in this:
///
///     - program: guard.cu                     in place of `- source: …`
///
///     no `## Cases`, `## Speed` and `## Slow: …`
///
///     ## Goal
///     - no coalescing                         a kind of finding that is no mistake, but slow
///
/// Keys of their hints: `compile`, `mistake KIND` (a kind of FindingKind), `crash` (it ends by a signal, after too
/// long, or with a status other than 0), `prints` (its output differs from that of the solved program), `goal`,
/// `wrote CODE` and `otherwise`.
namespace tilestep::lab {

/// Knobs to check with.
struct ExerciseCase {
  std::string name;                      ///< "rising"
  std::vector<std::string> assignments;  ///< "keys=48"
};

/// A bound on a number of the report that the kernel's own trace gives.
struct ExerciseGoal {
  std::string text;     ///< as it was written, without its `in`
  std::string id;       ///< of a measurement; or of a table; a program's: a kind of finding
  std::string variant;  ///< of the measurement; empty: none
  std::string column;   ///< of the table; empty: a measurement
  std::string in_case;  ///< empty: in all
  bool at_most = true;  ///< else at least
  double bound = 0;
};

/// A bound on the rate of a rung on a GPU, against one of the lesson's own.
struct ExerciseSpeed {
  std::string text;
  std::string id, variant;
  double factor = 1;
  std::string rung;  ///< the lesson's rung to compare with
};

/// A mistake that students make.
struct WrongAttempt {
  std::string name;
  std::string code;  ///< in place of the solution
  std::string says;  ///< words of the verdict on it
};

enum class HintKey {
  compile,
  bounds,
  barrier,
  order,
  unsafe,
  deadline,
  crash,
  check,
  case_,
  goal,
  speed,
  mistake,
  prints,
  wrote,
  otherwise
};
constexpr auto names_of(HintKey) {
  return std::to_array<std::string_view>({"compile", "bounds", "barrier", "order", "unsafe",
                                          "deadline", "crash", "check", "case", "goal", "speed",
                                          "mistake", "prints", "wrote", "otherwise"});
}
struct Hint {
  HintKey key = HintKey::otherwise;
  std::string about;  ///< the check, the case, the kind of mistake, the code; empty for the others
  std::string text;
};

struct Exercise {
  std::string lesson;  ///< "online-softmax"
  std::string name;    ///< "put-back-the-rescale"
  std::string title;
  std::string source;  ///< "kernels/attention/online_softmax/one_pass.cu"; empty: it is a program
  std::string program = {};  ///< "assets/exercises/first-steps/guard.cu"; empty: it has a source
  std::string task;          ///< paragraphs, with an empty line between
  std::vector<ExerciseCase> cases;
  std::vector<ExerciseGoal> goals;
  std::vector<ExerciseSpeed> speeds;
  std::string solution, hole;  ///< whole lines, the last ending in '\n'
  std::vector<WrongAttempt> wrong;
  std::vector<WrongAttempt> slow;  ///< right, but on a GPU too slow
  std::vector<Hint> hints;

  /// "online-softmax/put-back-the-rescale"
  std::string id() const { return lesson + "/" + name; }
  bool is_program() const { return !program.empty(); }
  /// The file that has the solution.
  const std::string& file() const { return is_program() ? program : source; }
};

/// The exercise in `text`, whose path ends in `<lesson>/<exercise>.md`. Throws Error that names path and line
/// for what is missing, twice, unknown or of another form.
Exercise parse_exercise(std::string_view path, std::string_view text);

/// The chapter of programs: their `lesson`, though no lesson of the catalog.
inline constexpr std::string_view kFirstSteps = "first-steps";

/// All that were built in, lesson by lesson in no particular order of lessons, by path. Throws as above.
const std::vector<Exercise>& exercises();
/// One of them by its id. Throws Error naming the lesson's exercises, or the lessons.
const Exercise& exercise(std::string_view id);

/// `source` with `code` in place of the exercise's solution. Throws Error unless the solution stands in it
/// exactly once, in whole lines.
std::string with_code(const Exercise& exercise, std::string_view source, std::string_view code);
/// The exercise's source as built in, and with `code` in place of the solution.
std::string with_code(const Exercise& exercise, std::string_view code);

/// What a student starts from: a comment that names the exercise and says the task, then the source with the
/// hole.
std::string starter(const Exercise& exercise);
/// The id that the comment of a student's file names; empty: there is none.
std::string exercise_id_of(std::string_view file_text);

}  // namespace tilestep::lab
