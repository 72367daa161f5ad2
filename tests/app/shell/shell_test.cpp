// The whole window without a window, with the real lesson.
#include "app/shell/shell.hpp"

#include <fmt/format.h>

#include "app/window/window.hpp"
#include "kernels/base/lab/quick.hpp"
#include "kernels/catalog.hpp"
#include "scenes/ui/context.hpp"
#include "tests/app/shell/stage.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::app;
using tests::Stage;

TEST_CASE("before the first report the window says what happens", "[ui_shell]") {
  Stage stage;
  stage.frame();
  CHECK(stage.has("progress"));
  CHECK(stage.part("next")["value"] == "disabled");
  stage.lab.answer();
  stage.frame();
  CHECK_FALSE(stage.has("progress"));
  CHECK(stage.map()["step"] == 0);
  CHECK(stage.map()["lesson"] == "online-softmax");
  for (const char* id : {"first", "previous", "play", "next", "last", "next_line", "scrubber",
                         "tab_data", "tab_kernel", "lesson_online-softmax", "theme", "presenter",
                         "help", "copy_csv", "title", "device"}) {
    INFO(id);
    CHECK(stage.has(id));
  }
  CHECK(stage.part("next")["label"] == "Next tile");
  CHECK_FALSE(stage.has("cuda_refused"));
}

TEST_CASE("where a CUDA module was refused the badge says so, and why", "[ui_shell]") {
  const std::string why = "the CUDA backend was built from other sources than this program";
  Stage stage;
  stage.lab.answer();
  std::get<lab::Report>(stage.lab.updates.back().what).cuda_refused = why;
  stage.frame();
  CHECK(stage.part("device")["label"].get<std::string>().starts_with(
      "CUDA refused, emulated on CPU"));
  CHECK(stage.part("cuda_refused")["label"] == why);
  const auto rect = stage.part("device")["rect"].get<std::vector<float>>();
  ImGui::GetIO().MousePos = {rect[0] + rect[2] / 2, rect[1] + rect[3] / 2};
  stage.shell.context().record_texts(true);
  stage.frame();
  stage.frame();
  const auto& texts = stage.shell.context().texts();
  CHECK(std::any_of(texts.begin(), texts.end(), [&](const ui::DrawnText& text) {
    return text.text.starts_with("the CUDA backend was");
  }));
}

TEST_CASE("keys and clicks move the step", "[ui_shell]") {
  Stage stage;
  stage.lab.answer();
  stage.frame();
  stage.shell.key(Key::right, false);
  stage.shell.key(Key::page_down, false);
  CHECK(stage.shell.step() == 2);
  stage.shell.key(Key::left, false);
  CHECK(stage.shell.step() == 1);
  stage.shell.key(Key::end, false);
  CHECK(stage.shell.step() == 4);
  stage.shell.key(Key::home, false);
  stage.shell.key(Key::right, true);  // one line: the first tile is not complete
  CHECK(stage.shell.step() == 0);
  stage.shell.key(Key::right, false);
  CHECK(stage.shell.step() == 1);
  stage.frame();
  stage.click("next");
  CHECK(stage.shell.step() == 2);
  stage.click("last");
  CHECK(stage.shell.step() == 4);
  CHECK(stage.part("next")["value"] == "disabled");
  stage.click("first");
  CHECK(stage.shell.step() == 0);
  CHECK_FALSE(stage.shell.animating());
}

TEST_CASE("tabs, theme, presenter mode and the key list answer their keys", "[ui_shell]") {
  Stage stage;
  stage.lab.answer();
  stage.frame();
  for (const auto& [key, tab] : {std::pair{Key::k, "tab_kernel"},
                                 {Key::m, "tab_measured"},
                                 {Key::g, "tab_glossary"},
                                 {Key::d, "tab_data"}}) {
    stage.shell.key(key, false);
    stage.frame();
    CHECK(stage.part(tab)["value"] == "selected");
  }
  stage.shell.key(Key::l, false);
  stage.frame();
  CHECK(stage.has("lesson_text"));
  CHECK_FALSE(stage.has("tab_data"));  // folded away
  stage.shell.key(Key::d, false);
  stage.frame();
  CHECK(stage.part("tab_data")["value"] == "selected");
  stage.shell.key(Key::escape, false);
  stage.frame();
  CHECK_FALSE(stage.has("tab_data"));
  stage.shell.key(Key::l, false);
  stage.frame();
  CHECK_FALSE(stage.has("lesson_text"));
  stage.shell.key(Key::t, false);
  stage.frame();
  CHECK(stage.part("theme")["label"] == "Dark theme");
  stage.shell.key(Key::question, false);
  stage.frame();
  CHECK(stage.has("key_list"));
  int lines = 0;
  for (const auto& part : stage.map()["parts"]) {
    if (!part["id"].get<std::string>().starts_with("key_line_")) continue;
    ++lines;
    CHECK(part["label"].get<std::string>().find("…") == std::string::npos);
  }
  CHECK(lines > 20);
  stage.shell.key(Key::escape, false);
  stage.frame();
  CHECK_FALSE(stage.has("key_list"));
  stage.shell.key(Key::p, false);
  stage.frame();
  CHECK_FALSE(stage.has("help"));
  CHECK_FALSE(stage.has("reset"));
  stage.click("presenter");
  CHECK(stage.has("help"));
  CHECK_FALSE(stage.shell.take_full_screen_toggle());
  stage.shell.key(Key::f11, false);
  CHECK(stage.shell.take_full_screen_toggle());
  CHECK_FALSE(stage.shell.take_full_screen_toggle());
}

