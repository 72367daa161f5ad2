// What a class uses: questions before answers, hands, the guided path, the palette, the tour of the window.
#include <fmt/format.h>

#include "app/keep/capsule.hpp"
#include "app/keep/progress.hpp"
#include "app/shell/shell_state.hpp"
#include "app/shell/steps.hpp"
#include "app/window/window.hpp"
#include "kernels/catalog.hpp"
#include "scenes/shared/guide.hpp"
#include "scenes/ui/context.hpp"
#include "tests/app/child.hpp"
#include "tests/app/shell/stage.hpp"
#include "tests/part.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using namespace tilestep::app;
using tests::Stage;

TEST_CASE("→ asks, then shows; question, choice and reason stay until the next step",
          "[ui_shell]") {
  ShellOptions options;
  options.predict = true;
  Stage stage(options);
  stage.lab.answer();
  stage.frame();
  CHECK(stage.part("tab_data")["value"] == "selected");
  CHECK_FALSE(stage.has("predict_0"));
  stage.shell.key(Key::right, false);
  stage.frame();
  CHECK(stage.shell.step() == 0);
  REQUIRE(stage.has("predict_0"));
  CHECK(stage.part("tab_predict")["value"] == "selected");
  stage.shell.key(Key::b, false);  // the answer B, not the key of Compare
  stage.frame();
  CHECK(stage.part("predict_1")["value"] == "selected");
  CHECK(stage.part("compare")["label"] == "Compare");
  stage.click("predict_0");
  CHECK(stage.part("predict_0")["value"] == "selected");
  CHECK_FALSE(stage.has("predict_verdict"));
  stage.shell.key(Key::right, false);
  stage.frame();
  CHECK(stage.shell.step() == 1);
  const std::string verdict = stage.part("predict_verdict")["value"];
  CHECK((verdict == "right" || verdict == "wrong"));
  CHECK(stage.has("question"));
  CHECK(stage.part("score")["value"] == (verdict == "right" ? "1 of 1 right" : "0 of 1 right"));
  stage.shell.key(Key::left, false);
  stage.frame();
  CHECK_FALSE(stage.has("predict_verdict"));
  CHECK(stage.part("tab_data")["value"] == "selected");  // as before the question
}

TEST_CASE("an answer is one sentence, from which →, Enter and the button go on", "[ui_shell]") {
  for (const std::string by : {"→", "Enter", "the button"}) {
    CAPTURE(by);
    ShellOptions options;
    options.predict = true;
    Stage stage(options);
    stage.lab.answer();
    stage.frame();
    const auto go_on = [&](const std::string& button) {
      if (by == "the button") return stage.click(button);
      stage.shell.key(by == "→" ? Key::right : Key::enter, false);
      stage.frame();
    };
    stage.shell.key(Key::enter, false);  // nothing is asked yet
    stage.shell.key(Key::right, false);
    stage.frame();
    stage.shell.key(Key::enter, false);  // nor answered
    CHECK(stage.shell.step() == 0);
    stage.shell.key(Key::a, false);
    stage.frame();
    go_on("question_on");
    CHECK(stage.shell.step() == 1);
    const std::string said = stage.part("predict_verdict")["label"];
    CHECK((said.starts_with("Right: ") || said.starts_with("No: ")));
    CHECK(said.find(", because ") != std::string::npos);
    go_on("question_on");
    CHECK((stage.shell.step() == 2 || (stage.has("question") && !stage.has("predict_verdict"))));
    // Under Measured they go on to the figures, and leave the step alone.
    const int step = stage.shell.step();
    stage.shell.key(Key::escape, false);
    stage.shell.key(Key::m, false);
    stage.frame();
    REQUIRE(stage.has("question"));
    const std::string asked = stage.part("question")["label"];
    stage.shell.key(Key::a, false);
    stage.frame();
    REQUIRE(stage.has("predict_verdict"));
    go_on("see_measurement");
    CHECK((!stage.has("question") || stage.part("question")["label"] != asked));
    CHECK(stage.shell.step() == step);
  }
}

