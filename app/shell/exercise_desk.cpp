#include "app/shell/exercise_desk.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/file.hpp"
#include "app/shell/shell_state.hpp"
#include "app/shell/steps.hpp"
#include "app/worker/sandbox.hpp"
#include "kernels/base/workbench/exercise.hpp"
#include "kernels/base/workbench/program.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;

/// All cases and orders; each run has a limit of its own.
constexpr std::chrono::minutes kWholeLimit{10};

/// A folder for the file that is checked, gone with it.
struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "tilestep-exercise-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw Error(fmt::format("no folder can be made in '{}' for the file to check",
                              fs::temp_directory_path().string()),
                  ExitCode::unavailable);
    }
    path = name;
  }
  ~Folder() {
    std::error_code error;
    fs::remove_all(path, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

}  // namespace

ExerciseFinding finding_of(const std::string& text) {
  // A remark on standard error may stand before it.
  const std::size_t begin = text.find('[');
  const auto all =
      nlohmann::json::parse(begin == text.npos ? text : text.substr(begin), nullptr, false);
  if (!all.is_array() || all.size() != 1 || !all[0].is_object()) {
    throw Error(fmt::format("not checked: {}", text.substr(0, 300)), ExitCode::unavailable);
  }
  const auto& one = all[0];
  const auto failed = one.value("failed", nlohmann::json());
  return {one.value("ok", false), one.value("sentence", ""), one.value("hint", ""),
          failed.is_object() ? failed.value("line", 0) : 0};
}

RunExercise run_exercise_by(const std::string& program) {
  return
      [program](const std::string& id, const std::string& text, const std::function<bool()>& stop) {
        const Folder folder;
        const fs::path file = folder.path / "kernel.cu";
        write_file(file, text);
        std::vector<std::string> words = {program,  "exercise",   "check", file.string(),
                                          "--json", "--exercise", id};
        if (!sandbox_status().available) words.emplace_back("--trust");
        return workbench::run_program(words, kWholeLimit, 0, stop).output;
      };
}

void ExerciseCheck::start(const std::string& id, const std::string& text, double now_s) {
  cancel();
  id_ = id;
  text_ = text;
  since_s_ = now_s;
  finding_.reset();
  stop_ = std::make_shared<std::atomic<bool>>(false);
  answer_ = std::async(std::launch::async, [run = run_, id, text, stop = stop_] {
    return finding_of(run(id, text, [stop] { return stop->load(); }));
  });
}

void ExerciseCheck::cancel() {
  if (!answer_.valid()) return;
  *stop_ = true;
  answer_.wait();
  answer_ = {};
}

bool ExerciseCheck::poll() {
  if (!answer_.valid() || answer_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    return false;
  }
  try {
    finding_ = answer_.get();
  } catch (const std::exception& error) {
    finding_ = ExerciseFinding{false, fmt::format("{}.", error.what()), "", 0};
  }
  return true;
}

std::optional<double> ExerciseCheck::seconds(const std::string& text, double now_s) const {
  if (!running() || text != text_) return std::nullopt;
  return now_s - since_s_;
}

const ExerciseFinding* ExerciseCheck::finding(const std::string& text) const {
  return finding_ && text == text_ ? &*finding_ : nullptr;
}

// ---- in the window -------------------------------------------------------------------------------

const lab::Exercise* ShellState::exercise_in_editor() {
  KernelDesk& desk = this->desk();
  if (!desk.edits || desk.path.empty() || desk.guest_in_editor) return nullptr;
  const std::string id = lab::exercise_id_of(sheet(desk.path).editor.text());
  for (const lab::Exercise& each : lab::exercises()) {
    if (each.source == desk.path && id.compare(each.id()) == 0) return &each;
  }
  return nullptr;
}

void ShellState::open_exercise(const lab::Exercise& exercise) {
  const auto& lessons = session.lessons();
  const auto found = std::find_if(lessons.begin(), lessons.end(), [&](const LessonState& each) {
    return each.info.id == exercise.lesson;
  });
  session.choose(static_cast<std::size_t>(found - lessons.begin()));
  show_home(false);
  KernelDesk& desk = this->desk();
  desk.edits = true;
  desk.guest_in_editor = false;
  desk.opened.reset();
  desk.path = exercise.source;
  if (lab::exercise_id_of(sheet(desk.path).editor.text()) != exercise.id()) {
    start_kernel_over(lab::starter(exercise));
  }
  show_tab(Tab::kernel);
  sheet(desk.path).placed = true;
  sheet(desk.path).editor.go_to_line(1);
  sheet(desk.path).editor.take_keys();
  if (exercise.cases.empty()) return;
  lab::Settings settings;
  for (const std::string& assignment : exercise.cases.front().assignments) {
    session.lesson().knobs.set(settings, assignment);
  }
  session.stand(
      settings, [](const scenes::StepAxis& axis) { return at_step(axis, axis.tiles); }, now_s());
}

void ShellState::check_exercise() {
  const lab::Exercise* exercise = exercise_in_editor();
  if (exercise == nullptr) return;
  exercise_check.start(exercise->id(), sheet(desk().path).editor.text(), now_s());
}

bool ShellState::follow_exercise() {
  if (!exercise_check.poll()) return exercise_check.running();
  if (exercise_check.solved()) {
    const lab::Exercise& exercise = lab::exercise(exercise_check.id());
    has_done({{{exercise.lesson, {.exercises = {exercise.id()}}}}});
  }
  return true;
}

}  // namespace tilestep::app
