// The shell's logic with a scene and a lab of its own: no kernel, no window.
#include "app/shell/session.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "app/shell/layout.hpp"
#include "app/shell/steps.hpp"
#include "app/window/canvas.hpp"
#include "kernels/base/lab/quick.hpp"
#include "scenes/ui/theme.hpp"
#include "tests/app/shell/fake_scene.hpp"
#include "tests/catch.hpp"

using namespace tilestep;
using namespace tilestep::app;
using namespace tilestep::tests;
using scenes::Cursor;

namespace {

/// Answers when the test says so. As in every lab a request replaces the older one of its kind.
class FakeLab final : public LabClient {
 public:
  Ticket submit(const lab::Request& request) override {
    requests.push_back(request);
    const Ticket ticket = requests.size();
    Ticket& open = request.action == lab::Request::Action::run ? open_run_ : open_bench_;
    if (open != 0) updates.push_back({open, LabGivenUp::replaced});
    return open = ticket;
  }
  Ticket submit_assembly(std::size_t, const workbench::AssemblyRequest&) override { return 0; }
  std::optional<LabUpdate> poll() override {
    if (updates.empty()) return std::nullopt;
    LabUpdate update = updates.front();
    updates.pop_front();
    return update;
  }
  void cancel(Ticket ticket) override { updates.push_back({ticket, LabGivenUp::cancelled}); }
  bool busy() const override { return false; }

  std::vector<lab::Request> requests;
  std::deque<LabUpdate> updates;

 private:
  Ticket open_run_ = 0, open_bench_ = 0;
};

lab::Report report_of(std::string summary, std::int64_t keys = 16) {
  lab::Report report;
  report.lesson = "fake";
  report.params = {{"keys", keys}};
  report.summary = std::move(summary);
  return report;
}

std::vector<LessonState> fake_lessons(int count) {
  std::vector<LessonState> lessons;
  for (int i = 0; i < count; ++i) {
    LessonState lesson;
    lesson.info.id = "fake";
    lab::Knob keys;
    keys.id = "keys";
    keys.min = 1;
    keys.max = 100;
    keys.initial = std::int64_t{16};
    lesson.knobs = lab::Knobs({keys});
    lesson.player = std::make_unique<scenes::ScenePlayer>(std::make_unique<FakeScene>());
    lessons.push_back(std::move(lesson));
  }
  return lessons;
}

std::int64_t keys_of(const lab::Request& request) {
  return std::get<std::int64_t>(request.params.at("keys"));
}

}  // namespace

TEST_CASE("steps land on whole tiles, lines go through the phases", "[ui_session]") {
  CHECK(at_step(kAxis, 0) == Cursor{0, 2});
  CHECK(at_step(kAxis, 99) == Cursor{4, 2});
  CHECK(step_on(kAxis, {0, 2}) == Cursor{1, 2});
  CHECK(step_on(kAxis, {2, 0}) == Cursor{2, 2});
  CHECK(step_on(kAxis, {4, 2}) == Cursor{4, 2});
  CHECK(step_back(kAxis, {2, 1}) == Cursor{1, 2});
  CHECK(step_back(kAxis, {0, 2}) == Cursor{0, 2});
  CHECK(line_on(kAxis, {0, 2}) == Cursor{1, 0});
  CHECK(line_on(kAxis, {4, 2}) == Cursor{4, 2});
  CHECK(line_back(kAxis, {1, 0}) == Cursor{0, 2});
  CHECK(completed_steps(kAxis, {3, 1}) == 2);
  CHECK(at_end(kAxis, {4, 2}));
  CHECK_FALSE(at_end(kAxis, {4, 1}));
  // There and back again over the whole trace.
  Cursor cursor = at_step(kAxis, 0);
  int moves = 0;
  for (; !at_end(kAxis, cursor); ++moves) cursor = line_on(kAxis, cursor);
  CHECK(moves == 12);
  for (; moves > 0; --moves) cursor = line_back(kAxis, cursor);
  CHECK(cursor == at_step(kAxis, 0));
}