TEST_CASE("what goes on from a question stays in sight, however small its card", "[ui_shell]") {
  for (const char* lesson : {"tiling", "flash-attention-3", "coalescing"}) {
    CAPTURE(lesson);
    ShellOptions options;
    options.lesson = lesson;
    options.asked = options.reader = true;
    options.text_scale = 1.5f;
    Stage stage(options);
    stage.lab.answer();
    stage.draw({1024, 640});
    stage.draw({1024, 640});
    REQUIRE(stage.has("card"));
    const auto button = stage.part("question_on"), card = stage.part("card");
    CHECK(button["rect"] == button["raw"]);  // no window cuts it off
    CHECK(button["rect"][1].get<int>() + button["rect"][3].get<int>() <=
          card["rect"][1].get<int>() + card["rect"][3].get<int>());
  }
}

namespace {

/// No window cuts anything off.
bool whole(const nlohmann::json& part) {
  return part["rect"] == part["raw"];
}

/// A question as a class sees it, at the stop that asks it.
struct Projected {
  Projected(const std::string& lesson, std::size_t number, const scenes::GuideStop& stop,
            float text_scale)
      : stage(options_of(lesson, number, stop, text_scale)) {
    stage.lab.answer();
    const auto scene = tests::scene_of(lesson);
    scene->load(tests::report_of(lesson, stop.settings));
    const auto question = scene->question(scenes::View{asked_at(stop, scene->steps())});
    choices = static_cast<int>(question.value().choices.size());
  }
  static ShellOptions options_of(const std::string& id, std::size_t number,
                                 const scenes::GuideStop& stop, float text_scale) {
    ShellOptions options;
    options.lesson = id;
    options.settings = stop.settings;
    options.step = stop.step - 1;
    options.stop = static_cast<int>(number);
    options.presenter = options.predict = options.asked = options.stop_asks = true;
    options.text_scale = text_scale;
    return options;
  }
  void draw(ImVec2 size) {
    for (int i = 0; i < 4; ++i) stage.draw(size);
  }
  /// All of it is in sight.
  void check() const {
    CHECK(whole(stage.part("question")));
    if (choices == 0) CHECK(whole(stage.part("predict_number")));
    for (int i = 0; i < choices; ++i) CHECK(whole(stage.part(fmt::format("predict_{}", i))));
  }
  Stage stage;
  int choices = 0;
};

}  // namespace

TEST_CASE("a projector of 1280x720 has question, choices and picture at once, and then the reason",
          "[ui_shell]") {
  const ImVec2 size(1280, 720);
  tests::Part part("asked on a projector", 4);
  for (const lab::Lesson* each : lessons()) {
    if (part.skips()) continue;
    const std::string& id = each->info().id;
    const scenes::Guide guide = scenes::parse_guide(scenes::lesson_text(id), each->knobs());
    for (std::size_t number = 0; number < guide.stops.size(); ++number) {
      if (guide.stops[number].ask.empty()) continue;
      CAPTURE(id, number + 1);
      Projected on(id, number, guide.stops[number], 1);
      on.draw(size);
      on.check();
      CHECK(on.stage.part("picture")["rect"][3].get<float>() > 350);
      if (on.choices == 0) continue;
      on.stage.shell.key(Key::a, false);
      on.draw(size);
      on.check();
      on.stage.shell.key(Key::page_down, false);
      on.draw(size);
      CHECK(whole(on.stage.part("predict_verdict")));
      // Large type in a small window: the picture may go on below.
      Projected low(id, number, guide.stops[number], 1.5f);
      low.draw({1024, 640});
      low.check();
      CHECK(low.stage.has("picture"));
    }
  }
}

TEST_CASE("on a stage the hands of a class are counted", "[ui_shell]") {
  ShellOptions options;
  options.asked = options.presenter = true;
  Stage stage(options);
  stage.lab.answer();
  stage.frame({1920, 1080});
  REQUIRE(stage.has("card"));
  for (const Key key : {Key::a, Key::b, Key::b}) stage.shell.key(key, false);
  stage.frame({1920, 1080});
  CHECK(stage.part("predict_1")["value"] == "selected");
  stage.shell.key(Key::b, true);  // one less
  stage.shell.key(Key::b, true);
  stage.frame({1920, 1080});
  CHECK(stage.part("predict_0")["value"] == "selected");
  stage.shell.key(Key::page_down, false);  // a clicker
  stage.frame({1920, 1080});
  CHECK(stage.has("predict_verdict"));
}

