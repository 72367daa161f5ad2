#include "scenes/attention/online_softmax/scene.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "scenes/shared/questions.hpp"
#include "scenes/shared/words.hpp"
#include "tests/lesson_contract/pictures.hpp"
#include "tests/scenes/shown.hpp"

using namespace tilestep;
using scenes::Cursor, scenes::words::number;
using ShownSoftmax = tests::Shown<scenes::OnlineSoftmaxScene>;

namespace {

lab::Settings preset(const char* name, lab::Settings settings = {}) {
  settings["preset"] = std::string(name);
  return settings;
}

}  // namespace

TEST_CASE("the picture shows what the kernel recorded", "[online_softmax_scene]") {
  ShownSoftmax shown;
  const auto& trace = shown.trace();
  for (int tile = 0; tile <= trace.tiles(); ++tile) {
    for (int phase = 0; phase < 4; ++phase) {
      if (tile == 0 && phase != 3) continue;
      CAPTURE(tile, phase);
      const Cursor cursor{tile, phase};
      const auto parts = shown.picture(cursor);
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
        const double m = trace.steps[seen].m;
        CHECK(weight->second.value == number(std::exp(trace.scores[id] - m), 3));
      }
      if (tile > 0 && phase == 3) {
        const auto& step = trace.steps[static_cast<std::size_t>(tile) - 1];
        CHECK(parts.at("bar_l").value == number(step.l, 2));
        CHECK(parts.at("bar_O").value == number(step.o, 2));
        CHECK(parts.at("output_0").label == "O / ℓ = " + number(step.output, 3));
        CHECK(parts.at("tile_" + std::to_string(tile - 1)).value == "current");
      }
      CHECK(shown->table_row("tiles", shown.player().view(cursor)) == tile - 1);
      CHECK(shown->source(shown.player().view(cursor)).current ==
            (tile == 0 ? 0 : trace.lines[phase]));
    }
  }
}

TEST_CASE("the formulas carry the step's numbers", "[online_softmax_scene]") {
  ShownSoftmax shown;
  auto parts = shown.picture({2, 3});
  CHECK(parts.at("formula_0").label == "m = max(3.0, 5.0) = 5.0");
  CHECK(parts.at("formula_1").label == "rescale = exp(3.0 − 5.0) = 0.135");
  CHECK(parts.at("formula_3").label == "ℓ = 1.59 × 0.135 + 1.11 = 1.32");
  CHECK(parts.at("sentence").label.find("shrink to 13.5 %") != std::string::npos);
  // A phase that is still to come is named without its result.
  parts = shown.picture({2, 0});
  CHECK(parts.at("formula_0").label.find("5.0") != std::string::npos);
  CHECK(parts.at("formula_3").label.find("1.32") == std::string::npos);
}

TEST_CASE("a row that overflows ends on what exp(s) alone comes to, beside the right output",
          "[online_softmax_scene]") {
  ShownSoftmax shown;
  CHECK(shown.picture({4, 3}).count("output_1") == 0);
  shown.run(preset("outlier"));
  CHECK(shown.picture({4, 2}).count("output_1") == 0);
  const auto parts = shown.picture({4, 3});
  CHECK(parts.at("output_1").label.ends_with("= ∞ / ∞ = NaN"));
  CHECK(parts.at("output_1").value == "wrong");
  CHECK(parts.at("formula_2").label.find("≠") == std::string::npos);  // exp(−120) is 0 in FP32
}

TEST_CASE("skipping the rescale leaves the old weights standing", "[online_softmax_scene]") {
  ShownSoftmax shown;
  CHECK(shown->weights({2, 3}).at(1) == Approx(std::exp(3.0 - 5.0)).epsilon(1e-5));
  shown.run({{"skip_rescale", true}});
  CHECK(shown->weights({2, 3}).at(1) == Approx(1.0));
  CHECK(tests::contains(shown->sentence({2, 3}), "multiplied by 1.000, not by 0.135"));
}

TEST_CASE("an edited kernel's own numbers are told, and no formula is false",
          "[online_softmax_scene]") {
  ShownSoftmax shown;
  lab::Report report = shown.report();
  // As `const float rescale = 1.0f;` leaves it: no knob knows.
  nlohmann::json trace = report.trace;
  trace["steps"]["rescale"][1] = 1.0;
  trace["steps"]["l"][1] = 2.7;
  trace["steps"]["o"][1] = 9.0;
  trace["steps"]["output"][1] = 3.3;
  report.trace = trace;
  shown.player().load(report);
  CHECK(tests::contains(shown->sentence({2, 3}), "multiplied by 1.000, not by 0.135"));
  auto parts = shown.picture({2, 3});
  CHECK(parts.at("formula_0").label == "m = max(3.0, 5.0) = 5.0");
  CHECK(parts.at("formula_1").label == "rescale = 1.000 ≠ exp(3.0 − 5.0)");
  CHECK(parts.at("formula_3").label == "ℓ = 1.59 × 1.000 + 1.11 ≈ 2.70");
  CHECK(tests::contains(parts.at("formula_4").label, "O = 9.00 ≠ "));
  CHECK(tests::contains(parts.at("output_0").label, "(exact: "));
}

