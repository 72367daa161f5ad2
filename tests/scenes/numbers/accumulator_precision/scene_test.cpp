#include "scenes/numbers/accumulator_precision/scene.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "kernels/base/numeric/small_float.hpp"
#include "kernels/catalog.hpp"
#include "scenes/numbers/accumulator_precision/layout.hpp"
#include "tests/catch.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using accumulator_precision::AccumulatorTrace;
using accumulator_precision::Method;
using accumulator_precision::Trace;
using scenes::AccumulatorPrecisionScene;
using scenes::Cursor;
using scenes::accumulator_parts::spacing_text;
using scenes::words::significant;
using tests::SceneFrame;

namespace {

using Parts = std::map<std::string, ui::MapEntry>;

lab::Report report_of(const lab::Settings& settings) {
  lab::NoProgress progress;
  return answer({"accumulator-precision", settings, lab::Request::Action::run, "emulated"},
                progress);
}

lab::Settings set_of(const char* accumulators, std::int64_t terms = 64) {
  return {{"accumulators", std::string(accumulators)}, {"terms", terms}};
}

const ImVec2 kSizes[] = {{860, 480}, {560, 240}, {1900, 1000}};

ImVec2 center(const ui::MapEntry& part) {
  return {(part.min.x + part.max.x) / 2, (part.min.y + part.max.y) / 2};
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
    const std::string id = std::string("frozen_").append(to_text(a.method));
    const bool seen = a.frozen_at >= 0 && rounded && trace.points[point] >= a.frozen_at;
    CHECK(parts.count(id) == (seen ? 1u : 0u));
    if (!seen) continue;
    const float share = (center(parts.at(id)).x - plot.min.x) / (plot.max.x - plot.min.x);
    CHECK(share ==
          Approx(static_cast<double>(a.frozen_at) / static_cast<double>(trace.terms)).margin(0.01));
  }
  const std::size_t known = rounded ? point : point - 1;
  for (const AccumulatorTrace& a : trace.accumulators) {
    const std::string id = std::string("end_").append(to_text(a.method));
    if (!rounded && point == 0) continue;
    REQUIRE(parts.count(id) == 1);
    CHECK(parts.at(id).label ==
          a.label + " " + significant(static_cast<double>(a.steps[known].sum), 6));
  }
}

}  // namespace

TEST_CASE("the accumulator picture equals the trace at every step and phase",
          "[accumulator_precision_scene]") {
  SceneFrame frame;
  for (const char* set :
       {"basic", "fp8-e5m2", "fp16", "bf16", "tf32", "fp32", "promoted", "kahan"}) {
    for (const char* rounding : {"nearest", "truncate", "stochastic"}) {
      if (set != std::string("basic") && rounding != std::string("nearest")) continue;
      lab::Settings settings = set_of(set, 40);
      settings["rounding"] = std::string(rounding);
      const lab::Report report = report_of(settings);
      const Trace trace = accumulator_precision::trace_from_json(report.trace);
      AccumulatorPrecisionScene scene;
      scene.load(report);
      const AccumulatorTrace& a = trace.accumulators[static_cast<std::size_t>(scene.focus())];
      REQUIRE(scene.steps().tiles == 40);
      REQUIRE(scene.steps().noun == "term");
      for (int tile = 1; tile <= 40; ++tile) {
        for (const int phase : {0, 1}) {
          CAPTURE(set, rounding, tile, phase);
          const auto point = static_cast<std::size_t>(tile - 1);
          const auto parts = frame.draw(kSizes[2], [&] { scene.draw_picture({tile, phase}); });
          CHECK(parts.at("sentence").label == scene.sentence({tile, phase}));
          CHECK(scene.table_row("terms", {tile, phase}) == tile - 1);
          check_bits(parts, a, point, phase == 1);
          check_line(parts, a, point, phase == 1);
          check_plot(parts, trace, point, phase == 1);
        }
      }
      const auto parts = frame.draw(kSizes[2], [&] { scene.draw_picture({0, 1}); });
      CHECK(parts.count("after_bit_0") == 0);
      CHECK(parts.count("frozen_note") == 0);
    }
  }
}