TEST_CASE("the guided path sets the scene, a chip tries something and comes back", "[ui_shell]") {
  ShellOptions options;
  options.reader = true;
  Stage stage(options);
  stage.lab.answer();
  stage.frame();
  REQUIRE(stage.has("stop_1"));
  std::size_t answered = stage.lab.requests.size();
  const auto settle = [&] {
    stage.frame();
    if (stage.lab.requests.size() > answered) {
      stage.lab.answer();
      answered = stage.lab.requests.size();
    }
    stage.frame();
  };
  int stops = 0;
  while (stage.part("stop_next")["label"] != "Next lesson" && stops < 20) {
    stage.shell.key(Key::bracket_right, false);
    settle();
    ++stops;
    CHECK(stage.part("stop_" + std::to_string(stops))["value"] == "selected");
  }
  CHECK(stops >= 8);
  CHECK(stops <= 15);
  // What comes after a path: an exercise, or the next lesson from its first stop.
  const std::string here = stage.map()["lesson"];
  stage.click("stop_next");
  stage.lab.answer();
  stage.frame();
  stage.frame();
  CHECK(stage.map()["lesson"] != here);
  CHECK(stage.part("stop_1")["value"] == "selected");
}

TEST_CASE("what the stop before moved stays outlined", "[ui_shell]") {
  ShellOptions options;
  options.lesson = "coalescing";
  options.reader = true;
  Stage stage(options);
  stage.lab.answer();
  stage.frame();
  const auto go = [&](Key key) {
    stage.shell.key(key, false);
    stage.frame();
    stage.lab.answer();
    stage.frame();
  };
  go(Key::bracket_right);
  go(Key::bracket_right);  // stride 1, 4 sectors
  CHECK(stage.has("moved_3"));
  CHECK_FALSE(stage.has("moved_1_0"));  // nothing has moved before
  go(Key::bracket_right);
  CHECK(stage.has("moved_7"));
  CHECK(stage.has("moved_1_0"));
}

TEST_CASE("the text stands at its stop after it was set anew", "[ui_shell]") {
  ShellOptions options;
  options.lesson = "online-softmax";
  options.reader = true;
  Stage stage(options);
  stage.lab.answer();
  stage.frame();
  constexpr int kStops = 9;
  for (int i = 0; i < kStops; ++i) {
    stage.shell.key(Key::bracket_right, false);
    stage.frame();
    if (stage.has("skip_asking")) stage.click("skip_asking");
    stage.lab.answer();
    stage.frame();
  }
  const auto in_sight = [&] {
    const float top = stage.part(fmt::format("stop_{}", kStops))["rect"][1].get<float>();
    const auto text = stage.part("lesson_text")["rect"].get<std::vector<float>>();
    CAPTURE(top, text);
    return top >= text[1] - 1 && top < text[1] + text[3] / 2;
  };
  CHECK(in_sight());
  for (const Key key : {Key::p, Key::p, Key::l, Key::l}) stage.shell.key(key, false), stage.frame();
  CHECK(in_sight());
  stage.frame({1024, 640});
  stage.frame({1024, 640});
  CHECK(in_sight());
  stage.frame();
  CHECK(in_sight());
}

namespace {

/// The text of online-softmax at a stop that asks with choices.
struct AskingStop {
  AskingStop(bool presenter = false) : stage(options_of(presenter)) {
    stage.lab.answer();
    stage.frame();
    const auto guide = scenes::parse_guide(scenes::lesson_text("online-softmax"),
                                           lesson("online-softmax").knobs());
    while (guide.stops.at(number).ask != "masked-tile") ++number;
    stop = guide.stops[number];
    for (std::size_t i = 0; i <= number; ++i) stage.shell.key(Key::bracket_right, false);
    stage.frame();
    stage.lab.answer();
    stage.frame();
  }
  static ShellOptions options_of(bool presenter) {
    ShellOptions options;
    options.lesson = "online-softmax";
    options.reader = options.predict = true;
    options.presenter = presenter;
    return options;
  }
  Stage stage;
  std::size_t number = 0;
  scenes::GuideStop stop;
};

}  // namespace