TEST_CASE("a result that is off is shown beside the exact one, whatever its bound allows",
          "[online_softmax_scene]") {
  ShownSoftmax shown(preset("equal", {{"keys", 400}, {"tile_width", 1}, {"accumulator", "bf16"}}));
  CHECK(shown.report().ok());
  const auto parts = shown.picture({shown.trace().tiles(), 3});
  CHECK(tests::contains(parts.at("output_0").label, "(exact: 12.0"));
}

TEST_CASE("every question has its answer in the trace", "[online_softmax_scene]") {
  std::set<std::string> kinds;
  for (const char* name : {"worked-example", "random", "rising", "falling", "equal", "outlier",
                           "masked", "all-masked"}) {
    for (const bool skip : {false, true}) {
      CAPTURE(name, skip);
      ShownSoftmax shown(preset(name, {{"skip_rescale", skip}, {"keys", 24}}));
      const auto& trace = shown.trace();
      for (int tile = 0; tile <= trace.tiles(); ++tile) {
        const auto question = shown->question({{tile, 3}});
        if (!question) continue;
        kinds.insert(question->id);
        CAPTURE(tile, question->text);
        const auto& next = trace.steps[tile];
        const std::string right = scenes::answer_text(*question);
        if (question->id == "new-maximum") {
          CHECK((right == "They shrink") == (next.tile_max > next.m_old));
        } else if (question->id == "old-weight") {
          CHECK(question->values[0] == Approx(std::exp(next.m_old - next.tile_max)));
        } else if (question->id == "fresh-weight") {
          const auto first = trace.weights.begin() + tile * trace.tile_width;
          CHECK(question->values[0] == Approx(*std::max_element(first, first + trace.tile_width)));
        } else if (question->id == "heaviest-key") {
          const std::size_t key = static_cast<std::size_t>(std::stoi(right.substr(4)));
          CHECK(trace.scores[key] == trace.exact_max);
          CHECK(question->where[question->answer].i == static_cast<int>(key));
        } else if (question->id == "rescale-skipped") {
          CHECK((right == "It is wrong") == (tile == trace.first_wrong_tile));
        }
      }
    }
  }
  CHECK(kinds.size() == 8);
}

TEST_CASE("events of the worked example", "[online_softmax_scene]") {
  ShownSoftmax shown;
  std::vector<std::string> said;
  for (const auto& each : shown->events()) {
    said.push_back(std::to_string(each.at.tile) + "." + std::to_string(each.at.phase) + " " +
                   each.text);
  }
  const auto& trace = shown.trace();
  CHECK(said == std::vector<std::string>{
                    "2.0 m rises to 5.0", "4.0 m rises to 6.0",
                    "4.3 O / ℓ = " + number(static_cast<double>(trace.steps[3].output), 3)});
  // A maximum that rises with every tile is named once.
  ShownSoftmax rising(preset("rising", {{"keys", 64}}));
  CHECK(rising->events().size() == 2);
  ShownSoftmax skipped({{"skip_rescale", true}});
  CHECK(skipped->events().at(1).text == "the output goes wrong");
}

TEST_CASE("a score is dragged along its axis", "[online_softmax_scene]") {
  ShownSoftmax shown;
  const auto draw = [&] {
    return shown.picture({2, 3}, {1600, 1000});
  };  // pixels enough for tenths
  shown.point_away();
  const auto parts = draw();
  const auto& one = parts.at("score_6");    // 5.0
  const auto& other = parts.at("score_1");  // 3.0, on the same axis
  const float pixels = other.min.y - one.min.y;
  ImGuiIO& io = ImGui::GetIO();
  io.MousePos = {(one.min.x + one.max.x) / 2, one.min.y + 4};
  draw();
  shown.press(true);
  draw();
  CHECK_FALSE(shown.player().take_request());  // pressed, not moved
  std::optional<lab::Settings> asked;
  for (int way = 1; way <= 8; ++way) {
    io.MousePos.y += pixels / 8;
    draw();
    if (auto request = shown.player().take_request()) asked = std::move(request);
    if (way == 4) shown.player().load(shown.report());  // a run comes meanwhile
  }
  shown.press(false);
  draw();
  REQUIRE(asked);
  CHECK(std::get<std::string>(asked->at("preset")) == "custom");
  CHECK(std::get<std::string>(asked->at("scores")) == "1,3,0.5,2,2.5,0,3,1,4,2,1,3,1,0,6,2");
  CHECK_FALSE(shown.player().take_step());
  // The kernel takes it: nothing rises in tile 1 any more.
  shown.load(*asked);
  CHECK(shown.trace().steps[1].m == 3.0f);
  CHECK(shown.trace().scores[6] == 3.0f);
  // A press that does not move goes to the key's tile.
  shown.point_at(draw().at("score_14"));
  draw();
  shown.press(true);
  draw();
  shown.press(false);
  draw();
  CHECK(shown.player().take_step() == Cursor{4, 3});
  CHECK_FALSE(shown.player().take_request());
}