TEST_CASE("the first report puts the cursor where it was asked to be", "[ui_session]") {
  FakeLab lab;
  auto lessons = fake_lessons(1);
  lessons[0].wanted_step = 2;
  Session session(lab, std::move(lessons), offer_of("emulated"));
  session.choose(0);
  REQUIRE(lab.requests.size() == 1);
  CHECK(lab.requests[0].backend == "emulated");
  session.step_on();  // nothing is loaded yet
  CHECK(session.step() == 0);
  lab.updates.push_back({1, LabProgress{0.5, "tile 2"}});
  lab.updates.push_back({1, report_of("good")});
  CHECK(session.update(0));
  CHECK(session.step() == 2);
  CHECK_FALSE(session.lesson().outdated());
}

TEST_CASE("knobs rest before they are sent, and only the newest answer counts", "[ui_session]") {
  FakeLab lab;
  Session session(lab, fake_lessons(1), offer_of("auto"));
  session.choose(0);
  lab.updates.push_back({1, report_of("first")});
  session.update(0);
  session.last();

  for (int keys = 20; keys <= 30; ++keys) session.set_knob("keys", std::int64_t{keys}, 1.0);
  session.update(1.05);
  CHECK(lab.requests.size() == 1);
  CHECK(session.lesson().outdated());
  session.update(1.09);
  REQUIRE(lab.requests.size() == 2);
  CHECK(keys_of(lab.requests[1]) == 30);

  session.set_knob("keys", std::int64_t{40}, 2.0);
  session.update(2.1);
  REQUIRE(lab.requests.size() == 3);
  lab.updates.push_back({2, report_of("late")});
  CHECK_FALSE(session.update(2.2));
  CHECK(session.lesson().report->summary == "first");
  CHECK(session.lesson().outdated());
  lab.updates.push_back({3, report_of("newest", 40)});
  CHECK(session.update(2.3));
  CHECK(session.lesson().report->summary == "newest");
  CHECK_FALSE(session.lesson().outdated());
  CHECK(session.step() == 4);  // the cursor stays

  CHECK_THROWS_AS(session.set_knob("keys", std::int64_t{0}, 3.0), Error);
  session.reset(4.0);
  session.update(4.0);
  CHECK(keys_of(lab.requests.back()) == 16);
  CHECK(session.step() == 0);
}

TEST_CASE("what is changed in the picture is sent like a knob", "[ui_session]") {
  FakeLab lab;
  Session session(lab, fake_lessons(2), offer_of("auto"));
  session.choose(0);
  lab.updates.push_back({1, report_of("first")});
  session.update(0);
  session.lesson().player->request({{"keys", std::int64_t{33}}});
  CHECK(session.update(1.0));
  CHECK(session.lesson().outdated());
  CHECK(std::get<std::int64_t>(session.lesson().settings.at("keys")) == 33);
  CHECK(lab.requests.size() == 1);
  session.update(1.09);
  REQUIRE(lab.requests.size() == 2);
  CHECK(keys_of(lab.requests[1]) == 33);
  session.update(2.0);  // asked for once
  CHECK(lab.requests.size() == 2);
}

TEST_CASE("a failure is kept until a run works again", "[ui_session]") {
  FakeLab lab;
  Session session(lab, fake_lessons(1), offer_of("auto"));
  session.choose(0);
  lab.updates.push_back({1, LabFailure{"the worker died", ExitCode::unavailable, true}});
  session.update(0);
  REQUIRE(session.lesson().failure);
  CHECK(session.lesson().failure->worker_died);
  session.run_again(1);
  session.update(1);
  REQUIRE(lab.requests.size() == 2);
  lab.updates.push_back({2, report_of("bad")});  // a report that the scene refuses
  session.update(1);
  CHECK(session.lesson().failure->sentence == "the trace has no tiles");
  CHECK_FALSE(session.lesson().report);
  session.run_again(2);
  session.update(2);
  lab.updates.push_back({3, report_of("good")});
  session.update(2);
  CHECK_FALSE(session.lesson().failure);
}

