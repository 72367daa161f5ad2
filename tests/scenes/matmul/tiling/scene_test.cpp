#include "scenes/matmul/tiling/scene.hpp"

#include <cmath>
#include <numeric>

#include "kernels/catalog.hpp"
#include "scenes/ui/roofline.hpp"
#include "tests/catch.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using scenes::Cursor;
using scenes::TilingScene;
using tests::SceneFrame;

namespace {

using Parts = std::map<std::string, ui::MapEntry>;

lab::Report report_of(const lab::Settings& settings) {
  lab::NoProgress progress;
  return answer({"tiling", settings, lab::Request::Action::run, "emulated"}, progress);
}

lab::Settings sizes(std::int64_t tile, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {{"tile", tile}, {"m", m}, {"n", n}, {"k", k}};
}

lab::Settings with(lab::Settings settings, const char* id, const char* choice) {
  settings[id] = std::string(choice);
  return settings;
}

std::vector<Cursor> cursors_of(const TilingScene& scene) {
  const scenes::StepAxis axis = scene.steps();
  std::vector<Cursor> all = {{0, axis.phases - 1}};
  for (int tile = 1; tile <= axis.tiles; ++tile) {
    for (int phase = 0; phase < axis.phases; ++phase) all.push_back({tile, phase});
  }
  return all;
}

const ImVec2 kSizes[] = {{860, 480}, {560, 240}, {1900, 1000}};

bool within(const ui::MapEntry& inner, const ui::MapEntry& outer) {
  return inner.min.x >= outer.min.x - 1 && inner.max.x <= outer.max.x + 1 &&
         inner.min.y >= outer.min.y - 1 && inner.max.y <= outer.max.y + 1;
}

std::string cell(const char* prefix, int i, int tile) {
  return std::string(prefix) + "_" + std::to_string(i / tile) + "_" + std::to_string(i % tile);
}

/// The tiles on screen against what must have happened: thread y·tile + x loads element [y][x] of
/// either tile, and every element inside is used once by each thread of its row or column.
void check_tiles(const Parts& parts, const tiling::Trace& trace, int k_tile, bool multiplied) {
  const bool shared = trace.block.variant == tiling::Variant::shared_tile;
  const int tile = trace.tile;
  const int depth = std::min(tile, trace.k - k_tile * tile);
  for (int i = 0; i < tile * tile; ++i) {
    const bool a_inside = i / tile < trace.rows() && i % tile < depth;
    const bool b_inside = i / tile < depth && i % tile < trace.columns();
    const auto expected = [&](bool inside, int loads) -> std::string {
      if (!inside) return "outside";
      if (!shared) return std::to_string(loads) + " loads";
      if (multiplied) return std::to_string(tile) + " reads";
      return "thread " + std::to_string(i);
    };
    CHECK(parts.at(cell("sa", i, tile)).value == expected(a_inside, trace.columns()));
    CHECK(parts.at(cell("sb", i, tile)).value == expected(b_inside, trace.rows()));
  }
}

void check_picture(const Parts& parts, const tiling::Trace& trace, const TilingScene& scene,
                   Cursor cursor) {
  const scenes::TilingMoment now = scene.moment(cursor);
  const bool shared = trace.block.variant == tiling::Variant::shared_tile;
  if (cursor.tile == 0) {
    CHECK(parts.at("sa_0_0").value == "empty");
    CHECK(parts.at("bar_naive").value == "0");
    CHECK(parts.count("a_tile") == 0);
    return;
  }
  const int k_tile = cursor.tile - 1;
  const bool multiplied = !shared || cursor.phase >= 2;
  check_tiles(parts, trace, k_tile, multiplied);

  // Loads so far: a tile of A and one of B each k-tile, against two a product.
  const int before = k_tile * trace.tile;
  const int after = std::min(trace.k, before + trace.tile);
  const int products = trace.rows() * trace.columns();
  const int naive = 2 * products * (multiplied ? after : before);
  const int tiled = (trace.rows() + trace.columns()) * after;
  CHECK(parts.at("bar_naive").value == std::to_string(naive));
  if (trace.block.variant != tiling::Variant::naive) {
    CHECK(parts.at("bar_block").value == std::to_string(shared ? tiled : naive));
  }

  const int last = multiplied ? k_tile : k_tile - 1;
  for (int i = 0; i < trace.tile * trace.tile; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const float sum =
        last < 0 ? 0 : trace.block.k_tiles[static_cast<std::size_t>(last)].sums[index];
    CHECK(scene.sum(i, cursor) == sum);
    const bool inside = i / trace.tile < trace.rows() && i % trace.tile < trace.columns();
    CHECK((parts.at(cell("c", i, trace.tile)).value == "outside") == !inside);
  }
  if (parts.count("naive_a") == 1) {
    const auto loads = [&](int count) {
      return multiplied ? std::to_string(count) + " loads" : std::string("to come");
    };
    CHECK(parts.at("naive_a").value == loads(trace.columns()));
    CHECK(parts.at("naive_b").value == loads(trace.rows()));
  }
  CHECK(within(parts.at("a_tile"), parts.at("a_band")));
  CHECK(within(parts.at("b_tile"), parts.at("b_band")));
  CHECK(within(parts.at("c_block"), parts.at("matrix_c")));
  const auto share = [&](const char* part, const char* of) {
    return (parts.at(part).max.x - parts.at(part).min.x) /
           (parts.at(of).max.x - parts.at(of).min.x);
  };
  CHECK(share("a_tile", "matrix_a") ==
        Approx(static_cast<float>(after - before) / static_cast<float>(trace.k)).margin(0.01));
  CHECK(share("c_block", "matrix_c") ==
        Approx(static_cast<float>(trace.columns()) / static_cast<float>(trace.n)).margin(0.01));
  CHECK(parts.at("sentence").label == scene.sentence(cursor));
  CHECK(now.k_tile == k_tile);
  CHECK(scene.table_row("k_tiles", cursor) == k_tile);
  if (!shared) return;
  const auto state = [&](int phase) {
    return cursor.phase == phase ? "current" : cursor.phase > phase ? "done" : "to come";
  };
  CHECK(parts.at("barrier_after_load").value == state(1));
  CHECK(parts.at("barrier_after_multiply").value == state(3));
}

/// A bench as a GPU would answer it, for the layout alone.
lab::Report bench_report() {
  lab::Report bench;
  bench.lesson = "tiling";
  bench.device.name = "a GPU of the test";
  lab::Table ladder{"ladder_measured",
                    "ladder",
                    {{"rung", "rung", "", -1},
                     {"size", "size", "", 0},
                     {"tflops", "rate", "TFLOP/s", 2},
                     {"p10", "p10", "", 2},
                     {"p90", "p90", "", 2},
                     {"fraction", "of cuBLAS", "", 3}},
                    {}};
  lab::Table roofline{"roofline",
                      "roofline",
                      {{"label", "label", "", -1},
                       {"flop_per_byte", "x", "", 2},
                       {"tflops", "y", "", 3},
                       {"provenance", "rate is", "", -1},
                       {"formula", "bytes", "", -1}},
                      {}};
  for (const int size : {8192, 4096}) {
    for (int i = 0; i < tiling::kVariants; ++i) {
      const std::string rung(to_text(static_cast<tiling::Variant>(i)));
      const double rate = 0.5 * std::pow(2.0, i);
      ladder.rows.push_back({rung, static_cast<double>(size), rate, rate * 0.99, rate * 1.01, 0.5});
      roofline.rows.push_back({rung + " " + std::to_string(size) + "³", size / 6.0, rate,
                               std::string("measured"), std::string("each matrix once")});
      if (size == 8192) continue;
      roofline.rows.push_back({rung + " 4096³, counted bytes", 20.0 + 30 * i, rate,
                               std::string("measured"), std::string("counted")});
    }
    ladder.rows.push_back(
        {std::string("cuBLAS FP32"), static_cast<double>(size), 80.0, 79.0, 81.0, 1.0});
  }
  roofline.rows.push_back({std::string("naive attention"), 60.0, 200.0, std::string("derived"),
                           std::string("a formula")});
  bench.tables = {ladder, roofline};
  for (const auto& [id, value] : std::map<std::string, double>{
           {"copy_bandwidth", 4000}, {"library_fp32", 80}, {"datasheet_fp32", 100}}) {
    lab::Measurement m;
    m.id = id;
    m.value = value;
    m.unit = id == "copy_bandwidth" ? "GB/s" : "TFLOP/s";
    bench.measurements.push_back(m);
  }
  return bench;
}

}  // namespace