TEST_CASE("a dragged score lands in the row of its query, masked ones stay masked",
          "[online_softmax_scene]") {
  ShownSoftmax shown(preset("masked", {{"query", 3}}));
  const auto before = shown.trace().scores;
  const auto asked = shown->dragged({}, {"score", 5}, 1.26);
  REQUIRE(asked);
  lab::Settings settings = *asked;
  settings["query"] = std::int64_t{3};
  shown.load(settings);
  for (std::size_t key = 0; key < before.size(); ++key) {
    CAPTURE(key);
    CHECK(shown.trace().scores[key] == (key == 5 ? 1.3f : before[key]));
  }
  CHECK_FALSE(shown->dragged({}, {"weight", 5}, 1));
  CHECK_FALSE(shown->dragged({}, {"score", 99}, 1));
}

TEST_CASE("rows that are hard to draw", "[online_softmax_scene]") {
  const auto row_of = [](std::int64_t keys, std::int64_t tile_width) {
    return lab::Settings{{"keys", keys}, {"tile_width", tile_width}};
  };
  contract::check_pictures(lesson("online-softmax"),
                           {row_of(65536, 1), row_of(65536, 1024), row_of(7, 1024)});
}

TEST_CASE("bars keep a height in every picture that the window can hold",
          "[online_softmax_scene]") {
  ShownSoftmax shown;
  for (const float height : {188.0f, 210.0f, 240.0f, 300.0f, 480.0f}) {
    CAPTURE(height);
    const auto parts = shown.picture({2, 3}, {640, height});
    CHECK_FALSE(parts.at("scores").too_small());
    CHECK_FALSE(parts.at("weights").too_small());
    // Values and sums fold first, the step's formula never.
    CHECK(parts.count("formula_3") == 1);
    CHECK(parts.count("v_0") == (height >= 480 ? 1 : 0));
  }
}

TEST_CASE("the measured views of the softmax lesson show the recording", "[online_softmax_scene]") {
  ShownSoftmax shown;
  for (const ImVec2 size : {tests::kPictureSizes[0], tests::kPictureSizes[2]}) {
    const auto show = [&](const std::string& button) { return shown.measured(button, size); };
    CHECK(show("measured_view_0").at("ladder_0").label == "three-pass");
    // Where every read goes to memory: what was measured beside what the reads say.
    const auto parts = show("measured_view_1");
    CHECK(parts.at("uncached_0").label == "three-pass");
    CHECK(parts.at("uncached_0").value.ends_with(" GB/s"));
    CHECK(parts.at("uncached_share_0").value == "50.5 %");
  }
}

TEST_CASE("of weights the difference of scores is asked for", "[online_softmax_scene]") {
  ShownSoftmax shown;
  const auto asked = shown->question({{0, 3}});
  REQUIRE(asked);
  CHECK(asked->id == "weight-ratio");
  CHECK(tests::contains(asked->text, "has scores 3.0 and 2.0"));
  CHECK(scenes::answer_text(*asked) == "2.72");
  const std::set<std::string> choices(asked->choices.begin(), asked->choices.end());
  CHECK(choices.contains("1.5"));  // the scores' own ratio
  // Where all scores of the tile are one there is no second to compare with.
  CHECK_FALSE(ShownSoftmax(preset("equal"))->question({{0, 3}}));
}

TEST_CASE("a masked tile before any other has one right answer too", "[online_softmax_scene]") {
  for (const char* name : {"masked", "all-masked"}) {
    const auto asked = ShownSoftmax(preset(name))->question({{0, 3}});
    REQUIRE(asked);
    CHECK(asked->id == "masked-tile");
    CHECK(scenes::answer_text(*asked) == "They stay 0");
    const std::set<std::string> choices(asked->choices.begin(), asked->choices.end());
    CHECK_FALSE(choices.contains("They shrink"));  // 0 shrunk is 0
    CHECK_FALSE(choices.contains("They start again at 0"));
  }
}
