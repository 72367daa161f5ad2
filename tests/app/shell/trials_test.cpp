// A kernel that is right with the knobs on show is tried at the lesson's trial settings, beside all else. The lab is the
// test's own.
#include "kernels/base/workbench/trials.hpp"

#include "kernels/base/lab/assets.hpp"
#include "kernels/base/workbench/orders.hpp"
#include "kernels/catalog.hpp"
#include "tests/app/shell/stage.hpp"

using namespace tilestep;
using namespace tilestep::app;
using tests::contains;
using tests::kOnePass, tests::Stage;

namespace {

/// A window in which an edited kernel has run, and was right.
struct Tried {
  Tried() : stage(opening()) {
    stage.lab.answer();
    stage.frame();
    stage.click("edit_kernel");
    REQUIRE(stage.shell.type(' '));
    run();
  }
  static ShellOptions opening() {
    ShellOptions options;
    options.lesson = "online-softmax";
    options.tab = Tab::kernel;
    return options;
  }
  void run() {
    stage.shell.key(Key::run, false);
    stage.frame();
    answer(true);
  }
  /// Answers the run, as a worker does.
  void answer(bool right) {
    const lab::Request& asked = stage.lab.requests.back();
    REQUIRE(asked.kernel);
    lab::Report report = tests::report_of(asked.lesson, asked.params);
    report.kernel =
        lab::EditedKernel{kOnePass, lab::hash_of(asked.kernel->text), "g++", 1, false, {}};
    for (lab::Check& check : report.checks) check.ok = right;
    stage.lab.updates.push_back({stage.lab.requests.size(), std::move(report)});
    stage.frame();
  }
  /// Answers the trials: wrong at these of the lesson's settings.
  void answer_trials(const std::vector<std::size_t>& wrong) {
    lab::Report report;
    report.lesson = "online-softmax";
    lab::Table table{"trials", "", {"knobs", "result", "found", "cost"}};
    const auto all = lesson("online-softmax").trials();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool bad = std::count(wrong.begin(), wrong.end(), i) > 0;
      table.add({workbench::words_of(all[i]), bad ? "wrong" : "right",
                 bad ? "the check final_output finds NaN" : "", ""});
    }
    report.add(std::move(table));
    stage.lab.updates.push_back({stage.lab.trial_ticket(), std::move(report)});
    stage.frame();
  }
  std::string status() const { return stage.part("kernel_status")["label"]; }
  std::size_t trials() const { return stage.lab.trial_requests.size(); }
  lab::KnobValue preset_asked() const { return stage.lab.requests.back().params.at("preset"); }
  void key(Key key) {
    stage.shell.key(key, false);
    stage.frame();
  }
  /// What is under way was given up, and the lab has no other from that.
  void check_given_up() { CHECK(stage.lab.cancelled == std::vector{stage.lab.trial_ticket()}); }

  Stage stage;
};

}  // namespace

TEST_CASE("a kernel that is right here is tried elsewhere, and F8 goes where it is wrong and back",
          "[ui_shell]") {
  Tried tried;
  REQUIRE(tried.trials() == 1);
  const lab::Request& asked = tried.stage.lab.trial_requests.front();
  CHECK(asked.kernel->text == " " + std::string(lab::asset(kOnePass)));
  CHECK(contains(tried.status(), "Right here; trying other settings"));
  CHECK_FALSE(tried.stage.shell.working());
  tried.stage.lab.updates.push_back(
      {tried.stage.lab.trial_ticket(), LabProgress{0.2, "preset=all-masked (2 of 6)"}});
  tried.stage.frame();
  CHECK(contains(tried.status(), "Right here; trying preset=all-masked (2 of 6)"));
  CHECK(contains(tried.status(), "Its trace is the original's"));

  tried.answer_trials({1, 4});
  const std::string verdict =
      "Right here; wrong with preset=all-masked and 1 other setting: the check final_output finds "
      "NaN.";
  CHECK(tried.status().starts_with(verdict));
  tried.key(Key::f8);
  CHECK(tried.preset_asked() == lab::KnobValue("all-masked"));
  tried.answer(false);
  CHECK(tried.status().starts_with("Wrong by the checks"));
  CHECK(tried.stage.has("back_from_trial"));
  tried.key(Key::f8);  // the next one
  CHECK(tried.preset_asked() == lab::KnobValue("outlier"));
  tried.answer(false);
  tried.key(Key::f8);
  CHECK(tried.preset_asked() == lab::KnobValue("worked-example"));
  tried.answer(true);
  CHECK(tried.status().starts_with(verdict));
  CHECK_FALSE(tried.stage.has("back_from_trial"));
  CHECK(tried.trials() == 1);  // the kernel is the same
  tried.stage.click("go_to_trial");
  tried.stage.frame();
  CHECK(tried.preset_asked() == lab::KnobValue("all-masked"));
  tried.answer(false);
  tried.stage.click("back_from_trial");
  tried.stage.frame();
  CHECK(tried.preset_asked() == lab::KnobValue("worked-example"));
}

