// Exercises in the window: found, opened, checked, solved. What checks them is the test's own.
#include "kernels/base/workbench/exercise.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>

#include "app/shell/exercise_desk.hpp"
#include "tests/app/child.hpp"
#include "tests/app/shell/stage.hpp"

using namespace tilestep;
using namespace tilestep::app;
using tests::contains;
using tests::Stage;
using ui::EditorKey;

namespace {

constexpr const char* kId = "coalescing/pad-the-tile";

/// What was asked to be checked; answers as they are told, or waits until it is stopped.
struct Checker {
  std::mutex mutex;
  std::deque<std::string> answers;
  std::vector<std::string> texts;
  std::atomic<bool> stopped = false;

  std::size_t asked() {
    const std::lock_guard lock(mutex);
    return texts.size();
  }
  RunExercise run() {
    return [this](const std::string& id, const std::string& text,
                  const std::function<bool()>& stop) -> std::string {
      CHECK(id == kId);
      {
        const std::lock_guard lock(mutex);
        texts.push_back(text);
        if (!answers.empty()) {
          std::string answer = answers.front();
          answers.pop_front();
          return answer;
        }
      }
      while (!stop()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      stopped = true;
      throw Cancelled();
    };
  }
};

struct Classroom {
  explicit Classroom(ShellOptions options = {}) : stage(with(std::move(options), checker)) {
    stage.lab.answer();
    stage.frame();
  }
  static ShellOptions with(ShellOptions options, Checker& checker) {
    options.lesson = "coalescing";
    options.tab = Tab::kernel;
    options.run_exercise = checker.run();
    return options;
  }
  void open() {
    stage.click("exercises");
    REQUIRE(stage.has("palette"));
    stage.click(std::string("find_exercise_") + kId);
    stage.frame();
  }
  /// In the line below the exercise's name.
  void type(char32_t c) {
    stage.shell.press({EditorKey::down, false, false});
    REQUIRE(stage.shell.type(c));
    stage.frame();
  }
  /// Until what was asked has been answered.
  void check() {
    stage.shell.key(Key::run, false);
    stage.frame();
    for (int i = 0; i < 10000 && contains(status(), "Checking"); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      stage.frame();
    }
  }
  std::string status() const { return stage.part("kernel_status")["label"]; }

  Checker checker;
  Stage stage;
};

}  // namespace

TEST_CASE("an exercise is found, opened with its task, checked, and ticked once it is solved",
          "[ui_shell]") {
  const tests::TemporaryFolder folder;
  ShellOptions options;
  options.progress = folder.path() / "progress.json";
  Classroom room(options);
  room.open();
  REQUIRE(room.stage.has("editor"));
  CHECK(room.stage.part("editor_line_1")["label"] == fmt::format("// tilestep exercise {}", kId));
  CHECK(contains(room.status(), "The task is above the code"));
  CHECK(room.stage.part("run_kernel")["label"] == "Run and check");
  room.checker.answers = {
      R"([{"ok":false,"sentence":"Not yet: bank_ways is 32.","hint":"How wide is a row?",
           "failed":{"kind":"goal","line":2}}])",
      R"(tilestep: a remark
[{"ok":true,"sentence":"All cases pass.","hint":"","failed":null}])"};
  room.check();
  CHECK(room.status() == "Not yet: bank_ways is 32. How wide is a row?");
  CHECK_FALSE(room.stage.lab.requests.back().kernel ==
              std::nullopt);  // the lesson ran with it, too
  // Another text has not been checked.
  room.type(U'/');
  CHECK_FALSE(contains(room.status(), "Not yet"));
  room.check();
  CHECK(room.status() == "All cases pass.");
  REQUIRE(room.checker.texts.size() == 2);
  CHECK(room.checker.texts[0] != room.checker.texts[1]);
  CHECK(contains(tests::file_text(options.progress.value()), kId));
  room.stage.click("exercises");
  const std::string query = room.stage.part("palette")["value"];
  CHECK(query == "Exercise: ");
}

TEST_CASE("an exercise takes no draft away, and goes on where it was left", "[ui_shell]") {
  const tests::TemporaryFolder folder;
  ShellOptions options;
  options.drafts = folder.path();
  {
    Classroom room(options);
    room.open();
    room.type(U'x');
    room.stage.shell.keep_drafts();
  }
  Classroom room(options);
  room.open();
  CHECK(room.stage.part("editor_line_2")["label"] == "x//");
}

TEST_CASE("a check is given up by its button, by another one and by the end of the window",
          "[ui_shell]") {
  Classroom room;
  room.open();
  room.stage.shell.key(Key::run, false);
  room.stage.frame();
  CHECK(contains(room.status(), "Checking"));
  room.stage.click("cancel_check");
  room.stage.frame();
  CHECK(room.checker.stopped);
  CHECK_FALSE(contains(room.status(), "Checking"));
  room.stage.shell.key(Key::run, false);  // and the next one is alone
  room.stage.frame();
  room.stage.shell.key(Key::run, false);
  room.stage.frame();
  for (int i = 0; i < 10000 && room.checker.asked() < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(room.checker.asked() == 3);
}

TEST_CASE("what the command says of a file is read, and what is none is told", "[ui_shell]") {
  const ExerciseFinding finding = finding_of(
      R"([{"ok":false,"sentence":"Not yet.","hint":"h","failed":{"kind":"check","line":7}}])");
  CHECK_FALSE(finding.ok);
  CHECK(finding.line == 7);
  CHECK(finding.hint == "h");
  for (const char* text : {"", "tilestep: no", "[", "[]", "{}", "[1]", "[{}, {}]"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(finding_of(text), Error);
  }
}