TEST_CASE("the tiling picture equals the trace at every step and phase", "[tiling_scene]") {
  SceneFrame frame;
  for (const char* variant : {"shared-tile", "naive", "coalesced", "register-tile-2d"}) {
    // The chosen block is at neither edge in the first, and cut off on two sides in the second.
    for (const lab::Settings& size : {sizes(8, 24, 40, 20), sizes(8, 5, 7, 9)}) {
      const lab::Report report = report_of(with(size, "variant", variant));
      const auto trace = tiling::trace_from_json(report.trace);
      TilingScene scene;
      scene.load(report);
      for (const Cursor cursor : cursors_of(scene)) {
        CAPTURE(variant, trace.m, cursor.tile, cursor.phase);
        const auto parts = frame.draw(kSizes[0], [&] { scene.draw_picture(cursor); });
        check_picture(parts, trace, scene, cursor);
      }
    }
  }
}

TEST_CASE("the picked thread's formula adds up", "[tiling_scene]") {
  SceneFrame frame;
  const lab::Report report = report_of(sizes(4, 8, 8, 8));
  const auto trace = tiling::trace_from_json(report.trace);
  TilingScene scene;
  scene.load(report);
  const auto parts = frame.draw(kSizes[0], [&] { scene.draw_picture({1, 2}); });
  const ui::MapEntry target = parts.at("c_3_2");
  ImGui::GetIO().MousePos = {(target.min.x + target.max.x) / 2, (target.min.y + target.max.y) / 2};
  ImGui::GetIO().MouseDown[0] = true;
  frame.draw(kSizes[0], [&] { scene.draw_picture({1, 2}); });
  ImGui::GetIO().MouseDown[0] = false;
  CHECK(scene.picked() == 3 * trace.tile + 2);
  CHECK(scene.thread_of(scene.picked()) == 3 * trace.tile + 2);

  double sum = 0;
  for (int kk = 0; kk < trace.k; ++kk) {
    sum += static_cast<double>(trace.a_band[static_cast<std::size_t>(3 * trace.k + kk)]) *
           static_cast<double>(trace.b_band[static_cast<std::size_t>(kk * trace.columns() + 2)]);
    if (kk % trace.tile != trace.tile - 1) continue;
    const Cursor cursor{kk / trace.tile + 1, 3};
    CHECK(static_cast<double>(scene.sum(scene.picked(), cursor)) == Approx(sum).margin(1e-4));
    const std::string formula = scene.formula(cursor, 3);
    CHECK(formula.find(" + … = ") != std::string::npos);
  }
}