TEST_CASE("the picture of an edited kernel does not wait for other orders of the threads",
          "[ui_shell]") {
  Tried tried;
  CHECK_FALSE(tried.stage.lab.requests.back().orders);
  const lab::Request& asked = tried.stage.lab.trial_requests.front();
  CHECK(asked.orders);
  CHECK(asked.params == tried.stage.lab.requests.back().params);
  tried.stage.lab.updates.push_back(
      {tried.stage.lab.trial_ticket(), LabProgress{0, "other orders of the threads"}});
  tried.stage.frame();
  CHECK(contains(tried.status(), "Right here; trying other orders of the threads"));
  lab::Report trials;
  trials.lesson = "online-softmax";
  SECTION("that give other numbers") {
    trials.add(lab::Check{workbench::kOrderCheck, false, 0, 0, "row 1 is 2 instead of 3"});
    tried.stage.lab.updates.push_back({tried.stage.lab.trial_ticket(), trials});
    tried.stage.frame();
    CHECK(tried.status().starts_with("Wrong by the checks: thread_order."));
    CHECK_FALSE(tried.stage.has("go_to_trial"));
    CHECK(tried.trials() == 1);
  }
  SECTION("that give the same, once for a kernel: with other knobs a run has them itself") {
    trials.add(lab::Check{workbench::kOrderCheck, true, 0, 0, "The same numbers"});
    tried.stage.lab.updates.push_back({tried.stage.lab.trial_ticket(), trials});
    tried.stage.frame();
    CHECK_FALSE(tried.status().starts_with("Wrong"));
    tried.stage.shell.key(Key::run, false);
    tried.stage.frame();
    CHECK(tried.stage.lab.requests.back().orders);
  }
}

TEST_CASE("what is right with all trial settings is said to be", "[ui_shell]") {
  Tried tried;
  tried.answer_trials({});
  CHECK(tried.status().starts_with("Right with all 6 settings that tell. Its trace is"));
  CHECK_FALSE(tried.stage.has("go_to_trial"));
  const std::size_t runs = tried.stage.lab.requests.size();
  tried.key(Key::f8);  // nowhere to go
  CHECK(tried.stage.lab.requests.size() == runs);
  // Another text is tried anew, a wrong one is not.
  REQUIRE(tried.stage.shell.type('/'));
  tried.run();
  CHECK(tried.trials() == 2);
  tried.stage.lab.updates.push_back(
      {tried.stage.lab.trial_ticket(), LabFailure{"There is no compiler.", ExitCode::unavailable}});
  tried.stage.frame();
  CHECK(contains(tried.status(), "Other settings were not tried: There is no compiler."));
  REQUIRE(tried.stage.shell.type('/'));
  tried.key(Key::run);
  tried.answer(false);
  CHECK(tried.trials() == 2);
}

TEST_CASE("trials are given up at once for whatever the user does", "[ui_shell]") {
  SECTION("typing, until it runs again") {
    Tried tried;
    REQUIRE(tried.stage.shell.type('x'));
    tried.check_given_up();
    tried.stage.frame();
    CHECK(tried.trials() == 1);
    tried.run();
    CHECK(tried.trials() == 2);
  }
  SECTION("a knob, until its run is right") {
    Tried tried;
    tried.stage.shell.set_knobs({{"preset", std::string("rising")}});
    tried.check_given_up();
    tried.stage.frame();
    CHECK(tried.trials() == 1);
    tried.answer(true);
    CHECK(tried.trials() == 2);
  }
  SECTION("another run of the same") {
    Tried tried;
    tried.stage.shell.key(Key::run, false);
    tried.stage.frame();
    tried.check_given_up();
  }
  SECTION("another lesson, until one is back") {
    Tried tried;
    tried.stage.shell.press({ui::EditorKey::escape});
    tried.key(Key::down);
    tried.check_given_up();
    tried.stage.lab.answer();
    tried.stage.frame();
    tried.key(Key::up);
    CHECK(tried.trials() == 2);
  }
  SECTION("assembly, and begin anew behind it") {
    Tried tried;
    tried.stage.shell.press({ui::EditorKey::escape});
    tried.key(Key::s);
    REQUIRE(tried.stage.lab.assembly_requests.size() == 1);
    CHECK(tried.stage.lab.cancelled.front() == 2 * tests::HeldLab::kFirstAssembly + 1);
    tried.stage.frame();
    CHECK(tried.trials() == 2);
  }
}
