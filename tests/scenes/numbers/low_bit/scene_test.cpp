#include "scenes/numbers/low_bit/scene.hpp"

#include <cmath>

#include "scenes/shared/words.hpp"
#include "tests/lesson_contract/pictures.hpp"
#include "tests/scenes/marks.hpp"

using namespace tilestep;
using low_bit::Format, low_bit::kMatrix;
using scenes::Cursor;
using Shown = tests::Shown<scenes::LowBitScene>;
using tests::count_of, tests::items_named, tests::mark_of, tests::picture_at;

namespace {

lab::Settings set_of(const char* format, const char* group = "32") {
  return {{"format", std::string(format)}, {"group", std::string(group)}};
}

int lines_of(const picture::Picture& picture) {
  int lines = 0;
  for (const picture::Mark* mark : picture::marks_of(picture)) {
    const auto* rule = std::get_if<picture::Rule>(mark);
    lines += rule != nullptr && rule->key.is({"code"}) ? 1 : 0;
  }
  return lines;
}

}  // namespace

TEST_CASE("a group's weights, lines and gaps are those of the trace", "[low_bit_scene]") {
  for (const char* format : {"int4", "mxfp4", "ternary", "q4_k", "int4-zero-point"}) {
    INFO(format);
    Shown shown(set_of(format));
    const low_bit::Trace& trace = shown.trace();
    const int step = std::min(2, trace.steps), first = (step - 1) * trace.size();
    const auto range = picture_at(*shown, Cursor{step, 0});
    const picture::Items weights = items_named(range, "weight");
    REQUIRE(weights.count == std::min(trace.size(), kMatrix.columns));
    for (int i = 0; i < weights.count; ++i) {
      CHECK(weights.key(i).i == first + i);
      CHECK(weights.value[i] == trace.weights[static_cast<std::size_t>(first + i)]);
    }
    CHECK(lines_of(range) == 0);
    CHECK(mark_of<picture::Bars>(range, "value") == nullptr);

    const auto scaled = picture_at(*shown, Cursor{step, 1});
    const low_bit::GroupTrace& group = trace.groups[static_cast<std::size_t>(step - 1)];
    int expected = 0;
    for (const double n : numbers_of(trace.format)) {
      const double at = n * static_cast<double>(group.step) + static_cast<double>(group.offset);
      expected += !std::isnan(n) && std::abs(at) <= low_bit::kMostWeight ? 1 : 0;
    }
    CHECK(lines_of(scaled) == expected);
    CHECK(mark_of<picture::Bars>(scaled, "value") == nullptr);

    const auto coded = picture_at(*shown, Cursor{step, 2});
    const picture::Items values = items_named(coded, "value"), gaps = items_named(coded, "gap");
    for (int i = 0; i < values.count; ++i) {
      CHECK(values.value[i] == trace.values[static_cast<std::size_t>(first + i)]);
      CHECK(gaps.base[i] == values.value[i]);
      CHECK(gaps.value[i] == weights.value[i]);
    }
  }
}

TEST_CASE("errors are those of the weights that have codes", "[low_bit_scene]") {
  Shown shown(set_of("int4"));
  const low_bit::Trace& trace = shown.trace();
  CHECK(items_named(picture_at(*shown, Cursor{0, 2}), "error").count == 0);
  CHECK(items_named(picture_at(*shown, Cursor{2, 1}), "error").count == 32);
  const picture::Items errors = items_named(picture_at(*shown, Cursor{2, 2}), "error");
  REQUIRE(errors.count == 64);
  for (int i = 0; i < errors.count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    CHECK(errors.value[i] == std::min(std::abs(trace.values[at] - trace.weights[at]), 0.01f));
  }
  // The second row begins with nothing of the first.
  CHECK(items_named(picture_at(*shown, Cursor{9, 2}), "error").key(0).i == 256);
}

TEST_CASE("the outlier's group has the largest error of its row, its neighbours do not",
          "[low_bit_scene]") {
  Shown shown(set_of("int4"));
  const auto& groups = shown.trace().groups;
  for (std::size_t i = 0; i < 8; ++i) {
    if (i != 1) CHECK(groups[1].rms > 1.5 * groups[i].rms);
  }
}

