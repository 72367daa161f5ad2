#include "scenes/attention/online_softmax/scene.hpp"

#include <cmath>

#include "kernels/catalog.hpp"
#include "scenes/shared/words.hpp"
#include "tests/catch.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using scenes::Cursor;
using scenes::OnlineSoftmaxScene;
using scenes::words::number;

namespace {

lab::Report report_of(const lab::Settings& settings) {
  lab::NoProgress progress;
  return answer({"online-softmax", settings, lab::Request::Action::run, "emulated"}, progress);
}

const ImVec2 kSizes[] = {{860, 480}, {560, 240}, {1900, 1000}};

}  // namespace

TEST_CASE("the picture shows what the kernel recorded", "[online_softmax_scene]") {
  const lab::Report report = report_of({});
  const auto trace = online_softmax::trace_from_json(report.trace);
  OnlineSoftmaxScene scene;
  scene.load(report);
  tests::SceneFrame frame;
  for (int tile = 0; tile <= trace.tiles(); ++tile) {
    for (int phase = 0; phase < 4; ++phase) {
      if (tile == 0 && phase != 3) continue;
      CAPTURE(tile, phase);
      const Cursor cursor{tile, phase};
      auto parts = frame.draw(kSizes[0], [&] { scene.draw_picture(cursor); });
      for (int key = 0; key < trace.keys; ++key) {
        const auto id = static_cast<std::size_t>(key);
        CHECK(parts.at("score_" + std::to_string(key)).value == number(trace.scores[id], 1));
        const bool has_weight =
            key / trace.tile_width < tile - 1 || (key / trace.tile_width == tile - 1 && phase >= 2);
        const auto weight = parts.find("weight_" + std::to_string(key));
        REQUIRE((weight != parts.end()) == has_weight);
        if (!has_weight) continue;
        // Another path than the scene's product of rescales: the exponent itself.
        const int seen = phase == 0 ? tile - 2 : tile - 1;
        const double m = trace.steps[static_cast<std::size_t>(seen)].m;
        CHECK(weight->second.value == number(std::exp(trace.scores[id] - m), 3));
      }
      if (tile > 0 && phase == 3) {
        const auto& step = trace.steps[static_cast<std::size_t>(tile) - 1];
        CHECK(parts.at("bar_l").value == number(step.l, 2));
        CHECK(parts.at("bar_O").value == number(step.o, 2));
        CHECK(parts.at("bar_output").value == number(step.output, 3));
        CHECK(parts.at("tile_" + std::to_string(tile - 1)).value == "current");
      }
      CHECK(scene.table_row("tiles", cursor) == tile - 1);
      CHECK(scene.source(cursor).current ==
            (tile == 0 ? 0 : trace.lines[static_cast<std::size_t>(phase)]));
    }
  }
}

TEST_CASE("the formulas carry the step's numbers", "[online_softmax_scene]") {
  OnlineSoftmaxScene scene;
  scene.load(report_of({}));
  tests::SceneFrame frame;
  auto parts = frame.draw(kSizes[0], [&] { scene.draw_picture({2, 3}); });
  CHECK(parts.at("formula_0").label == "m       = max(3.0, 5.0) = 5.0");
  CHECK(parts.at("formula_1").label == "rescale = exp(3.0 − 5.0) = 0.135");
  CHECK(parts.at("formula_3").label == "l       = 1.59 × 0.135 + 1.11 = 1.32");
  CHECK(parts.at("sentence").label.find("shrinks to 13.5 %") != std::string::npos);
  // A phase that is still to come is named without its result.
  parts = frame.draw(kSizes[0], [&] { scene.draw_picture({2, 0}); });
  CHECK(parts.at("formula_0").label.find("5.0") != std::string::npos);
  CHECK(parts.at("formula_3").label.find("1.32") == std::string::npos);
}

TEST_CASE("skipping the rescale leaves the old weights standing", "[online_softmax_scene]") {
  OnlineSoftmaxScene right;
  OnlineSoftmaxScene broken;
  right.load(report_of({}));
  broken.load(report_of({{"skip_rescale", true}}));
  CHECK(right.weight(1, {2, 3}) == Approx(std::exp(3.0 - 5.0)).epsilon(1e-5));
  CHECK(broken.weight(1, {2, 3}) == Approx(1.0));
  CHECK(broken.sentence({2, 3}).find("skipped") != std::string::npos);
}