TEST_CASE("in naive, threads are numbered down the rows", "[tiling_scene]") {
  TilingScene scene;
  scene.load(report_of(with(sizes(4, 8, 8, 8), "variant", "naive")));
  CHECK(scene.thread_of(1) == 4);
  CHECK(scene.thread_of(4) == 1);
  CHECK(scene.steps().phases == 1);
}

TEST_CASE("a removed barrier and what it broke are on screen", "[tiling_scene]") {
  SceneFrame frame;
  for (const char* removed : {"after-load", "after-multiply"}) {
    const lab::Report report = report_of(with(sizes(8, 16, 16, 24), "remove_barrier", removed));
    const auto trace = tiling::trace_from_json(report.trace);
    REQUIRE(trace.races.wrong_orders > 0);
    TilingScene scene;
    scene.load(report);
    const int last = scene.steps().tiles;
    auto parts = frame.draw(kSizes[0], [&] { scene.draw_picture({1, 3}); });
    const std::string id =
        removed == std::string("after-load") ? "barrier_after_load" : "barrier_after_multiply";
    CHECK(parts.at(id).value == "removed");
    CHECK(parts.count("wrong_in_c") == 0);
    parts = frame.draw(kSizes[0], [&] { scene.draw_picture({last, 3}); });
    CHECK(parts.at("wrong_in_c").label ==
          "C[" + std::to_string(trace.races.row) + "][" + std::to_string(trace.races.column) + "]");
    for (const int i : trace.races.wrong_elements) {
      const bool first = i == trace.races.wrong_elements.front();
      CHECK(parts.at(cell("c", i, trace.tile)).value == (first ? "first wrong" : "wrong"));
    }
    const std::string counts = std::to_string(trace.races.wrong_orders) + " of " +
                               std::to_string(trace.races.orders) + " orders";
    CHECK(scene.sentence({last, 3}).find(counts) != std::string::npos);
    const auto question = scene.question({last - 1, 3});
    REQUIRE(question);
    CHECK(question->answer == (trace.races.wrong_orders == trace.races.orders ? 2 : 1));
  }
}