TEST_CASE("a weight that is dragged becomes the outlier", "[low_bit_scene]") {
  Shown shown(set_of("int4"));
  const auto settings = shown->dragged({{2, 0}}, {"weight", 40}, -0.1);
  REQUIRE(settings);
  CHECK(settings->at("outlier_at") == lab::KnobValue(std::int64_t{40}));
  CHECK(std::get<double>(settings->at("outlier")) == Approx(-5));
  CHECK(std::get<double>(shown->dragged({{2, 0}}, {"weight", 40}, 7)->at("outlier")) == Approx(6));
  CHECK_FALSE(shown->dragged({{2, 0}}, {"weight", 40}, NAN));
  CHECK_FALSE(shown->dragged({{2, 0}}, {"error", 40}, 0.1));
}

// ---- W · x ---------------------------------------------------------------------------------------

namespace {

lab::Settings broken(const char* how, const char* format = "int4") {
  lab::Settings settings = set_of(format);
  settings["break"] = std::string(how);
  return settings;
}

/// The ends of a bar on the axis of bytes, at the step of the product.
std::pair<double, double> bytes_of(const picture::Picture& picture, const char* name, int way) {
  for (const picture::Mark* mark : picture::marks_of(picture)) {
    const auto* bars = std::get_if<picture::Bars>(mark);
    if (bars == nullptr || bars->items.name.text() != name || bars->items.count != 1) continue;
    if (bars->items.key(0).i != way && !bars->items.ids.empty()) continue;
    CHECK(bars->x == picture::Name("bytes"));
    return {std::round(1000 * static_cast<double>(bars->items.base[0])),
            std::round(1000 * static_cast<double>(bars->items.value[0]))};
  }
  return {-1, -1};
}

}  // namespace

TEST_CASE("bytes of W are widths on one scale, as the trace counted them", "[low_bit_scene]") {
  Shown shown(broken("unfused"));
  const low_bit::Trace& trace = shown.trace();
  const Cursor at{trace.steps + 1, 0};
  const auto picture = picture_at(*shown, at);
  using Ends = std::pair<double, double>;
  const low_bit::Way &unfused = trace.ways[0], &fused = trace.ways[1];
  CHECK(bytes_of(picture, "codes", 1) == Ends(0, fused.codes));
  CHECK(bytes_of(picture, "scales", 1) == Ends(fused.codes, fused.moved()));
  CHECK(bytes_of(picture, "written", 1) == Ends(-1, -1));
  const double read = unfused.codes + unfused.scales;
  CHECK(bytes_of(picture, "scales", 0).second == read);
  CHECK(bytes_of(picture, "written", 0) == Ends(read, read + unfused.written));
  CHECK(bytes_of(picture, "read", 0) == Ends(read + unfused.written, unfused.moved()));
  CHECK(bytes_of(picture, "numbers", 0) == Ends(0, unfused.numbers));
  CHECK(unfused.moved() > 10 * fused.moved());
  CHECK(shown->sentence(at).find(std::to_string(unfused.moved())) != std::string::npos);
  // A fused run has its own way alone.
  Shown alone(set_of("int4"));
  const auto own = picture_at(*alone, at);
  CHECK(bytes_of(own, "codes", 0) == Ends(0, fused.codes));
  CHECK(bytes_of(own, "codes", 1) == Ends(-1, -1));
  CHECK(bytes_of(own, "written", 0) == Ends(-1, -1));
}

TEST_CASE("W · x appears after W's way, and no row of a sound kernel is wrong", "[low_bit_scene]") {
  Shown shown(set_of("int4"));
  const low_bit::Trace& trace = shown.trace();
  CHECK(items_named(picture_at(*shown, Cursor{trace.steps + 1, 0}), "y").count == 0);
  const auto picture = picture_at(*shown, Cursor{trace.steps + 1, 1});
  const picture::Items y = items_named(picture, "y"), exact = items_named(picture, "exact");
  REQUIRE(y.count == kMatrix.rows);
  for (int row = 0; row < y.count; ++row) {
    const auto i = static_cast<std::size_t>(row);
    CHECK(y.value[i] == trace.y[i]);
    CHECK(exact.value[i] == static_cast<float>(trace.exact[i]));
  }
  CHECK(count_of(items_named(picture, "y_gap"), picture::State::wrong) == 0);
}

