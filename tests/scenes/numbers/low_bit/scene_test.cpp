#include "scenes/numbers/low_bit/scene.hpp"

#include <cmath>

#include "tests/lesson_contract/pictures.hpp"
#include "tests/scenes/marks.hpp"

using namespace tilestep;
using low_bit::Format, low_bit::kMatrix;
using scenes::Cursor;
using Shown = tests::Shown<scenes::LowBitScene>;
using tests::items_named, tests::mark_of, tests::picture_at;

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