TEST_CASE("the tiling questions are answered by the trace", "[tiling_scene]") {
  for (const char* variant : {"shared-tile", "naive"}) {
    const lab::Report report = report_of(with(sizes(8, 16, 16, 20), "variant", variant));
    const auto trace = tiling::trace_from_json(report.trace);
    TilingScene scene;
    scene.load(report);
    const int last_phase = scene.steps().phases - 1;
    const auto answer_at = [&](int tile) {
      const auto question = scene.question({tile, last_phase});
      REQUIRE(question);
      return question->choices.at(static_cast<std::size_t>(question->answer));
    };
    CHECK(answer_at(0) == std::to_string(trace.block.k_tiles[0].loads_so_far));
    if (last_phase > 0) {
      CHECK(answer_at(1) == "8");
      CHECK_FALSE(scene.question({0, 0}));
    }
    // The last k-tile has 4 of 8 columns of A.
    CHECK(answer_at(2) ==
          std::to_string(trace.block.loads() - trace.block.k_tiles[1].loads_so_far));
    CHECK_FALSE(scene.question({3, last_phase}));
  }
}

TEST_CASE("the kernel's lines follow the phases", "[tiling_scene]") {
  TilingScene scene;
  scene.load(report_of({}));
  CHECK(scene.source({0, 3}).current == 0);
  for (int phase = 0; phase < 4; ++phase) {
    const scenes::SourceMark mark = scene.source({1, phase});
    REQUIRE(mark.step_lines.size() == 4);
    CHECK(mark.current == mark.step_lines[static_cast<std::size_t>(phase)]);
  }
  scene.load(report_of({{"variant", std::string("warp-tile")}}));
  CHECK(scene.source({1, 0}).path == "kernels/matmul/tiling/warp_tile.cu");
}

namespace {

void check_inside(const Parts& parts, ImVec2 size) {
  for (const auto& [id, part] : parts) {
    CAPTURE(id, part.min.x, part.max.x, part.min.y, part.max.y, size.x);
    REQUIRE(part.min.x >= -1);
    REQUIRE(part.min.y >= -1);
    REQUIRE(part.max.x <= size.x + 1);
    REQUIRE(part.max.y <= size.y + 1);
  }
}

void check_apart(const Parts& parts, std::initializer_list<const char*> ids) {
  for (const char* one : ids) {
    for (const char* other : ids) {
      if (one == other || parts.count(one) == 0 || parts.count(other) == 0) continue;
      const ui::MapEntry& a = parts.at(one);
      const ui::MapEntry& b = parts.at(other);
      const bool touch = a.min.x < b.max.x - 1 && b.min.x < a.max.x - 1 && a.min.y < b.max.y - 1 &&
                         b.min.y < a.max.y - 1;
      CAPTURE(one, other);
      REQUIRE_FALSE(touch);
    }
  }
}

}  // namespace