TEST_CASE("what was broken is red in the picture and said above it", "[low_bit_scene]") {
  const auto wrong_rows = [](Shown& shown) {
    const Cursor end{shown.trace().steps + 1, 1};
    return count_of(items_named(picture_at(*shown, end), "y_gap"), picture::State::wrong);
  };
  SECTION("one scale") {
    Shown shown(broken("one-scale"));
    const auto picture = picture_at(*shown, Cursor{3, 1});
    const auto* own = mark_of<picture::Rule>(picture, "own_scale");
    REQUIRE(own != nullptr);
    CHECK(own->at == Approx(7 * static_cast<double>(shown.trace().wronged[2].own_step)));
    CHECK(shown->sentence({3, 1}).find("by its own weights") != std::string::npos);
    CHECK(wrong_rows(shown) > 0);
    // The outlier's group has the scale that all were given.
    CHECK(mark_of<picture::Rule>(picture_at(*shown, Cursor{2, 1}), "own_scale") == nullptr);
  }
  SECTION("zero point") {
    Shown shown(broken("wrong-zero-point", "int4-zero-point"));
    const auto picture = picture_at(*shown, Cursor{1, 2});
    CHECK(count_of(items_named(picture, "gap"), picture::State::wrong) == 32);
    CHECK(shown->sentence({1, 2}).find("1 step too low") != std::string::npos);
    CHECK(wrong_rows(shown) == kMatrix.rows);
  }
  SECTION("scale after the sum") {
    Shown shown(broken("scale-after-sum"));
    // The first group is multiplied by its own scale.
    const picture::Items first = items_named(picture_at(*shown, Cursor{1, 2}), "gap");
    CHECK(count_of(first, picture::State::wrong) == shown.trace().groups[0].nothing);
    const picture::Items second = items_named(picture_at(*shown, Cursor{2, 2}), "gap");
    CHECK(count_of(second, picture::State::wrong) == 32);
    CHECK(shown->sentence({2, 2}).find("not by their scale") != std::string::npos);
    CHECK(wrong_rows(shown) == kMatrix.rows);
  }
}

TEST_CASE("a recording without a product ends with the last group", "[low_bit_scene]") {
  lab::Report report = tests::report_of("low-bit");
  nlohmann::json trace = *report.trace;
  for (const char* member : {"ways", "exact", "y"}) trace.erase(member);
  report.trace = trace;
  scenes::LowBitScene scene;
  scene.load(report);
  CHECK(scene.steps().tiles == 64);
  CHECK(scene.question({{63, 2}})->id == "product");
  CHECK(scene.readouts({{64, 2}}).back().id == "product_error");
}

// ---- recipes -------------------------------------------------------------------------------------

TEST_CASE("a recipe's channels and errors are those of its steps so far", "[low_bit_scene]") {
  for (const char* recipe : {"gptq", "awq", "smooth"}) {
    INFO(recipe);
    Shown shown(lab::Settings{{"recipe", std::string(recipe)}});
    const auto& steps = shown.trace().recipe_steps;
    CHECK(shown->steps().tiles == std::ssize(steps));
    for (const int tile : {1, 5, static_cast<int>(steps.size())}) {
      const low_bit::RecipeStep& step = steps[static_cast<std::size_t>(tile - 1)];
      const auto picture = picture_at(*shown, Cursor{tile, 0});
      const bool columns = std::string_view(recipe) == "gptq";
      const picture::Items first = items_named(picture, columns ? "rounded" : "channel"),
                           second = items_named(picture, columns ? "correction" : "factor");
      REQUIRE(first.count == low_bit::kRecipeInputs);
      for (int k = 0; k < first.count; ++k) {
        const auto i = static_cast<std::size_t>(k);
        CHECK(first.value[i] == static_cast<float>(step.first[i]));
        CHECK(second.value[i] == static_cast<float>(step.second[i]));
      }
      const auto& loss = tests::mark_named<picture::Curve>(picture, "loss");
      const auto& plain = tests::mark_named<picture::Curve>(picture, "plain");
      REQUIRE(std::ssize(loss.y) == tile);
      CHECK(loss.x.back() == step.at);
      CHECK(loss.y.back() == step.error);
      CHECK(plain.y.back() == step.plain);
      const std::string sentence = shown->sentence({tile, 0});
      CHECK(sentence.find(scenes::words::significant(step.error, 3) + " %") != std::string::npos);
      CHECK(sentence.find(scenes::words::significant(step.plain, 3) + " %") != std::string::npos);
    }
    CHECK(mark_of<picture::Curve>(picture_at(*shown, Cursor{0, 0}), "loss") == nullptr);
  }
}