TEST_CASE("a stop that asks stands before its step, and its text comes after the answer",
          "[ui_shell]") {
  AskingStop asking;
  Stage& stage = asking.stage;
  CHECK(stage.part(fmt::format("stop_{}", asking.number + 1))["value"] == "selected");
  CHECK(stage.shell.step() == asking.stop.step - 1);
  REQUIRE(stage.has("question"));
  CHECK(stage.has("skip_asking"));
  const auto height = [&](std::size_t stop) {
    return stage.part(fmt::format("stop_{}", stop))["rect"][3].get<float>();
  };
  const float folded = height(asking.number + 2);  // what comes after may tell the answer
  stage.shell.key(Key::a, false);
  stage.frame();
  CHECK_FALSE(stage.has("skip_asking"));
  CHECK(stage.shell.step() == asking.stop.step - 1);  // an answer alone shows nothing yet
  stage.click("show_asked");
  stage.frame();
  stage.frame();
  CHECK(stage.shell.step() == asking.stop.step);
  CHECK(stage.has("predict_verdict"));
  CHECK_FALSE(stage.has("show_asked"));
  CHECK(height(asking.number + 2) > folded);
  // Who comes back is not asked again.
  for (const Key key : {Key::bracket_left, Key::bracket_right}) {
    stage.shell.key(key, false);
    stage.frame();
    stage.lab.answer();
    stage.frame();
  }
  CHECK(stage.shell.step() == asking.stop.step);
  CHECK_FALSE(stage.has("question"));
}

TEST_CASE("the question of a stop can be skipped, and questions that are off ask nothing",
          "[ui_shell]") {
  for (const char* by : {"button", "Esc", "off"}) {
    CAPTURE(by);
    AskingStop asking;
    Stage& stage = asking.stage;
    REQUIRE(stage.has("skip_asking"));
    if (std::string(by) == "button") stage.click("skip_asking");
    if (std::string(by) == "Esc") stage.shell.key(Key::escape, false);
    if (std::string(by) == "off") {
      ShellOptions options = AskingStop::options_of(false);
      options.predict = false;
      options.stop = static_cast<int>(asking.number);
      options.step = asking.stop.step;
      Stage other(options);
      other.lab.answer();
      other.frame();
      CHECK_FALSE(other.has("skip_asking"));
      CHECK(other.shell.step() == asking.stop.step);
      continue;
    }
    stage.frame();
    stage.frame();
    CHECK_FALSE(stage.has("skip_asking"));
    CHECK_FALSE(stage.has("question"));
    CHECK(stage.shell.step() == asking.stop.step);
  }
}

TEST_CASE(
    "a presenter's clicker goes through the stops, whose title and first sentence stand below",
    "[ui_shell]") {
  ShellOptions options;
  options.lesson = "online-softmax";
  options.presenter = options.predict = true;
  Stage stage(options);
  const ImVec2 size(1280, 720);
  std::size_t answered = 0;
  const auto settle = [&] {
    stage.frame(size);
    if (stage.lab.requests.size() > std::exchange(answered, stage.lab.requests.size())) {
      stage.lab.answer();
    }
    stage.frame(size);
    stage.frame(size);
  };
  settle();
  CHECK_FALSE(stage.has("stop_told"));
  const auto guide =
      scenes::parse_guide(scenes::lesson_text(options.lesson), lesson(options.lesson).knobs());
  // The path begins with the text, which then goes.
  stage.shell.key(Key::l, false);
  stage.frame(size);
  stage.shell.key(Key::bracket_right, false);
  CHECK_FALSE(stage.has("stop_told"));
  stage.shell.key(Key::l, false);
  settle();
  REQUIRE(stage.has("stop_told"));
  CHECK(stage.part("stop_told")["label"] == guide.stops[0].title);
  const std::string told = stage.part("stop_told")["value"];
  CHECK(told.size() > 20);
  CHECK(told.ends_with('.'));
  CHECK(told.find("](") == std::string::npos);
  CHECK(stage.part("stop_told")["rect"] == stage.part("stop_told")["raw"]);
  for (std::size_t stop = 1; stop < guide.stops.size(); ++stop) {
    stage.shell.key(Key::page_down, false);
    settle();
    CAPTURE(stop);
    if (guide.stops[stop].ask.empty() || !stage.has("question")) {
      CHECK(stage.part("stop_told")["label"] == guide.stops[stop].title);
      continue;
    }
    stage.shell.key(Key::page_down, false);  // goes without an answer
    settle();
    CHECK(stage.part("stop_told")["label"] == guide.stops[stop].title);
  }
  CHECK_FALSE(stage.part("stop_told")["value"].get<std::string>().starts_with("-"));  // of a list
  stage.shell.key(Key::page_up, false);
  settle();
  CHECK(stage.part("stop_told")["label"] == guide.stops[guide.stops.size() - 2].title);

  options.stop = 2;  // as one is left there
  Stage again(options);
  again.lab.answer();
  again.frame(size);
  CHECK(again.part("stop_told")["label"] == guide.stops[2].title);
}

