// A score dragged in the window: the session rests before it sends, and ends on the last place.
#include "app/shell/session.hpp"
#include "kernels/attention/online_softmax/lesson.hpp"
#include "tests/app/shell/stage.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using namespace tilestep::tests;

namespace {

std::vector<app::LessonState> softmax_alone() {
  std::vector<app::LessonState> all(1);
  all[0].info = lesson("online-softmax").info();
  all[0].knobs = lesson("online-softmax").knobs();
  all[0].player = std::make_unique<scenes::ScenePlayer>(scene_of("online-softmax"));
  return all;
}

}  // namespace

TEST_CASE("a score dragged over 50 places makes few runs and ends on its last",
          "[online_softmax_scene]") {
  HeldLab lab;
  app::Session session(lab, softmax_alone(), {{"emulated", "", "", "emulated", 0}});
  SceneFrame frame;
  double now_s = 0;
  session.update(now_s);
  if (lab.requests.empty()) session.choose(0);
  REQUIRE(lab.requests.size() == 1);
  lab.answer();
  session.update(now_s);
  REQUIRE(session.lesson().report);
  session.last();
  ImGuiIO& io = ImGui::GetIO();
  const auto draw = [&] {
    return frame.draw({1600, 1000},
                      [&] { session.lesson().player->draw_picture(session.lesson().cursor); });
  };
  io.MousePos = {-100, -100};
  draw();  // no first frame is like the others
  const auto parts = draw();
  const auto& one = parts.at("score_6");    // 5.0
  const auto& other = parts.at("score_1");  // 3.0
  const float unit = (other.min.y - one.min.y) / 2;
  io.MousePos = {(one.min.x + one.max.x) / 2, one.min.y + 3};
  draw();
  io.MouseDown[0] = true;
  draw();
  const std::size_t before = lab.requests.size();
  const float start = io.MousePos.y;
  for (int place = 1; place <= 50; ++place) {
    io.MousePos.y =
        start + 2 * unit * static_cast<float>(place) / 50;  // whole pixels are left of it
    draw();
    now_s += place % 10 == 0 ? 0.2 : 0.016;  // the hand rests now and then
    session.update(now_s);
    if (place % 20 == 0) lab.answer();  // the worker is slower than the hand
  }
  io.MouseDown[0] = false;
  draw();
  for (int frames = 0; frames < 20; ++frames) session.update(now_s += 0.016);
  CHECK(lab.requests.size() > before);
  CHECK(lab.requests.size() <= before + 10);
  const lab::Settings& last = lab.requests.back().params;
  CHECK(std::get<std::string>(last.at("preset")) == "custom");
  // It is the last place that the hand was at, and far from the first.
  CHECK(last == session.lesson().settings);
  lab.answer();
  session.update(now_s);
  CHECK_FALSE(session.lesson().outdated());
  const auto trace = online_softmax::trace_from_json(session.lesson().report->trace);
  CHECK(trace.scores[6] == 3.0f);
  CHECK(online_softmax::scores_text(trace.scores) == std::get<std::string>(last.at("scores")));
}