TEST_CASE("pairwise shows the blocks that wait", "[accumulator_precision_scene]") {
  SceneFrame frame;
  AccumulatorPrecisionScene scene;
  scene.load(report_of(set_of("pairwise", 45)));
  for (const int tile : {1, 2, 31, 32, 45}) {
    const auto parts = frame.draw(kSizes[0], [&] { scene.draw_picture({tile, 1}); });
    int total = 0;
    for (const auto& [id, part] : parts) {
      if (id.rfind("block_", 0) == 0) total += std::stoi(part.label);
    }
    CHECK(total == tile);
    CHECK(parts.count("line_after") == 0);
  }
}

TEST_CASE("what is lost, and for good, is said in numbers", "[accumulator_precision_scene]") {
  SceneFrame frame;
  AccumulatorPrecisionScene scene;
  scene.load(report_of({}));
  const auto says = [&](Cursor cursor, const char* words) {
    INFO(scene.sentence(cursor));
    return scene.sentence(cursor).find(words) != std::string::npos;
  };
  CHECK(says({0, 1}, "64 terms wait, 63.89 in all"));
  CHECK(says({17, 1}, "drops t[16]: 18.95 falls back to 18, where numbers are 2 apart"));
  CHECK(says({34, 0}, "33.15 lies between 32 and 36"));
  CHECK(says({34, 1}, "is frozen and drops t[33]"));
  CHECK(says({64, 1}, "FP8 holds 32; the exact sum is 63.8865: off by 49.9 %"));
  const auto parts = frame.draw(kSizes[0], [&] { scene.draw_picture({40, 1}); });
  CHECK(parts.at("frozen_note").label.find("a term below 2 is lost") != std::string::npos);
  CHECK(parts.at("rug").label.find(" lost") != std::string::npos);
}

TEST_CASE("chips and end labels choose the accumulator in focus", "[accumulator_precision_scene]") {
  SceneFrame frame;
  AccumulatorPrecisionScene scene;
  scene.load(report_of({}));
  CHECK(scene.focus() == 0);  // the one that freezes
  const auto press = [&](ImVec2 size, const char* id) {
    const auto parts = frame.draw(size, [&] { scene.draw_picture({40, 1}); });
    ImGui::GetIO().MousePos = center(parts.at(id));
    for (const bool down : {false, true, false}) {
      ImGui::GetIO().MouseDown[0] = down;
      frame.draw(size, [&] { scene.draw_picture({40, 1}); });
    }
  };
  press(kSizes[0], "chip_fp32");
  CHECK(scene.focus() == 2);
  CHECK(scene.table_row("accumulators", {40, 1}) == 2);
  const int line = scene.source({40, 1}).current;
  CHECK(line > 0);
  CHECK(scene.source({0, 1}).current == 0);
  press(kSizes[0], "end_fp8-e4m3");
  CHECK(scene.focus() == 0);
  // The focus stays with its accumulator, and a chip that stands for all goes on to the next.
  press(kSizes[0], "chip_fp16");
  scene.load(report_of(set_of("all")));
  CHECK(scene.focus() == 2);
  press(kSizes[1], "chip_fp16");
  CHECK(scene.focus() == 3);
  scene.hover_row("accumulators", 5);
  scene.hover_row("terms", 12);
  frame.draw(kSizes[0], [&] { scene.draw_picture({40, 1}); });
}