TEST_CASE("a lesson left before its report came asks again", "[ui_session]") {
  FakeLab lab;
  Session session(lab, fake_lessons(2), offer_of("auto"));
  session.choose(0);
  session.choose(1);
  session.choose(0);
  CHECK(lab.requests.size() == 3);
  session.start_bench();
  CHECK(lab.requests.back().action == lab::Request::Action::bench);
  lab.updates.push_back({4, report_of("bench")});
  session.update(0);
  CHECK(session.lesson().bench->summary == "bench");
  CHECK_FALSE(session.lesson().report);
  CHECK(lab::is_quick(lab.requests.back()));  // the ladder first, and asked again all
  session.start_bench();
  CHECK_FALSE(lab::is_quick(lab.requests.back()));
}

TEST_CASE("a lesson left in the middle of a run is stale on return and runs again",
          "[ui_session]") {
  FakeLab lab;
  Session session(lab, fake_lessons(2), offer_of("auto"));
  session.choose(0);
  lab.updates.push_back({1, report_of("old")});
  session.update(0);
  session.set_knob("keys", std::int64_t{50}, 1.0);
  session.update(1.1);
  REQUIRE(lab.requests.size() == 2);
  session.choose(1);  // whose run takes the place of that one
  lab.updates.push_back({3, report_of("other")});
  session.update(1.2);
  session.choose(0);
  CHECK(session.lesson().report->summary == "old");
  CHECK(session.lesson().stale());
  CHECK(session.lesson().outdated());
  REQUIRE(lab.requests.size() == 4);
  CHECK(keys_of(lab.requests[3]) == 50);
  lab.updates.push_back({4, report_of("new", 50)});
  session.update(1.3);
  CHECK_FALSE(session.lesson().outdated());
  session.choose(1);  // nothing changed there
  session.choose(0);
  CHECK(lab.requests.size() == 4);
}

TEST_CASE("a failed run is not tried again by coming back, changed knobs are", "[ui_session]") {
  FakeLab lab;
  Session session(lab, fake_lessons(2), offer_of("auto"));
  session.choose(0);
  lab.updates.push_back({1, LabFailure{"too small", ExitCode::bad_input, false}});
  session.update(0);
  session.choose(1);
  session.choose(0);
  CHECK(lab.requests.size() == 2);
  session.set_knob("keys", std::int64_t{50}, 1.0);
  session.update(1.1);
  session.choose(1);
  session.choose(0);
  REQUIRE(lab.requests.size() >= 4);
  CHECK(keys_of(lab.requests.back()) == 50);
}

TEST_CASE("a knob moved during a bench leaves it alone; the bench ends as what it is",
          "[ui_session]") {
  FakeLab lab;
  Session session(lab, fake_lessons(2), offer_of("auto"));
  session.choose(0);
  lab.updates.push_back({1, report_of("first")});
  session.update(0);
  session.start_bench();
  CHECK(session.benched() == &session.lesson());
  lab.updates.push_back({2, LabProgress{0.341, "naive"}});
  CHECK(session.update(0.1));
  lab.updates.push_back({2, LabProgress{0.342, "naive"}});
  CHECK_FALSE(session.update(0.1));  // shown as 34 % both times: no frame for it
  session.set_knob("keys", std::int64_t{50}, 0.2);
  session.update(0.3);
  REQUIRE(lab.requests.size() == 3);
  CHECK(session.lesson().bench_run == 2);
  lab.updates.push_back({3, LabProgress{0, "waits", true}});
  session.update(0.4);
  CHECK(session.lesson().progress.waiting);
  CHECK(session.lesson().outdated());
  lab.updates.push_back({2, report_of("bench")});
  lab.updates.push_back({3, report_of("second", 50)});
  session.update(0.5);
  CHECK(session.lesson().bench->summary == "bench");
  CHECK(session.lesson().report->summary == "second");
  CHECK(session.benched() == nullptr);

  session.start_bench();
  session.choose(1);
  session.start_bench();  // replaces that of the first lesson
  CHECK(session.benched() == &session.lesson());
  session.update(1);
  CHECK(session.lessons()[0].bench_given_up == LabGivenUp::replaced);
  CHECK_FALSE(session.lessons()[0].bench_run);
  session.stop_bench();
  session.update(1);
  CHECK(session.lesson().bench_given_up == LabGivenUp::cancelled);
  CHECK(session.benched() == nullptr);
  session.start_bench();
  CHECK_FALSE(session.lesson().bench_given_up);
}