TEST_CASE("a run is kept beside the next one, by key and by button", "[ui_shell]") {
  Stage stage;
  stage.shell.key(Key::b, false);  // nothing to keep yet
  stage.frame();
  CHECK_FALSE(stage.has("run_a"));
  stage.lab.answer();
  stage.frame();
  stage.shell.key(Key::b, false);
  stage.frame();
  CHECK(stage.has("run_a"));
  CHECK(stage.has("a.score_0"));
  CHECK(stage.part("compare")["label"] == "Stop comparing");
  stage.click("compare");
  CHECK_FALSE(stage.has("run_a"));
  stage.click("compare");
  CHECK(stage.has("run_a"));
}

TEST_CASE("the shell opens with two runs where it is asked to", "[ui_shell]") {
  app::ShellOptions options;
  options.lesson = "coalescing";
  options.settings = {{"stride", std::int64_t{32}}};
  options.compared = lab::Settings{{"stride", std::int64_t{1}}};
  Stage stage(options);
  CHECK(std::get<std::int64_t>(stage.lab.requests.back().params.at("stride")) == 1);
  stage.lab.answer();
  stage.frame();
  stage.frame();
  CHECK(std::get<std::int64_t>(stage.lab.requests.back().params.at("stride")) == 32);
  stage.lab.answer();
  stage.frame();
  CHECK(stage.part("run_a")["value"] == "stride 1");
  CHECK(stage.part("run_b")["value"] == "stride 32");
  stage.shell.key(Key::end, false);
  stage.frame();
  CHECK(stage.part("place")["label"] == "Step 3 of 3");
}

TEST_CASE("a run with other phases is shown at the same step", "[ui_shell]") {
  app::ShellOptions options;
  options.lesson = "tiling";
  options.settings = {{"variant", std::string("shared-tile")}};
  options.compared = lab::Settings{{"variant", std::string("naive")}};
  options.step = 2;
  Stage stage(options);
  stage.lab.answer();
  stage.frame();
  CHECK(stage.shell.step() == 2);
  stage.frame();
  stage.lab.answer();
  stage.frame();
  CHECK(stage.shell.step() == 2);
  CHECK(stage.part("place")["value"] == "barrier");
}

TEST_CASE("what is copied holds what is known, and no more", "[ui_shell]") {
  Stage stage;
  stage.lab.answer();
  stage.frame();
  const auto copied = [&] {
    stage.frame();
    stage.click("copy_csv");
    return std::string(ImGui::GetClipboardText());
  };
  const lab::Table whole = *tests::report_of("online-softmax").table("tiles");
  const std::string start = copied();
  stage.shell.key(Key::end, false);
  CHECK(copied() == whole.to_csv());
  CHECK(start != whole.to_csv());
  CHECK(std::count(start.begin(), start.end(), '\n') == std::ssize(whole.rows) + 1);
}

TEST_CASE("a guess is drawn until its answer has been seen", "[ui_shell]") {
  ShellOptions options;
  options.asked = true;
  Stage stage(options);
  stage.lab.answer();
  stage.frame();
  CHECK_FALSE(stage.has("guess"));
  stage.click("predict_1");
  CHECK(stage.has("guess"));
  stage.shell.key(Key::right, true);
  stage.frame();
  CHECK(stage.has("guess"));
  stage.shell.key(Key::right, false);
  stage.frame();
  CHECK(stage.has("guess"));           // beside the answer
  stage.shell.key(Key::right, false);  // asks or goes on
  stage.shell.key(Key::right, false);
  stage.frame();
  CHECK_FALSE(stage.has("guess"));
}