TEST_CASE("the accumulator questions are answered by the trace", "[accumulator_precision_scene]") {
  std::set<int> places;
  for (const char* set : {"fp8-e4m3", "fp8-e5m2", "fp16", "bf16", "fp32", "promoted", "kahan"}) {
    for (const char* rounding : {"nearest", "truncate"}) {
      lab::Settings settings = set_of(set, 100);
      settings["rounding"] = std::string(rounding);
      const lab::Report report = report_of(settings);
      const Trace trace = accumulator_precision::trace_from_json(report.trace);
      const AccumulatorTrace& a = trace.accumulators.front();
      AccumulatorPrecisionScene scene;
      scene.load(report);
      int asked = 0;
      for (int tile = 0; tile < 100; ++tile) {
        CHECK_FALSE(scene.question({tile, 0}));
        const auto question = scene.question({tile, 1});
        if (!question) continue;
        ++asked;
        CAPTURE(set, rounding, tile, question->text);
        const std::set<std::string> different(question->choices.begin(), question->choices.end());
        CHECK(different.size() == question->choices.size());
        REQUIRE(question->choices.size() >= 2);
        REQUIRE(question->choices.size() <= 4);
        CHECK_FALSE(question->because.empty());
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
      CHECK_FALSE(scene.question({100, 1}));
    }
  }
  CHECK(places.size() >= 3);
}

namespace {

void check_inside(const Parts& parts, ImVec2 size) {
  for (const auto& [id, part] : parts) {
    CAPTURE(id, part.label, part.min.x, part.max.x, part.min.y, part.max.y, size.x, size.y);
    REQUIRE(part.min.x >= -1);
    REQUIRE(part.min.y >= -1);
    REQUIRE(part.max.x <= size.x + 1);
    REQUIRE(part.max.y <= size.y + 1);
  }
}

bool touch(const ui::MapEntry& a, const ui::MapEntry& b) {
  return a.min.x < b.max.x - 1 && b.min.x < a.max.x - 1 && a.min.y < b.max.y - 1 &&
         b.min.y < a.max.y - 1;
}

void check_apart(const Parts& parts) {
  std::vector<std::string> ids = {"sentence", "plot",      "rug",         "row_before",
                                  "row_term", "row_after", "number_line", "blocks"};
  for (const auto& [id, part] : parts) {
    if (id.rfind("chip_", 0) == 0) ids.push_back(id);
  }
  std::vector<std::string> labels;
  for (const auto& [id, part] : parts) {
    if (id.rfind("end_", 0) == 0) labels.push_back(id);
  }
  for (const auto* group : {&ids, &labels}) {
    for (const std::string& one : *group) {
      for (const std::string& other : *group) {
        if (one >= other || parts.count(one) == 0 || parts.count(other) == 0) continue;
        CAPTURE(one, other);
        REQUIRE_FALSE(touch(parts.at(one), parts.at(other)));
      }
    }
  }
  for (const char* one : {"line_below"}) {
    if (parts.count(one) == 0) continue;
    REQUIRE_FALSE(touch(parts.at(one), parts.at("line_above")));
  }
}

void check_look(SceneFrame& frame, AccumulatorPrecisionScene& scene, ImVec2 size) {
  const scenes::StepAxis axis = scene.steps();
  for (const auto theme : {ui::ThemeKind::dark, ui::ThemeKind::light}) {
    frame.look().theme = theme;
    for (const Cursor cursor :
         {Cursor{0, 1}, Cursor{1, 0}, Cursor{(axis.tiles + 1) / 2, 1}, Cursor{axis.tiles, 1}}) {
      CAPTURE(size.x, size.y, cursor.tile);
      const auto parts = frame.draw(size, [&] { scene.draw_picture(cursor); });
      check_inside(parts, size);
      check_apart(parts);
      frame.draw(size, [&] { scene.draw_readouts(cursor); });
      scene.question(cursor);
    }
  }
}

}  // namespace

TEST_CASE("the accumulator scene draws at every knob's extremes and sizes",
          "[accumulator_precision_scene]") {
  SceneFrame frame;
  std::vector<lab::Settings> cases = {{}, set_of("all", 1), set_of("all", 4096)};
  for (const lab::Knob& knob : lesson("accumulator-precision").knobs()) {
    for (const std::string& choice : knob.choices) {
      cases.push_back({{knob.id, choice}});
      // With all accumulators, among them those that the choice concerns.
      if (knob.id != "accumulators") cases.push_back(set_of("all", 300));
      if (knob.id != "accumulators") cases.back()[knob.id] = choice;
    }
    if (knob.kind != lab::KnobKind::integer) continue;
    for (const double value : {knob.min, knob.max}) {
      cases.push_back({{knob.id, static_cast<std::int64_t>(value)}});
    }
  }
  for (const lab::Settings& settings : cases) {
    const lab::Report report = report_of(settings);
    CAPTURE(lab::to_json(report.params).dump());
    CHECK(report.ok());
    AccumulatorPrecisionScene scene;
    scene.load(report);
    for (const ImVec2 size : kSizes) {
      check_look(frame, scene, size);
      frame.draw(size, [&] { scene.draw_measured(report); });
    }
  }
}

TEST_CASE("the accumulator scene draws with large text", "[accumulator_precision_scene]") {
  SceneFrame frame;
  for (const float scale : {1.5f, 2.0f}) {
    frame.look().text_scale = scale;
    for (const char* set : {"basic", "all", "remedies"}) {
      AccumulatorPrecisionScene scene;
      scene.load(report_of(set_of(set)));
      CAPTURE(scale, set);
      check_look(frame, scene, {400 * scale, 240 * scale});
      check_look(frame, scene, {1900, 1000});
    }
  }
}

namespace {

/// A bench as a GPU would answer it, for the layout alone.
lab::Report bench_report() {
  using namespace accumulator_precision;
  lab::Report bench;
  bench.lesson = "accumulator-precision";
  bench.device.name = "a GPU of the test";
  lab::Table errors{"tensor_core_error", "", {{"data", "data", "", -1}, {"k", "K", "", 0}}, {}};
  lab::Table rates{"tensor_core_rate",
                   "",
                   {{"variant", "variant", "", -1},
                    {"m", "M", "", 0},
                    {"k", "K", "", 0},
                    {"rate", "rate", "TFLOP/s", 0},
                    {"p10", "p10", "", 0},
                    {"p90", "p90", "", 0},
                    {"error", "error", "%", 4}},
                   {}};
  for (const GemmVariant variant : kGemmVariants) {
    const std::string name(to_text(variant));
    errors.columns.push_back({name, name, "%", 4});
    const double rate = 300 + 100.0 * static_cast<int>(variant);
    rates.rows.push_back({name, 4096.0, 4096.0, rate, rate * 0.99, rate * 1.01, 0.5});
    for (const auto& [id, value] :
         {std::pair{"gemm_rate", rate},
          std::pair{"gemm_error", variant == GemmVariant::wgmma_fp8 ? 6.0 : 0.02}}) {
      lab::Measurement m;
      m.id = id;
      m.variant = name;
      m.value = value;
      bench.measurements.push_back(m);
    }
  }
  for (const GemmData data : kGemmData) {
    for (const double k : {256.0, 4096.0, 16384.0}) {
      errors.rows.push_back({std::string(to_text(data)), k, k * 1e-3, 0.01, 0.5, 1e-5, 1e-5});
    }
    lab::Measurement m;
    m.id = "model_bit_equal";
    m.variant = to_text(data);
    m.value = data == GemmData::normal ? 99.5 : 100;
    bench.measurements.push_back(m);
  }
  lab::Table model{"hopper_model", "models", {{"fraction_bits", "bits", "", 0}}, {{13.0}}};
  bench.tables = {errors, rates, model};
  return bench;
}

}  // namespace

TEST_CASE("the measured views of the accumulator lesson draw", "[accumulator_precision_scene]") {
  SceneFrame frame;
  AccumulatorPrecisionScene scene;
  const lab::Report run = report_of({});
  scene.load(run);
  for (const ImVec2 size : kSizes) {
    const auto show = [&](const lab::Report& report, const std::string& id) {
      auto parts = frame.draw(size, [&] { scene.draw_measured(report); });
      REQUIRE(parts.count(id) == 1);
      ImGui::GetIO().MousePos = center(parts.at(id));
      for (const bool down : {false, true, false}) {
        ImGui::GetIO().MouseDown[0] = down;
        frame.draw(size, [&] { scene.draw_measured(report); });
      }
      return frame.draw(size, [&] { scene.draw_measured(report); });
    };
    const lab::Report bench = bench_report();
    show(bench, "measured_view_0");
    CHECK(show(bench, "measured_data_1").at("gemm_error").value == "5 curves");
    auto parts = show(bench, "measured_view_1");
    CHECK(parts.at("price").label.find("costs -33 %") != std::string::npos);
    CHECK(parts.at("price").label.find("300 times smaller") != std::string::npos);
    CHECK(parts.at("gemm_rate_0").label == "wgmma-fp8");
    // What lies below the window's edge is not on screen.
    const bool tall = size.y > 300;
    if (tall) CHECK(parts.at("gemm_error_bars_1").value == "0.500 %");
    parts = show(bench, "measured_view_2");
    CHECK(parts.at("model_agrees")
              .label.find(
                  "100 % on uniform data, 99.50 % on normal data and 100 % on outlier data") !=
          std::string::npos);
    // Scales need no GPU.
    parts = show(run, "measured_view_3");
    CHECK(parts.at("scaling_error_2").label == "per-block 1x128, 128x128");
    if (tall) CHECK(parts.at("scaling_why").label.find("DeepGEMM") != std::string::npos);
  }
}
