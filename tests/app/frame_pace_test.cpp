#include "app/window/frame_pace.hpp"

#include "tests/catch.hpp"

using tilestep::app::FramePace;
using tilestep::app::Motion;

namespace {

/// How many frames are drawn in `seconds`, if `news_every_s` something on screen changes by itself
/// (0: never) and the mouse is never touched.
int frames_in(double seconds, const Motion& motion, double news_every_s = 0) {
  FramePace pace;
  for (int frame = 0; frame < 3; ++frame) pace.drawn(0);  // those of the window's opening
  int frames = 0;
  double news_s = 0;
  for (double now_s = 0.001; now_s < seconds; now_s += 0.001) {
    if (news_every_s > 0 && now_s >= news_s) {
      pace.news();
      news_s += news_every_s;
    }
    const auto next_s = pace.next_in_s(now_s, motion);
    if (!next_s || *next_s > 0) continue;
    pace.drawn(now_s);
    ++frames;
  }
  return frames;
}

}  // namespace

TEST_CASE("a window draws what moves smoothly, and nothing when idle", "[ui_session]") {
  CHECK(frames_in(10, {}) == 0);
  const int smooth = frames_in(10, {.animating = true});
  CHECK(smooth > 500);
  CHECK(smooth <= 601);
  const int blinks = frames_in(10, {.typing = true});
  CHECK(blinks >= 24);
  CHECK(blinks <= 26);
  CHECK(frames_in(10, {}, 1) == 30);  // three for each change, so that the layout settles
}

TEST_CASE("while the lab works a window draws a few frames a second at most", "[ui_session]") {
  CHECK(frames_in(10, {.working = true}) == 0);
  for (const bool animating : {false, true}) {
    // A worker tells its progress twenty times a second.
    const int frames = frames_in(10, {.animating = animating, .working = true}, 0.05);
    CHECK(frames >= 30);
    CHECK(frames <= 41);
  }
  CHECK(frames_in(10, {.typing = true, .working = true}) <= 26);
}

TEST_CASE("an input is answered at once, also while the lab works", "[ui_session]") {
  const Motion motion{.animating = true, .working = true};
  FramePace pace;
  for (int frame = 0; frame < 3; ++frame) pace.drawn(5);
  CHECK(pace.next_in_s(5.01, motion).value() > 0.2);
  pace.input();
  for (int frame = 0; frame < 3; ++frame) {
    CHECK(pace.next_in_s(5.01, motion) == 0);
    pace.drawn(5.01);
  }
  CHECK(pace.next_in_s(5.02, motion).value() > 0.2);
}

TEST_CASE("while a GPU is timed nothing is drawn but for an input, and its end is",
          "[ui_session]") {
  const Motion timing{.animating = true, .typing = true, .working = true, .timing = true};
  CHECK(frames_in(10, timing, 0.05) <= 3);  // the first ones, of the window itself
  FramePace pace;
  for (int frame = 0; frame < 3; ++frame) pace.drawn(5);
  pace.news();
  CHECK(!pace.next_in_s(5.5, timing));
  pace.input();
  CHECK(pace.next_in_s(5.5, timing) == 0);
  for (int frame = 0; frame < 3; ++frame) pace.drawn(5.5);
  pace.news();
  CHECK(!pace.next_in_s(6, timing));
  CHECK(pace.next_in_s(6, {}) == 0);
}