TEST_CASE("playback goes line by line at its speed and stops at the end", "[ui_session]") {
  FakeLab lab;
  Session session(lab, fake_lessons(1), offer_of("auto"));
  session.choose(0);
  session.toggle_play();  // nothing to play yet
  CHECK_FALSE(session.playing());
  lab.updates.push_back({1, report_of("good")});
  session.update(0);
  session.toggle_play();
  session.advance(0.61);
  CHECK(session.lesson().cursor == Cursor{1, 0});
  session.set_speed(4);
  session.advance(0.16);
  CHECK(session.lesson().cursor == Cursor{1, 1});
  for (int frame = 0; frame < 60; ++frame) session.advance(0.16);
  CHECK(session.step() == 4);
  CHECK_FALSE(session.playing());
  session.toggle_play();  // again from the start
  CHECK(session.step() == 0);
  session.step_on();  // a hand on the controls
  CHECK_FALSE(session.playing());
}

TEST_CASE("a playhead goes evenly to its goal, and may stand between two places", "[ui_session]") {
  Playhead head;
  head.cut(4);
  CHECK(head.rests());
  head.aim(6, 1);
  head.advance(0.25);
  CHECK(head.place() == 4);
  CHECK(head.fraction() == Approx(0.5));
  CHECK(head.goes_on());
  head.aim(4, 1);  // back, from where it is
  CHECK(head.position() == Approx(4.5));
  head.advance(10);
  CHECK(head.position() == 4);
  CHECK(head.rests());
  head.cut(2.75);
  CHECK(head.rests());
  CHECK(head.place() == 2);
}

TEST_CASE("a step plays its phases one after another, a second press ends it", "[ui_session]") {
  FakeLab lab;
  Session session(lab, fake_lessons(1), offer_of("auto"));
  session.set_moves(true);
  session.choose(0);
  lab.updates.push_back({1, report_of("good")});
  session.update(0);
  session.step_on();
  CHECK(session.moving());
  CHECK(session.lesson().cursor == Cursor{0, 2});  // numbers change where a phase ends
  session.advance(0.5);
  CHECK(session.lesson().cursor == Cursor{1, 0});
  CHECK(session.lesson().moment().fraction > 0.1);
  session.step_on();
  CHECK_FALSE(session.moving());
  CHECK(session.lesson().cursor == Cursor{1, 2});
  session.step_back();
  session.advance(0.1);
  CHECK(session.moving());
  session.advance(5);
  CHECK(session.step() == 0);
  session.step_on();
  session.advance(0.5);
  session.step_back();  // turned round inside the step
  session.advance(5);
  CHECK(session.step() == 0);

  session.scrub(4.4);  // a hand between two places
  CHECK(session.lesson().cursor == Cursor{2, 0});
  CHECK(session.lesson().moment().fraction == Approx(0.4));
  session.end_scrub();
  session.advance(5);
  CHECK(session.lesson().cursor == Cursor{2, 0});
  session.set_moves(false);
  session.step_on();
  CHECK(session.lesson().cursor == Cursor{2, 2});
  CHECK_FALSE(session.moving());
}

TEST_CASE("a step rests where an event has changed something, until a press or a second later",
          "[ui_session]") {
  FakeLab lab;
  Session session(lab, fake_lessons(1), offer_of("auto"));
  session.set_moves(true);
  session.choose(0);
  lab.updates.push_back({1, report_of("good")});
  session.update(0);
  session.lesson().events = {{{2, 0}, "m rises"}, {{2, 2}, "the end of a step needs no rest"}};
  for (const bool pressed : {false, true}) {
    session.go({1, 2});
    session.step_on();
    for (int i = 0; i < 12; ++i) session.advance(0.1);
    CHECK(session.lesson().cursor == Cursor{2, 0});
    CHECK(session.lesson().moment().fraction == 0);
    CHECK(session.moving());
    if (pressed) session.step_on();
    for (int i = 0; i < (pressed ? 1 : 6); ++i) session.advance(0.1);
    CHECK(session.lesson().moment().fraction > 0);
    session.advance(5);
    CHECK(session.lesson().cursor == Cursor{2, 2});
    CHECK_FALSE(session.moving());
  }
}

