#include "scenes/numbers/accumulator_precision/scene.hpp"

#include <cmath>
#include <set>

#include "kernels/base/numeric/small_float.hpp"
#include "scenes/numbers/accumulator_precision/layout.hpp"
#include "tests/lesson_contract/pictures.hpp"
#include "tests/scenes/shown.hpp"

using namespace tilestep;
using accumulator_precision::AccumulatorTrace, accumulator_precision::Method,
    accumulator_precision::Trace;
using scenes::Cursor, scenes::accumulator_parts::spacing_text, scenes::words::significant;
using tests::center, tests::Parts;
using Shown = tests::Shown<scenes::AccumulatorPrecisionScene>;

namespace {

lab::Settings set_of(const char* accumulators, std::int64_t terms = 64) {
  return {{"accumulators", std::string(accumulators)}, {"terms", terms}};
}

/// What the cells say, read as a number of the format.
double cells_value(const Parts& parts, const char* which, numeric::FloatSpec format) {
  std::uint32_t bits = 0;
  for (int i = 0; i < format.bits(); ++i) {
    const std::string id = std::string(which) + "_bit_" + std::to_string(i);
    REQUIRE(parts.count(id) == 1);
    bits = bits * 2 + (parts.at(id).value == "1" ? 1u : 0u);
  }
  return numeric::decode(format, bits);
}

void check_bits(const Parts& parts, const AccumulatorTrace& a, std::size_t point, bool rounded) {
  const auto& step = a.steps[point];
  CHECK(cells_value(parts, "before", a.format) == static_cast<double>(step.before));
  CHECK(parts.count("after_bit_0") == (rounded ? 1u : 0u));
  if (!rounded) return;
  CHECK(cells_value(parts, "after", a.format) == static_cast<double>(step.after));
  bool any_changed = false;
  for (int i = 0; i < a.format.bits(); ++i) {
    const std::string bit = "_bit_" + std::to_string(i);
    const bool changed = parts.at("before" + bit).value != parts.at("after" + bit).value;
    CHECK((parts.at("after" + bit).label == "changed") == changed);
    any_changed = any_changed || changed;
  }
  CHECK(any_changed == (step.before != step.after));
}

/// The rounding on screen leads from the exact sum to the neighbour that the kernel recorded.
void check_line(const Parts& parts, const AccumulatorTrace& a, std::size_t point, bool rounded) {
  const auto& step = a.steps[point];
  const double exact = static_cast<double>(step.before) + static_cast<double>(step.added);
  const auto after = static_cast<double>(step.after);
  CHECK(parts.count("line_after") == (rounded ? 1u : 0u));
  const float below = center(parts.at("line_below")).x, above = center(parts.at("line_above")).x;
  CHECK(below < above);
  if (!rounded) return;
  const ui::MapEntry& mark = parts.at("line_after");
  const bool lost = step.before == step.after;
  CHECK(mark.label == (lost ? "lost" : after > exact ? "up" : after < exact ? "down" : "exact"));
  // Rounding ends at a neighbour: the upper one after going up, the lower one after going down.
  if (after > exact) CHECK(center(mark).x == Approx(above).margin(2));
  if (after < exact) CHECK(center(mark).x == Approx(below).margin(2));
}

void check_plot(const Parts& parts, const Trace& trace, std::size_t point, bool rounded) {
  const ui::MapEntry& plot = parts.at("plot");
  for (const AccumulatorTrace& a : trace.accumulators) {
    const std::string id = std::string("frozen_").append(name_of(a.method));
    const bool seen = a.frozen_at >= 0 && rounded && trace.points[point] >= a.frozen_at;
    CHECK(parts.count(id) == (seen ? 1u : 0u));
    if (!seen) continue;
    const float share = (center(parts.at(id)).x - plot.min.x) / (plot.max.x - plot.min.x);
    CHECK(share ==
          Approx(static_cast<double>(a.frozen_at) / static_cast<double>(trace.terms)).margin(0.01));
  }
  const std::size_t known = rounded ? point : point - 1;
  for (const AccumulatorTrace& a : trace.accumulators) {
    const std::string id = std::string("end_").append(name_of(a.method));
    if (!rounded && point == 0) continue;
    REQUIRE(parts.count(id) == 1);
    CHECK(parts.at(id).label ==
          a.label + " " + significant(static_cast<double>(a.steps[known].sum), 6));
  }
}

}  // namespace

