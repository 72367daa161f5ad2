#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>

/// Exercises in the window: what is checked of the text in the editor, and what came of it.
namespace tilestep::app {

/// The output of `tilestep exercise check FILE --json` for one file.
struct ExerciseFinding {
  bool ok = false;
  std::string sentence, hint;  ///< for the student
  int line = 0;                ///< of their file; 0: unknown
};
/// Throws Error where `text` is none.
ExerciseFinding finding_of(const std::string& text);

/// Checks a student's text for the exercise `id` and answers what the command prints. Runs in a thread of its own; throws
/// Cancelled once `stop` says so, and Error where nothing can be checked.
using RunExercise = std::function<std::string(const std::string& id, const std::string& text,
                                              const std::function<bool()>& stop)>;
/// By a process of `program`, tilestep itself: in a sandbox where there is one, else with the user's rights, as the
/// kernel in the editor runs anyway.
RunExercise run_exercise_by(const std::string& program);

/// One check at a time; a new one takes the place of the one under way.
class ExerciseCheck {
 public:
  explicit ExerciseCheck(RunExercise run) : run_(std::move(run)) {}
  ~ExerciseCheck() { cancel(); }
  ExerciseCheck(const ExerciseCheck&) = delete;
  ExerciseCheck& operator=(const ExerciseCheck&) = delete;

  void start(const std::string& id, const std::string& text, double now_s);
  void cancel();
  /// Takes in what has come. True if something has.
  bool poll();
  /// The check of this text is under way, for so many seconds; nothing: it is not.
  std::optional<double> seconds(const std::string& text, double now_s) const;
  bool running() const { return answer_.valid(); }
  /// The result for this text; nullptr: none yet.
  const ExerciseFinding* finding(const std::string& text) const;
  const std::string& id() const { return id_; }
  /// The last result, even if the text has changed since.
  bool solved() const { return finding_ && finding_->ok; }

 private:
  RunExercise run_;
  std::string id_, text_;
  double since_s_ = 0;
  std::shared_ptr<std::atomic<bool>> stop_;
  std::future<ExerciseFinding> answer_;
  std::optional<ExerciseFinding> finding_;
};

}  // namespace tilestep::app