TEST_CASE("the tiling scene draws at every knob's extremes and sizes", "[tiling_scene]") {
  SceneFrame frame;
  std::vector<lab::Settings> cases = {{},
                                      sizes(32, 256, 256, 256),
                                      sizes(4, 1, 1, 1),
                                      sizes(32, 1, 256, 1),
                                      sizes(4, 256, 1, 256),
                                      sizes(4, 1, 1, 256)};
  for (const lab::Knob& knob : lesson("tiling").knobs()) {
    for (const std::string& choice : knob.choices) cases.push_back({{knob.id, choice}});
    if (knob.kind == lab::KnobKind::toggle) cases.push_back({{knob.id, true}});
    if (knob.kind != lab::KnobKind::integer) continue;
    for (const double value : {knob.min, knob.max}) {
      cases.push_back({{knob.id, static_cast<std::int64_t>(value)}});
    }
  }
  for (const lab::Settings& settings : cases) {
    const lab::Report report = report_of(settings);
    CAPTURE(lab::to_json(report.params).dump());
    CHECK(report.ok());
    TilingScene scene;
    scene.load(report);
    const scenes::StepAxis axis = scene.steps();
    for (const ImVec2 size : kSizes) {
      for (const auto theme : {ui::ThemeKind::dark, ui::ThemeKind::light}) {
        frame.look().theme = theme;
        for (const Cursor cursor :
             {Cursor{0, axis.phases - 1}, Cursor{1, 0}, Cursor{axis.tiles, axis.phases - 1}}) {
          const auto parts = frame.draw(size, [&] { scene.draw_picture(cursor); });
          check_inside(parts, size);
          check_apart(parts, {"sentence", "matrix_a", "matrix_b", "matrix_c", "bar_block",
                              "bar_naive", "formula", "sa_0_0", "sb_0_0", "c_0_0",
                              "barrier_after_load", "barrier_after_multiply"});
          frame.draw(size, [&] { scene.draw_readouts(cursor); });
        }
      }
      frame.draw(size, [&] { scene.draw_measured(report); });
    }
  }
}

TEST_CASE("the measured views of the tiling lesson draw", "[tiling_scene]") {
  SceneFrame frame;
  TilingScene scene;
  scene.load(report_of({}));
  const lab::Report bench = bench_report();
  for (const ImVec2 size : kSizes) {
    const auto show = [&](const std::string& press) {
      auto parts = frame.draw(size, [&] { scene.draw_measured(bench); });
      if (parts.count(press) > 0) {
        const ui::MapEntry& button = parts.at(press);
        ImGui::GetIO().MousePos = {(button.min.x + button.max.x) / 2,
                                   (button.min.y + button.max.y) / 2};
        for (const bool down : {false, true, false}) {
          ImGui::GetIO().MouseDown[0] = down;
          frame.draw(size, [&] { scene.draw_measured(bench); });
        }
        parts = frame.draw(size, [&] { scene.draw_measured(bench); });
      }
      return parts;
    };
    auto parts = show("measured_view_0");
    // Bars below the window's edge are not on screen.
    if (size.y > 300) CHECK(parts.at("ladder_fp32_7").label == "warp-tile");
    CHECK(parts.at("ladder_fp32_0").label == "naive");
    parts = show("measured_view_1");
    CHECK(parts.at("roofline").value == "10 dots");
    CHECK(parts.at("roofline_dot_0").label == "naive");
    CHECK(parts.at("roofline_dot_0").value.rfind("20", 0) == 0);
    // A rung that is faster and moves fewer bytes stands higher and further right.
    CHECK(parts.at("roofline_dot_1").min.y < parts.at("roofline_dot_0").min.y);
    CHECK(parts.at("roofline_dot_1").min.x > parts.at("roofline_dot_0").min.x);
    show("measured_view_2");
    show("measured_view_3");
  }
}

TEST_CASE("the roofline allows the lower of its roofs", "[tiling_scene]") {
  ui::Roofline plot;
  plot.memory = {{"copy", 4, false}, {"datasheet", 5, true}};
  const ui::ComputeRoof roof{"library", 50, false};
  CHECK(ui::attainable(plot, roof, 2) == 8);
  CHECK(ui::attainable(plot, roof, 12.5) == 50);
  CHECK(ui::attainable(plot, roof, 1000) == 50);
}
