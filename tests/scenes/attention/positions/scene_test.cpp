// What only the picture of positions does, held to the trace that it is drawn from.
#include "scenes/attention/positions/scene.hpp"

#include <cmath>

#include "tests/scenes/marks.hpp"

using namespace tilestep;
using positions::Phase;
using scenes::Cursor, scenes::PositionsScene;
using tests::items_named, tests::mark_named, tests::mark_of, tests::picture_at;
using Shown = tests::Shown<PositionsScene>;

namespace {

constexpr int kRotate = static_cast<int>(Phase::rotate), kScore = static_cast<int>(Phase::score);

/// The angle between two hands on a wheel, in turns, 0 … 1.
double between(const picture::Picture& picture, const char* q, const char* k) {
  const auto angle = [&](const char* name) {
    const auto& hand = mark_named<picture::Curve>(picture, name);
    return std::atan2(hand.y.back(), hand.x.back());
  };
  const double turns = (angle(q) - angle(k)) / (2 * M_PI);
  return turns - std::floor(turns);
}

}  // namespace

TEST_CASE("Positions: hands stand where the kernel turned the pair", "[positions_scene]") {
  for (const char* pairs : {"half-split", "interleaved"}) {
    Shown shown(lab::Settings{{"pairs", pairs}, {"shift", std::int64_t{777}}});
    const auto& trace = shown.trace();
    const int key = trace.last() - 3;
    for (int step = 1; step <= 8; ++step) {
      const picture::Picture picture = picture_at(*shown, Cursor{step, kRotate});
      const int i = step - 1;
      const auto first = static_cast<std::size_t>(number_of(trace.pairs, trace.dim, i, 0));
      const auto& q = mark_named<picture::Curve>(picture, "q" + std::to_string(i));
      const auto& k = mark_named<picture::Curve>(picture, "k" + std::to_string(i));
      CHECK(q.x.back() == static_cast<double>(trace.q_turned[first]));
      CHECK(k.x.back() ==
            static_cast<double>(trace.k_turned[static_cast<std::size_t>(key * trace.dim) + first]));
      CHECK(mark_named<picture::Curve>(picture, "rim_" + std::to_string(i)).state ==
            picture::State::current);
      // A wheel to come stands as it was.
      if (step == 8) continue;
      const auto next = static_cast<std::size_t>(number_of(trace.pairs, trace.dim, step, 0));
      CHECK(mark_named<picture::Curve>(picture, "q" + std::to_string(step)).x.back() ==
            static_cast<double>(trace.q[next]));
    }
  }
}

TEST_CASE("Positions: moving both tokens turns every hand and leaves the angles",
          "[positions_scene]") {
  Shown here, there(lab::Settings{{"shift", std::int64_t{12345}}});
  const picture::Picture a = picture_at(*here, 8), b = picture_at(*there, 8);
  for (int i = 0; i < 8; ++i) {
    const std::string q = "q" + std::to_string(i), k = "k" + std::to_string(i);
    const double apart =
        std::abs(between(a, q.c_str(), k.c_str()) - between(b, q.c_str(), k.c_str()));
    CHECK(std::min(apart, 1 - apart) < 0.01);
  }
  CHECK(mark_named<picture::Curve>(a, "q0").x.back() !=
        mark_named<picture::Curve>(b, "q0").x.back());
}

TEST_CASE("Positions: Kernel shows the kernel that does the phase", "[positions_scene]") {
  for (const char* method : {"rope", "alibi"}) {
    Shown shown(lab::Settings{{"method", method}});
    const int last = shown.trace().length();
    for (int step = 1; step <= last; ++step) {
      const scenes::SourceMark turns = shown->source({Cursor{step, kRotate}});
      const scenes::SourceMark sums = shown->source({Cursor{step, kScore}});
      INFO(method << ", step " << step);
      CHECK(turns.path == positions::kSourcePath);
      CHECK(turns.current == positions::step_lines()[step == last ? 2 : 1]);
      if (step == last) continue;
      CHECK(sums.path == positions::kScoresPath);
      const bool biased = method == std::string("alibi") && step + 2 >= last;
      CHECK(sums.current == positions::score_lines()[biased ? 1 : 0]);
      CHECK(sums.values.contains(positions::score_lines()[0]));
    }
  }
}

TEST_CASE("Positions: bars are the sum of the frequencies so far", "[positions_scene]") {
  Shown shown;
  const auto& trace = shown.trace();
  for (int step = 1; step <= 8; ++step) {
    const picture::Items before = items_named(picture_at(*shown, Cursor{step, kRotate}), "score");
    const picture::Picture now = picture_at(*shown, Cursor{step, kScore});
    const picture::Items after = items_named(now, "score");
    // The curve over them is the frequency that has just been added.
    const auto& wave = mark_named<picture::Curve>(now, "wave");
    for (int d = 0; d < positions::kTokens; ++d) {
      const auto at = static_cast<std::size_t>(d);
      CHECK(wave.y[at] == static_cast<double>(trace.term(trace.last() - d, step - 1)));
      CHECK(after.value[at] - before.value[at] ==
            Approx(trace.term(trace.last() - d, step - 1)).margin(1e-4));
    }
  }
}

TEST_CASE("Positions: another key is followed, and a token is dragged", "[positions_scene]") {
  Shown shown;
  scenes::View view{{1, kRotate}};
  view.picks["distance"] = 7;
  const picture::Picture picture = shown->picture(shown->extent(), view);
  const auto first = static_cast<std::size_t>((shown.trace().last() - 7) * shown.trace().dim);
  CHECK(mark_named<picture::Curve>(picture, "k0").x.back() ==
        static_cast<double>(shown.trace().k_turned[first]));
  CHECK(tests::contains(shown->sentence(view), "distance 7"));
  const auto moved = shown->dragged(view, {"token", 1}, 131.2);
  REQUIRE(moved);
  CHECK(std::get<std::int64_t>(moved->at("shift")) == 100);
  CHECK(std::get<std::int64_t>(shown->dragged(view, {"token", 1}, 3)->at("shift")) == 0);
  CHECK_FALSE(shown->dragged(view, {"score", 1}, 3));
}

TEST_CASE("Positions: an angle that is no number draws no hand", "[positions_scene]") {
  Shown shown(lab::Settings{{"break", "fp16-angles"}, {"shift", std::int64_t{100000}}});
  const picture::Picture picture = picture_at(*shown, Cursor{1, kRotate});
  CHECK(mark_of<picture::Curve>(picture, "q0") == nullptr);
  CHECK(tests::contains(shown->sentence({Cursor{1, kRotate}}), "no number"));
}

TEST_CASE("Positions: questions about a bench have its numbers", "[positions_scene]") {
  using Bench = tests::MadeUpBench<PositionsScene>;
  CHECK(Bench().answer("prefill") == "not asked");
  lab::Table fusion{
      "fusion",
      "",
      {lab::whole("tokens"), lab::real("times", "", "", 2), lab::real("byte_ratio", "", "", 2)}};
  fusion.add({8192, 1.8, 2.0});
  CHECK(Bench({fusion}).answer("prefill") == "1.8×");
  lab::Table launches{"launches", "", {"rung", "way", lab::real("each", "", "µs", 2)}};
  launches.add({"empty", "one by one", 2.0});
  launches.add({"together", "one by one", 2.2});
  CHECK(Bench({launches}).answer("one-token") == "1.1×");
}