TEST_CASE("before a lesson begins, two questions of earlier ones come back at other settings",
          "[ui_shell]") {
  for (const Key key : {Key::right, Key::escape}) {  // answered, skipped
    CAPTURE(key == Key::escape);
    const tests::TemporaryFolder folder;
    ShellOptions options;
    options.first_start = options.predict = true;
    options.progress = folder.path() / "progress.json";
    Stage stage(options);
    stage.lab.answer();
    stage.frame();
    stage.click("course_" + lessons()[2]->info().id);
    const std::string title = lessons()[2]->info().title;
    std::vector<std::string> asked;
    for (int number = 1; number <= 2; ++number) {
      stage.frame();
      stage.lab.answer();
      stage.frame();
      stage.frame();
      CAPTURE(number);
      REQUIRE(stage.has("recall"));
      CHECK(tests::contains(stage.part("recall")["label"].get<std::string>(),
                            fmt::format("{} of 2 before {}", number, title)));
      asked.push_back(stage.shell.lesson());
      CHECK(stage.lab.requests.back().params != lesson(asked.back()).knobs().completed({}));
      const bool chosen = stage.has("predict_0");
      if (key == Key::right && chosen) {
        stage.shell.key(Key::a, false);
        stage.frame();
        stage.shell.key(Key::right, false);
        stage.frame();
        CHECK(stage.has("predict_verdict"));
        stage.shell.update();
        CHECK(ProgressFile(*options.progress).load().lessons.at(asked.back()).asked.size() == 1);
      }
      stage.shell.key(key, false);
      stage.frame();
    }
    CHECK(asked == std::vector<std::string>{lessons()[0]->info().id, lessons()[1]->info().id});
    stage.lab.answer();
    stage.frame();
    stage.frame();
    CHECK(stage.shell.lesson() == lessons()[2]->info().id);
    CHECK_FALSE(stage.has("recall"));
    CHECK(stage.part("stop_1")["value"] == "selected");
    // The lesson that was asked about stands as it did, and who comes back to this one is not asked again.
    stage.shell.key(Key::digit_1, false);
    stage.lab.answer();
    stage.frame();
    CHECK(stage.lab.requests.back().params == lessons()[0]->knobs().completed({}));
    stage.shell.key(Key::h, false);
    stage.frame();
    stage.click("course_" + lessons()[2]->info().id);
    stage.frame();
    CHECK_FALSE(stage.has("recall"));
  }
}

TEST_CASE("every lesson from the second on has its two questions", "[ui_shell]") {
  std::vector<LessonState> all;
  for (auto& scene : scenes::make_scenes()) {
    LessonState state;
    state.info = lesson(scene->lesson()).info();
    state.knobs = lesson(scene->lesson()).knobs();
    all.push_back(std::move(state));
  }
  CHECK(recall_before(all, 0, 0).empty());
  std::set<std::vector<std::pair<std::size_t, lab::Settings>>> kinds;
  for (std::int64_t seed = 0; seed < 8; ++seed) {
    std::vector<std::pair<std::size_t, lab::Settings>> made;
    for (const auto& [index, settings] : recall_before(all, 5, seed))
      made.emplace_back(index, settings);
    kinds.insert(made);
  }
  CHECK(kinds.size() > 4);  // who comes another way is asked something else
  for (std::size_t target = 1; target < all.size(); ++target) {
    const auto visits = recall_before(all, target, 0);
    CAPTURE(all[target].info.id);
    REQUIRE(visits.size() == 2);
    CHECK(visits[1].lesson == target - 1);
    for (const auto& [index, settings] : visits) {
      const auto scene = tests::scene_of(all[index].info.id);
      scene->load(tests::report_of(all[index].info.id, settings));
      bool asks = false;
      for (int step = 0; step < scene->steps().tiles && !asks; ++step) {
        asks = scene->question({at_step(scene->steps(), step)}).has_value();
      }
      CAPTURE(all[index].info.id);
      CHECK(asks);
    }
  }
}