TEST_CASE("a failure shows its sentence and the ways on", "[ui_shell]") {
  Stage stage;
  stage.lab.updates.push_back(
      {1, LabFailure{"the worker stopped while it ran the kernel", ExitCode::unavailable, true,
                     std::nullopt, "The next run starts another."}});
  stage.frame();
  CHECK(stage.part("failure")["value"] ==
        "The worker stopped while it ran the kernel. The next run starts another.");
  CHECK(stage.has("reset_knobs"));
  stage.click("run_again");
  stage.frame();
  CHECK(stage.lab.requests.size() == 2);
  stage.lab.answer();
  stage.frame();
  CHECK_FALSE(stage.has("failure"));
  CHECK(stage.has("table_tiles"));
}

TEST_CASE("a refused run offers what works first", "[ui_shell]") {
  Stage stage;
  LabFailure refused{"query is 9, but with queries = 8 the allowed values are 0–7"};
  refused.fix = lab::Fix{"Set query to 0", {{"query", std::int64_t{0}}}};
  ShellOptions options;
  stage.frame();
  const std::size_t before = stage.lab.requests.size();
  stage.lab.updates.push_back({before, refused});
  stage.frame();
  CHECK(stage.part("fix")["label"] == "Set query to 0");
  CHECK_FALSE(stage.has("run_again"));  // it would be refused again
  CHECK(stage.has("reset_knobs"));
  stage.click("fix");
  stage.frame();
  REQUIRE(stage.lab.requests.size() == before + 1);
  CHECK(stage.lab.requests.back().params.at("query") == lab::KnobValue{std::int64_t{0}});
  stage.lab.answer();
  stage.frame();
  CHECK_FALSE(stage.has("failure"));
}

TEST_CASE("a measurement shows how far it is, can be stopped, and says what became of it",
          "[ui_shell]") {
  ShellOptions options;
  options.tab = Tab::measured;
  Stage stage(options);
  stage.lab.backend = "cuda";
  stage.lab.answer();
  stage.frame();
  CHECK_FALSE(stage.has("stop_measuring"));
  CHECK_FALSE(stage.has("measurement_state"));
  stage.click("measure");
  REQUIRE(stage.lab.requests.back().action == lab::Request::Action::bench);
  CHECK(lab::is_quick(stage.lab.requests.back()));
  stage.lab.updates.push_back({2, LabProgress{0.345, "shared-tile"}});
  stage.frame();
  CHECK(stage.part("measure")["label"] == "Measuring … 34 %");
  CHECK(stage.part("measurement_state")["value"] ==
        "Measuring takes about half a minute. Until then runs wait and the window is idle: move "
        "the mouse to update the progress. Now: shared-tile");
  stage.click("stop_measuring");
  stage.frame();
  CHECK(stage.part("measurement_state")["value"] == "The measurement was stopped.");
  CHECK(stage.part("measure")["label"] == "Measure on this GPU");

  stage.click("measure");
  stage.lab.updates.push_back({3, LabGivenUp::replaced});
  stage.frame();
  CHECK(stage.part("measurement_state")["value"] ==
        "The measurement was cancelled because another one was started.");
  stage.click("measure");
  stage.lab.updates.push_back(
      {4, LabFailure{"The measurement took too long", ExitCode::unavailable, false}});
  stage.frame();
  CHECK(stage.part("measurement_state")["value"] ==
        "The measurement failed: The measurement took too long.");
}

TEST_CASE("a run behind a measurement says what it waits for, and can have it stopped",
          "[ui_shell]") {
  ShellOptions options;
  options.tab = Tab::measured;
  options.settings = {{"preset", std::string("rising")}};
  Stage stage(options);
  stage.lab.backend = "cuda";
  stage.lab.answer();
  stage.frame();
  stage.click("measure");
  stage.lab.updates.push_back({2, LabProgress{0.5, ""}});
  stage.shell.key(Key::r, false);  // other knobs, so that there is a run to make
  stage.frame();
  REQUIRE(stage.lab.requests.size() == 3);
  stage.lab.updates.push_back({3, LabProgress{0, "waits", true}});
  stage.frame();
  CHECK_FALSE(stage.has("progress"));
  CHECK(stage.part("waiting")["value"] ==
        "This run waits for the measurement of Online softmax (50 %): running both would distort "
        "the times.");
  stage.click("stop_measurement");
  stage.frame();
  CHECK(stage.part("measurement_state")["value"] == "The measurement was stopped.");
  CHECK_FALSE(stage.has("waiting"));
  stage.lab.answer();
  stage.frame();
  CHECK_FALSE(stage.has("failure"));
}