namespace {

/// Nine steps in units of four and five; something is asked before the third.
class UnitScene final : public FakeScene {
 public:
  std::unique_ptr<Scene> blank() const override { return std::make_unique<UnitScene>(); }
  scenes::StepAxis steps() const override { return axis(); }
  std::optional<scenes::Question> question(const scenes::View& view) const override {
    if (view.cursor.tile != 2) return std::nullopt;
    return scenes::Question{"What comes next?", {"this", "that"}, 0, "It always does."};
  }
  static scenes::StepAxis axis() {
    scenes::StepAxis axis{9, 1, "event", {}};
    axis.unit = "k-tile";
    axis.unit_ends = {4, 9};
    return axis;
  }
};

}  // namespace

TEST_CASE("where several steps are a unit, arrows go through units, and stop where one is asked",
          "[ui_session]") {
  const scenes::StepAxis axis = UnitScene::axis();
  CHECK(step_on(axis, {0, 0}) == Cursor{4, 0});
  CHECK(step_on(axis, {3, 0}) == Cursor{4, 0});
  CHECK(step_on(axis, {4, 0}) == Cursor{9, 0});
  CHECK(step_on(axis, {9, 0}) == Cursor{9, 0});
  CHECK(step_back(axis, {9, 0}) == Cursor{4, 0});
  CHECK(step_back(axis, {5, 0}) == Cursor{4, 0});
  CHECK(step_back(axis, {4, 0}) == Cursor{0, 0});
  FakeLab lab;
  auto lessons = fake_lessons(1);
  lessons[0].player = std::make_unique<scenes::ScenePlayer>(std::make_unique<UnitScene>());
  Session session(lab, std::move(lessons), offer_of("auto"));
  session.choose(0);
  lab.updates.push_back({1, report_of("good")});
  session.update(0);
  const auto steps = [&session](auto move) {
    move();
    return session.step();
  };
  const auto on = [&session] { session.step_on(); };
  CHECK(steps(on) == 4);
  CHECK(steps([&] { session.line_on(); }) == 5);
  CHECK(steps(on) == 9);
  CHECK(steps([&] { session.step_back(); }) == 4);
  session.first();
  session.set_predicts(true);
  CHECK(steps(on) == 2);  // what comes now is asked about
  CHECK(steps(on) == 2);
  REQUIRE(session.lesson().gate.waits());
  session.answer({{2, 0}, 0, 0});
  CHECK(steps(on) == 3);
  CHECK(session.lesson().gate.card()->revealed);
  CHECK(session.lesson().gate.score() == std::vector{Outcome::right});
  CHECK(steps(on) == 4);
  session.first();
  CHECK(steps(on) == 4);  // asked once
  session.set_moves(true);
  session.step_on();
  session.advance(1);
  CHECK(session.step() > 4);  // all of them are passed
  CHECK(session.step() < 9);
  session.step_back();  // turned round inside the unit
  session.advance(5);
  CHECK(session.step() == 4);
  session.step_on();
  session.advance(5);
  CHECK(session.step() == 9);
}