TEST_CASE("Ctrl+K finds a lesson, a knob, a term and an action", "[ui_shell]") {
  Stage stage;
  stage.lab.answer();
  stage.frame();
  stage.shell.key(Key::find, false);
  stage.frame();
  REQUIRE(stage.has("palette"));
  for (const char c : std::string("light theme"))
    ImGui::GetIO().AddInputCharacter(static_cast<unsigned>(c));
  stage.frame();
  stage.frame();
  REQUIRE(stage.has("find_action_theme"));
  stage.shell.key(Key::enter, false);
  stage.frame();
  stage.frame();
  CHECK_FALSE(stage.has("palette"));
  CHECK(stage.part("theme")["label"] == "Dark theme");
  stage.shell.key(Key::find, false);
  stage.frame();
  stage.shell.key(Key::escape, false);
  stage.frame();
  CHECK_FALSE(stage.has("palette"));
}

TEST_CASE("a note is written, kept with a capsule and shown when it is opened", "[ui_shell]") {
  Stage stage;
  stage.lab.answer();
  stage.frame();
  stage.shell.key(Key::find, false);
  stage.frame();
  for (const char c : std::string("note about")) {
    ImGui::GetIO().AddInputCharacter(static_cast<unsigned>(c));
  }
  stage.frame();
  stage.shell.key(Key::enter, false);
  stage.frame();
  stage.frame();
  REQUIRE(stage.has("note_text"));
  for (const char c : std::string("m jumps")) {
    ImGui::GetIO().AddInputCharacter(static_cast<unsigned>(c));
  }
  stage.frame();
  CHECK(stage.part("note_text")["value"] == "m jumps");
  const Capsule capsule = stage.shell.capsule();
  CHECK(capsule.notes == "m jumps");
  stage.click("edit_note");
  CHECK_FALSE(stage.has("note_text"));
  CHECK(stage.part("note")["value"] == "m jumps");
  stage.shell.key(Key::escape, false);
  stage.frame();
  CHECK_FALSE(stage.has("note"));
  stage.shell.open(capsule);
  stage.frame();
  CHECK(stage.part("note")["value"] == "m jumps");
}

TEST_CASE("each card of the tour of the window goes once what it names is done", "[ui_shell]") {
  ShellOptions options;
  options.first_start = true;
  Stage stage(options);
  stage.lab.answer();
  stage.frame();
  stage.click("coach_begin");
  stage.frame();
  const auto card = [&] { return stage.part("coach")["label"].get<std::string>(); };
  const auto press = [&](Key key) {
    stage.shell.key(key, false);
    stage.frame();
    stage.frame();
  };
  CHECK(card() == "Press →");
  press(Key::t);  // something else
  CHECK(card() == "Press →");
  press(Key::right);
  CHECK(stage.shell.step() == 1);
  CHECK(card() == "Point at this number");
  const auto m = stage.part("m")["rect"].get<std::vector<float>>();
  ImGui::GetIO().MousePos = {m[0] + 5, m[1] + 5};
  stage.frame();
  stage.frame();
  CHECK(card() == "Turn a knob");
  stage.shell.set_knobs({{"keys", std::int64_t{32}}});
  stage.frame();
  stage.frame();
  CHECK(card() == "Press K");
  press(Key::k);
  CHECK(stage.part("tab_kernel")["value"] == "selected");
  CHECK(card() == "Press L");
  press(Key::l);
  CHECK(stage.has("lesson_text"));
  CHECK(card() == "Press Ctrl+K");
  press(Key::find);
  press(Key::escape);
  CHECK_FALSE(stage.has("coach"));
}

TEST_CASE("a card of the tour can be skipped, and the tour ended", "[ui_shell]") {
  ShellOptions options;
  options.first_start = true;
  Stage stage(options);
  stage.lab.answer();
  stage.frame();
  stage.click("coach_begin");
  stage.frame();
  stage.click("coach_skip");
  stage.frame();
  CHECK(stage.part("coach")["label"] == "Point at this number");
  stage.shell.key(Key::enter, false);
  stage.frame();
  CHECK(stage.part("coach")["label"] == "Turn a knob");
  stage.shell.key(Key::escape, false);
  stage.frame();
  CHECK_FALSE(stage.has("coach"));
  CHECK(stage.shell.step() == 0);
}