TEST_CASE("every question has its answer in the trace", "[online_softmax_scene]") {
  for (const char* preset : {"worked-example", "random", "rising", "falling", "equal", "outlier",
                             "masked", "all-masked"}) {
    for (const bool skip : {false, true}) {
      CAPTURE(preset, skip);
      const lab::Report report =
          report_of({{"preset", std::string(preset)}, {"skip_rescale", skip}});
      const auto trace = online_softmax::trace_from_json(report.trace);
      OnlineSoftmaxScene scene;
      scene.load(report);
      for (int tile = 0; tile <= trace.tiles(); ++tile) {
        const auto question = scene.question({tile, 3});
        if (!question) continue;
        REQUIRE(tile < trace.tiles());
        REQUIRE(question->choices.size() >= 2);
        REQUIRE(question->answer >= 0);
        REQUIRE(question->answer < static_cast<int>(question->choices.size()));
        const auto& next = trace.steps[static_cast<std::size_t>(tile)];
        if (question->choices[0] == "They shrink") {
          CHECK((question->answer == 0) == (next.tile_max > next.m_old));
        }
      }
    }
  }
}

TEST_CASE("the scene draws at every knob's extremes and sizes", "[online_softmax_scene]") {
  tests::SceneFrame frame;
  std::vector<lab::Settings> cases;
  for (const lab::Knob& knob : lesson("online-softmax").knobs()) {
    if (knob.kind == lab::KnobKind::choice) {
      for (const std::string& choice : knob.choices) cases.push_back({{knob.id, choice}});
    } else if (knob.kind == lab::KnobKind::toggle) {
      cases.push_back({{knob.id, true}});
    } else if (knob.id == "component" || knob.id == "query" || knob.id == "queries") {
      cases.push_back({{knob.id, std::get<std::int64_t>(knob.initial)}});
    } else {
      cases.push_back({{knob.id, static_cast<std::int64_t>(knob.min)}});
      cases.push_back({{knob.id, static_cast<std::int64_t>(knob.max)}});
    }
  }
  cases.push_back({{"keys", std::int64_t{65536}}, {"tile_width", std::int64_t{1}}});
  cases.push_back({{"keys", std::int64_t{65536}}, {"tile_width", std::int64_t{1024}}});
  cases.push_back({{"keys", std::int64_t{7}}, {"tile_width", std::int64_t{1024}}});
  cases.push_back({{"preset", std::string("random")},
                   {"queries", std::int64_t{1024}},
                   {"query", std::int64_t{1023}},
                   {"head_dim", std::int64_t{128}},
                   {"component", std::int64_t{127}}});
  for (const lab::Settings& settings : cases) {
    const lab::Report report = report_of(settings);
    CAPTURE(lab::to_json(report.params).dump());
    CHECK(report.ok());
    OnlineSoftmaxScene scene;
    scene.load(report);
    const int tiles = scene.steps().tiles;
    for (const ImVec2 size : kSizes) {
      for (const auto theme : {ui::ThemeKind::dark, ui::ThemeKind::light}) {
        frame.look().theme = theme;
        for (const Cursor cursor : {Cursor{0, 3}, Cursor{1, 0}, Cursor{1, 1}, Cursor{tiles, 2},
                                    Cursor{tiles, 3}, Cursor{(tiles + 1) / 2, 3}}) {
          const auto parts = frame.draw(size, [&] { scene.draw_picture(cursor); });
          CHECK(parts.count("sentence") == 1);
          // Nothing lies outside the picture.
          for (const auto& [id, part] : parts) {
            CAPTURE(id, part.min.x, part.max.x, part.min.y, part.max.y);
            REQUIRE(part.min.x >= -1);
            REQUIRE(part.max.x <= size.x + 1);
            REQUIRE(part.max.y <= size.y + 1);
          }
          frame.draw(size, [&] { scene.draw_readouts(cursor); });
        }
        frame.draw(size, [&] { scene.draw_measured(report); });
      }
    }
  }
}

TEST_CASE("a trace of another form is refused in words", "[online_softmax_scene]") {
  lab::Report report = report_of({});
  report.trace = {{"keys", 3}};
  OnlineSoftmaxScene scene;
  CHECK_THROWS_AS(scene.load(report), Error);
}