TEST_CASE("six knobs are in sight, those that matter first; the others unfold", "[ui_shell]") {
  Stage stage;
  const lab::Knobs& knobs = lesson("online-softmax").knobs();
  const auto in_sight = [&] {
    stage.frame({1440, 2600});
    std::vector<std::string> ids;
    for (const lab::Knob& knob : knobs) {
      if (stage.has(("knob_" + knob.id).c_str())) ids.push_back(knob.id);
    }
    return ids;
  };
  const auto turn = [&](const char* id, lab::KnobValue value) {
    stage.shell.set_knobs({{id, std::move(value)}});
  };
  using Ids = std::vector<std::string>;
  stage.lab.answer();
  CHECK(in_sight() ==
        Ids{"preset", "keys", "tile_width", "head_dim", "accumulator", "skip_rescale"});
  CHECK(stage.part("more_knobs")["label"] == "4 more knobs");
  turn("queries", std::int64_t{2});
  turn("query", std::int64_t{1});
  CHECK(in_sight() == Ids{"preset", "keys", "tile_width", "skip_rescale", "queries", "query"});
  turn("query", std::int64_t{0});  // where it was: it stays below the hand
  CHECK(in_sight() == Ids{"preset", "keys", "tile_width", "skip_rescale", "queries", "query"});
  stage.click("more_knobs", {1440, 2600});
  CHECK(in_sight().size() == knobs.all().size());
  CHECK(stage.part("more_knobs")["label"] == "Fewer knobs");
  stage.click("more_knobs", {1440, 2600});
  CHECK(in_sight().size() == 6);
  stage.shell.key(Key::r, false);
  CHECK(in_sight() ==
        Ids{"preset", "keys", "tile_width", "head_dim", "accumulator", "skip_rescale"});
}

TEST_CASE("a number typed beyond its range is clamped, and the field says the range",
          "[ui_shell]") {
  Stage stage;
  stage.lab.answer();
  stage.frame({1440, 2600});
  REQUIRE(stage.has("knob_keys"));
  const auto rect = stage.part("knob_keys")["rect"].get<std::vector<float>>();
  ImGuiIO& io = ImGui::GetIO();
  io.MousePos = {rect[0] + 8, rect[1] + rect[3] / 2};
  stage.frame({1440, 2600});
  io.MouseDown[0] = true;
  stage.frame({1440, 2600});
  io.MouseDown[0] = false;
  stage.frame({1440, 2600});
  CHECK(io.WantTextInput);
  io.AddInputCharactersUTF8("99999999");
  stage.shell.key(Key::right, false);  // typed into the field, not for the transport
  CHECK(stage.shell.step() == 0);
  stage.frame({1440, 2600});
  io.MousePos = {4, 4};
  io.MouseDown[0] = true;
  stage.frame({1440, 2600});
  io.MouseDown[0] = false;
  stage.frame({1440, 2600});
  stage.frame({1440, 2600});
  REQUIRE(stage.lab.requests.size() >= 2);
  CHECK(std::get<std::int64_t>(stage.lab.requests.back().params.at("keys")) == 65536);
}

TEST_CASE("a frame costs little", "[ui_shell]") {
  ShellOptions options;
  options.backend = "emulated";
  const double cost_ms = frame_cost_ms(options, 1440, 900, 20);
  CHECK(cost_ms > 0);
  CHECK(cost_ms < 50);  // generous: a sanitizer build on a busy machine
}

TEST_CASE("the place among the steps is written out", "[ui_shell]") {
  tests::Part part("places", 5);
  for (const lab::Lesson* lesson : lessons()) {
    if (part.skips()) continue;
    ShellOptions options;
    options.lesson = lesson->info().id;
    Stage stage(options);
    stage.lab.answer();
    stage.shell.context().record_texts(true);
    for (const Key key : {Key::home, Key::right, Key::end}) {
      stage.shell.key(key, false);
      stage.frame();
      const auto place = stage.part("place")["label"].get<std::string>();
      CAPTURE(options.lesson, place);
      const auto& texts = stage.shell.context().texts();
      CHECK(std::any_of(texts.begin(), texts.end(),
                        [&](const ui::DrawnText& each) { return each.text == place; }));
    }
  }
}