TEST_CASE("the accumulator picture equals the trace at every step and phase",
          "[accumulator_precision_scene]") {
  Shown shown;
  for (const char* set :
       {"basic", "fp8-e5m2", "fp16", "bf16", "tf32", "fp32", "promoted", "kahan"}) {
    for (const char* rounding : {"nearest", "truncate", "stochastic"}) {
      if (set != std::string("basic") && rounding != std::string("nearest")) continue;
      lab::Settings settings = set_of(set, 40);
      settings["rounding"] = std::string(rounding);
      shown.run(settings);
      const Trace& trace = shown.trace();
      const AccumulatorTrace& a = trace.accumulators[static_cast<std::size_t>(shown->focus())];
      REQUIRE(shown->steps().tiles == 40);
      REQUIRE(shown->steps().noun == "term");
      for (int tile = 1; tile <= 40; ++tile) {
        for (const int phase : {0, 1}) {
          CAPTURE(set, rounding, tile, phase);
          const auto point = static_cast<std::size_t>(tile - 1);
          const auto parts = shown.picture({tile, phase}, tests::kPictureSizes[2]);
          CHECK(parts.at("sentence").label == shown->sentence({tile, phase}));
          CHECK(shown->table_row("terms", {tile, phase}) == tile - 1);
          check_bits(parts, a, point, phase == 1);
          check_line(parts, a, point, phase == 1);
          check_plot(parts, trace, point, phase == 1);
        }
      }
      const auto parts = shown.picture({0, 1}, tests::kPictureSizes[2]);
      CHECK(parts.count("after_bit_0") == 0);
      CHECK(parts.count("frozen_note") == 0);
    }
  }
}

TEST_CASE("pairwise shows the blocks that wait", "[accumulator_precision_scene]") {
  Shown shown(set_of("pairwise", 45));
  for (const int tile : {1, 2, 31, 32, 45}) {
    const auto parts = shown.picture({tile, 1});
    int total = 0;
    for (const auto& [id, part] : parts) {
      if (id.rfind("block_", 0) == 0) total += std::stoi(part.label);
    }
    CHECK(total == tile);
    CHECK(parts.count("line_after") == 0);
  }
}

TEST_CASE("what is lost, and for good, is said in numbers", "[accumulator_precision_scene]") {
  Shown shown;
  const auto says = [&](Cursor cursor, const char* words) {
    INFO(shown->sentence(cursor));
    return tests::contains(shown->sentence(cursor), words);
  };
  CHECK(says({0, 1}, "64 terms wait, 63.89 in all"));
  CHECK(says({17, 1}, "drops t[16]: 18.95 falls back to 18, where numbers are 2 apart"));
  CHECK(says({34, 0}, "33.15 lies between 32 and 36"));
  CHECK(says({34, 1}, "is frozen and drops t[33]"));
  CHECK(says({64, 1}, "FP8 holds 32; the exact sum is 63.8865: off by 49.9 %"));
  const auto parts = shown.picture({40, 1});
  CHECK(tests::contains(parts.at("frozen_note").label, "a term below 2 is lost"));
  CHECK(tests::contains(parts.at("rug").label, " lost"));
}

TEST_CASE("chips and end labels choose the accumulator in focus", "[accumulator_precision_scene]") {
  Shown shown;
  CHECK(shown->focus() == 0);  // the one that freezes
  const auto press = [&](ImVec2 size, const char* id) { shown.click(id, {40, 1}, size); };
  press(tests::kPictureSizes[0], "chip_fp32");
  CHECK(shown->focus() == 2);
  CHECK(shown->table_row("accumulators", {40, 1}) == 2);
  const int line = shown->source({40, 1}).current;
  CHECK(line > 0);
  CHECK(shown->source({0, 1}).current == 0);
  press(tests::kPictureSizes[0], "end_fp8-e4m3");
  CHECK(shown->focus() == 0);
  // The focus stays with its accumulator, and a chip that stands for all goes on to the next.
  press(tests::kPictureSizes[0], "chip_fp16");
  shown.load(set_of("all"));
  CHECK(shown->focus() == 2);
  press(tests::kPictureSizes[1], "chip_fp16");
  CHECK(shown->focus() == 3);
  shown->hover_row("accumulators", 5);
  shown->hover_row("terms", 12);
  shown.picture({40, 1});
}