TEST_CASE("what is asked comes before the step, and is judged once when it is shown",
          "[ui_session]") {
  FakeLab lab;
  Session session(lab, fake_lessons(1), offer_of("auto"));
  session.choose(0);
  lab.updates.push_back({1, report_of("good")});
  session.update(0);
  session.step_on();  // questions are off
  CHECK(session.step() == 1);
  session.first();
  session.set_predicts(true);
  session.step_on();
  REQUIRE(session.lesson().gate.waits());
  CHECK(session.step() == 0);
  const scenes::Question asked = session.lesson().gate.card()->question;
  session.answer({{0, 2}, asked.answer, 0});
  CHECK_FALSE(session.lesson().gate.waits());
  CHECK(session.lesson().gate.score().empty());
  session.step_on();
  CHECK(session.step() == 1);
  REQUIRE(session.lesson().gate.card());
  CHECK(session.lesson().gate.card()->revealed);
  CHECK(session.lesson().gate.score() == std::vector{Outcome::right});
  session.step_on();  // the next question
  session.answer({{1, 2}, asked.answer + 1, 0});
  session.step_on();
  CHECK(session.lesson().gate.score() == std::vector{Outcome::right, Outcome::wrong});
  session.step_on();
  session.step_on();  // gone over
  CHECK(session.step() == 3);
  CHECK(session.lesson().gate.score().back() == Outcome::skipped);
  session.step_back();
  session.step_on();  // not asked again
  CHECK(session.step() == 3);
  session.step_on();
  session.skip();
  CHECK_FALSE(session.lesson().gate.card());
  session.first();
  session.toggle_play();
  session.advance(1);  // asked before in this run: it plays on
  CHECK(session.playing());
  session.set_predicts(false);
  session.last();
  session.step_back();
  session.step_on();
  CHECK(session.step() == 4);
}

TEST_CASE("the parts of the window never overlap or leave it", "[ui_session]") {
  const auto apart = [](const Rect& a, const Rect& b) {
    return a.max.x <= b.min.x || b.max.x <= a.min.x || a.max.y <= b.min.y || b.max.y <= a.min.y;
  };
  for (const ImVec2 size : {ImVec2(1024, 640), ImVec2(1440, 900), ImVec2(2560, 1440),
                            ImVec2(3840, 2160), ImVec2(1280, 720)}) {
    for (const float scale : {1.0f, 1.25f, 1.35f, 1.5f, 2.0f}) {
      for (int mode = 0; mode < 16; ++mode) {
        const LayoutMode how{(mode & 1) != 0, (mode & 2) != 0, false,
                             (mode & 4) != 0 ? 120 * scale : 0, (mode & 8) != 0};
        const Layout layout = make_layout(size, scale, how);
        INFO(size.x << "x" << size.y << " at " << scale << (how.presenter ? " presenter" : "")
                    << (how.reader ? " reader" : "") << (how.card > 0 ? " card" : ""));
        CHECK(layout.picture.width() >= 300);
        CHECK(layout.picture.height() >= 150);
        CHECK(layout.header.min.x >= layout.rail.max.x);
        CHECK(layout.staged == (how.presenter || how.reader));
        CHECK((layout.rail_kind == RailKind::none) == how.presenter);
        std::vector<Rect> parts = {layout.picture, layout.transport};
        if (layout.staged) {
          parts.push_back(layout.bar);
          if (how.card > 0) parts.push_back(layout.card);
          if (how.reader) parts.push_back(layout.reader);
        } else {
          parts.push_back(layout.side);
          parts.push_back(layout.tabs);
        }
        for (std::size_t i = 0; i < parts.size(); ++i) {
          for (std::size_t j = 0; j < i; ++j) CHECK(apart(parts[i], parts[j]));
          CHECK(parts[i].max.x <= size.x);
          if (!layout.stacked) CHECK(parts[i].max.y <= size.y);
        }
        // The picture is the largest part, unless one edits.
        if (!layout.stacked && !layout.staged && !how.edits && scale == 1) {
          const float area = layout.picture.width() * layout.picture.height();
          CHECK(area >= layout.tabs.width() * layout.tabs.height());
        }
      }
    }
  }
}

TEST_CASE("on a stage the picture has seven tenths of the screen", "[ui_session]") {
  for (const ImVec2 size : {ImVec2(1280, 720), ImVec2(1920, 1080)}) {
    const float scale =
        design_scale(static_cast<int>(size.x), static_cast<int>(size.y), 1) * ui::kPresenterScale;
    const Layout layout = make_layout(size, scale, {.presenter = true});
    CAPTURE(size.x, scale);
    CHECK_FALSE(layout.stacked);
    CHECK(layout.picture.width() * layout.picture.height() >= 0.7f * size.x * size.y);
    CHECK(16 * scale * 1080 / size.y >= 30);  // type, as it is on a screen of 1080 lines
  }
}