TEST_CASE("what a run says as a whole stands in the table once it is through", "[ui_shell]") {
  app::ShellOptions options;
  options.lesson = "tiling";
  Stage stage(options);
  stage.lab.answer();
  const ImVec2 wide(2600, 1300);  // all tables' names have room beside each other
  stage.frame(wide);
  const lab::Report& report = tests::report_of("tiling");
  const auto of_run = std::find_if(report.tables.begin(), report.tables.end(),
                                   [](const lab::Table& table) { return table.id == "readouts"; });
  const auto rect = stage.part(fmt::format("table_{}", of_run - report.tables.begin()))["rect"];
  ImGui::GetIO().MousePos = {rect[0].get<float>() + 8, rect[1].get<float>() + 8};
  for (const bool down : {false, true, false}) {
    ImGui::GetIO().MouseDown[0] = down;
    stage.frame(wide);
  }
  stage.shell.context().record_texts(true);
  const auto shows = [&](Key key, std::string_view number) {
    stage.shell.key(key, false);
    stage.frame(wide);
    const auto& texts = stage.shell.context().texts();
    return std::any_of(texts.begin(), texts.end(),
                       [&](const ui::DrawnText& each) { return each.text == number; });
  };
  const std::string loads = fmt::format("{:.3f}", report.measurement("global_loads")->value);
  CHECK_FALSE(shows(Key::home, loads));
  CHECK_FALSE(shows(Key::right, loads));
  CHECK(shows(Key::end, loads));
}

TEST_CASE("a lesson runs where the user says, and the others where they did", "[ui_shell]") {
  ShellOptions options;
  options.labs = {parse_lab("ssh:ada@gpu1"), parse_lab("run:srun tilestep worker")};
  Stage stage(options);
  stage.frame();
  CHECK(stage.lab.labs == std::vector<std::size_t>{1});
  CHECK(stage.lab.requests.back().backend == "auto");
  stage.lab.updates.push_back({1, LabProgress{0, "waits for ssh:ada@gpu1 to answer", true}});
  stage.frame();
  CHECK(stage.part("waiting")["value"] == "Waits for ssh:ada@gpu1 to answer.");
  stage.lab.updates.push_back(
      {1, LabFailure{"no such host", ExitCode::unavailable, true, std::nullopt, "Next."}});
  stage.frame();
  CHECK(stage.part("failure")["value"] == "No such host. Next.");
  stage.click("run_here");
  stage.frame();
  CHECK(stage.lab.labs.back() == 0);
  stage.lab.answer();
  stage.frame();
  CHECK_FALSE(stage.has("failure"));

  stage.click("choose_lab");
  const std::vector<std::string> names = {"This machine", "CPU emulation", "Recordings", "ada@gpu1",
                                          "srun tilestep worker"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    CHECK(stage.part("lab_" + std::to_string(i))["label"] == names[i]);
  }
  stage.click("lab_2");
  stage.frame();
  CHECK_FALSE(stage.has("labs"));
  CHECK(stage.lab.labs.back() == 0);
  CHECK(stage.lab.requests.back().backend == "recorded");
  // The same lab again is no reason to run again; Esc closes the list.
  const std::size_t requests = stage.lab.requests.size();
  stage.lab.answer();
  stage.frame();
  stage.click("choose_lab");
  CHECK(stage.part("labs")["value"] == "Recordings");
  stage.click("lab_2");
  stage.frame();
  CHECK(stage.lab.requests.size() == requests);
  stage.click("choose_lab");
  stage.shell.key(Key::escape, false);
  stage.frame();
  CHECK_FALSE(stage.has("labs"));
  // Another lesson is where it was.
  stage.shell.key(Key::down, false);
  stage.frame();
  CHECK(stage.lab.labs.back() == 1);
}

TEST_CASE("a worker that dies between two runs is mentioned", "[ui_shell]") {
  Stage stage;
  stage.lab.answer();
  stage.frame();
  stage.lab.updates.push_back(
      {0, LabFailure{"The worker process was ended by signal 9 (SIGKILL) "
                     "between two runs.",
                     ExitCode::unavailable, true, std::nullopt, "The next run starts another."}});
  stage.frame();
  CHECK(stage.part("message")["value"] ==
        "The worker process was ended by signal 9 (SIGKILL) between two runs. The next run starts "
        "another.");
  CHECK_FALSE(stage.has("failure"));
}

TEST_CASE("a knob without effect says with what it works", "[ui_shell]") {
  ShellOptions options;
  options.lesson = "flash-attention";
  Stage stage(options);
  stage.lab.answer();
  const ImVec2 tall(1440, 2400);
  stage.frame(tall);
  stage.click("more_knobs", tall);
  CHECK_FALSE(stage.has("idle_mask"));
  CHECK(stage.part("idle_sinks")["label"] == "works with mask = sliding-window");
  stage.shell.set_knobs({{"mask", std::string("sliding-window")}});
  stage.frame(tall);
  CHECK_FALSE(stage.has("idle_sinks"));
}