TEST_CASE("the accumulator questions are answered by the trace", "[accumulator_precision_scene]") {
  std::set<int> places;
  for (const char* set : {"fp8-e4m3", "fp8-e5m2", "fp16", "bf16", "fp32", "promoted", "kahan"}) {
    for (const char* rounding : {"nearest", "truncate"}) {
      lab::Settings settings = set_of(set, 100);
      settings["rounding"] = std::string(rounding);
      Shown shown(settings);
      const Trace& trace = shown.trace();
      const AccumulatorTrace& a = trace.accumulators.front();
      int asked = 0;
      for (int tile = 0; tile < 100; ++tile) {
        CHECK_FALSE(shown->question({tile, 0}));
        const auto question = shown->question({tile, 1});
        if (!question) continue;
        ++asked;
        CAPTURE(set, rounding, tile, question->text);
        places.insert(question->answer);
        const std::string right = question->choices.at(static_cast<std::size_t>(question->answer));
        const auto& step = a.steps[static_cast<std::size_t>(tile)];
        const int digits = a.format.mantissa_bits <= 3 ? 4 : a.format.mantissa_bits <= 10 ? 6 : 9;
        if (question->text.find("What will it hold") != std::string::npos) {
          CHECK(right == significant(static_cast<double>(step.after), digits));
        } else if (question->text.find("Where is the border") != std::string::npos) {
          CHECK(tile == a.frozen_at);
          // What is lost from here on is smaller, and was rounded away.
          const double spacing = std::ldexp(1.0, std::ilogb(a.final_sum) - a.format.mantissa_bits);
          const double least = rounding == std::string("nearest") ? spacing / 2 : spacing;
          CHECK(right == spacing_text(least));
          CHECK(static_cast<double>(trace.term[static_cast<std::size_t>(tile)]) <= least);
        } else {
          const double sum = static_cast<double>(step.before) + static_cast<double>(step.added);
          CHECK(right == spacing_text(std::ldexp(1.0, std::ilogb(sum) - a.format.mantissa_bits)));
        }
      }
      CHECK(asked >= 2);
      CHECK(asked <= 12);
      CHECK_FALSE(shown->question({100, 1}));
    }
  }
  CHECK(places.size() >= 3);
}

TEST_CASE("sums that are hard to draw", "[accumulator_precision_scene]") {
  std::vector<lab::Settings> cases = {set_of("all", 1), set_of("all", 4096)};
  // With all accumulators, among them those that the choice concerns.
  for (const lab::Knob& knob : lesson("accumulator-precision").knobs()) {
    for (const std::string& choice : knob.choices) {
      if (knob.id == "accumulators") continue;
      cases.push_back(set_of("all", 300));
      cases.back()[knob.id] = choice;
    }
  }
  contract::check_pictures(lesson("accumulator-precision"), cases);
}

TEST_CASE("the measured views of the accumulator lesson show the recording",
          "[accumulator_precision_scene]") {
  Shown shown;
  for (const ImVec2 size : tests::kSweptSizes) {
    const auto show = [&](const std::string& button) { return shown.measured(button, size); };
    show("measured_view_0");
    CHECK(show("measured_data_1").at("gemm_error").value == "5 curves");
    auto parts = show("measured_view_1");
    CHECK(parts.count("price") == 1);
    CHECK(parts.count("gemm_rate_0") == 1);
    parts = show("measured_view_2");
    CHECK(parts.at("rate_by_data_1").label == "wgmma-fp8-promoted");
    // What lies below the window's edge is not on screen.
    if (size.y > 300) {
      const std::string on_uniform = show("rate_data_0").at("error_by_data_0").value;
      CHECK(show("rate_data_1").at("error_by_data_0").value != on_uniform);
    }
    parts = show("measured_view_3");
    CHECK(parts.count("model_agrees") == 1);
    // Scales need no GPU.
    parts = shown.measured("measured_view_4", size, shown.report());
    CHECK(parts.at("scaling_error_2").label == "per-block 1x128, 128x128");
    if (size.y > 300) CHECK(tests::contains(parts.at("scaling_why").label, "DeepGEMM"));
  }
}

TEST_CASE("the accumulator picture as data has no problems", "[accumulator_precision_scene]") {
  Shown shown;
  for (const char* set : {"basic", "all", "pairwise", "kahan"}) {
    for (const std::int64_t terms : {1, 64, 16384}) {
      shown.run(set_of(set, terms));
      const int tiles = shown->steps().tiles;
      for (int tile = 0; tile <= tiles; tile += 1 + tiles / 40) {
        for (int phase = 0; phase < 2; ++phase) {
          CAPTURE(set, terms, tile, phase);
          for (int method = 0; method < 9; method += tiles > 99 ? 8 : 1) {
            const scenes::View view{{tile, phase}, {{picture::Name("accumulator"), method}}};
            const auto picture = shown->picture(shown->extent(), view);
            CHECK(picture::problems(picture) == std::vector<std::string>());
          }
        }
      }
    }
  }
}
