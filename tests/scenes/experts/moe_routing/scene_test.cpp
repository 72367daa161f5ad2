#include "scenes/experts/moe_routing/scene.hpp"

#include <cmath>
#include <set>

#include "kernels/base/lab/recording.hpp"
#include "kernels/catalog.hpp"
#include "tests/catch.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using moe_routing::Step;
using scenes::Cursor;
using scenes::MoeRoutingScene;
using tests::SceneFrame;

namespace {

using Parts = std::map<std::string, ui::MapEntry>;

const ImVec2 kSizes[] = {{860, 480}, {560, 240}, {1900, 1000}};

lab::Report report_of(const lab::Settings& settings) {
  lab::NoProgress progress;
  return answer({"moe-routing", settings, lab::Request::Action::run, "emulated"}, progress);
}

lab::Settings shape(std::int64_t tokens, std::int64_t experts, std::int64_t top_k,
                    const char* routing, std::int64_t tile = 8, double capacity = 0,
                    const char* scheme = "packed") {
  lab::Settings settings = {{"tokens", tokens},
                            {"experts", experts},
                            {"top_k", top_k},
                            {"tile", std::to_string(tile)},
                            {"routing", std::string(routing)},
                            {"scheme", std::string(scheme)}};
  if (capacity > 0) settings["capacity"] = capacity;
  return settings;
}

Cursor after(Step step) {
  return {static_cast<int>(step) + 1, 0};
}

std::string name(const char* prefix, int a) {
  return std::string(prefix) + "_" + std::to_string(a);
}
std::string name(const char* prefix, int a, int b) {
  return name(prefix, a) + "_" + std::to_string(b);
}

bool within(const ui::MapEntry& inner, const ui::MapEntry& outer) {
  return inner.min.x >= outer.min.x - 2 && inner.max.x <= outer.max.x + 2 &&
         inner.min.y >= outer.min.y - 2 && inner.max.y <= outer.max.y + 2;
}

void check_tokens(const Parts& parts, const moe_routing::Trace& trace, Cursor cursor) {
  for (int t = 0; t < static_cast<int>(trace.token.size()); ++t) {
    const moe_routing::TokenTrace& token = trace.token[static_cast<std::size_t>(t)];
    std::string expected;
    for (std::size_t c = 0; c < token.expert.size(); ++c) {
      expected += (c == 0 ? "E" : " E") + std::to_string(token.expert[c]);
      if (cursor.tile >= 4 && token.slot[c] < 0) expected += " dropped";
    }
    CHECK(parts.at(name("token", t)).value == (cursor.tile < 2 ? "waiting" : expected));
  }
}

/// Every slot of every column, found from the tokens' own slots; what is left over is padding.
void check_columns(const Parts& parts, const moe_routing::Trace& trace, Cursor cursor) {
  std::vector<int> seen(trace.expert.size(), 0);
  std::vector<int> lost(trace.expert.size(), 0);
  for (std::size_t t = 0; t < trace.token.size(); ++t) {
    const moe_routing::TokenTrace& token = trace.token[t];
    for (std::size_t c = 0; c < token.expert.size(); ++c) {
      const int e = token.expert[c];
      const auto index = static_cast<std::size_t>(e);
      const std::string value = "token " + std::to_string(t);
      if (token.slot[c] < 0) {
        CHECK(parts.at(name("dropped", e, lost[index]++)).value == value);
        continue;
      }
      const int place = token.slot[c] - trace.expert[index].first_slot;
      const ui::MapEntry& cell = parts.at(name("slot", e, place));
      CHECK(cell.value == (cursor.tile >= 5 ? value : "free"));
      CHECK(within(cell, parts.at(name("expert", e))));
      CHECK(within(cell, parts.at(name("tile", e, place / trace.tile))));
      ++seen[index];
    }
  }
  for (int e = 0; e < trace.experts; ++e) {
    const moe_routing::ExpertTrace& expert = trace.expert[static_cast<std::size_t>(e)];
    CHECK(seen[static_cast<std::size_t>(e)] == expert.kept);
    CHECK(lost[static_cast<std::size_t>(e)] == expert.dropped());
    int padded = 0;
    for (int i = 0; i < expert.tiles * trace.tile; ++i) {
      padded += parts.at(name("slot", e, i)).value == "padded" ? 1 : 0;
    }
    CHECK(padded == expert.padded);
    CHECK(parts.count(name("slot", e, expert.tiles * trace.tile)) == 0);
    CHECK(parts.count(name("dropped", e, expert.dropped())) == 0);
  }
}

void check_rows(const Parts& parts, const moe_routing::Trace& trace, int followed, Cursor cursor) {
  const moe_routing::TokenTrace& token = trace.token[static_cast<std::size_t>(followed)];
  for (int e = 0; e < trace.experts; ++e) {
    const moe_routing::ExpertTrace& expert = trace.expert[static_cast<std::size_t>(e)];
    const auto expected = [&](Step step, const std::string& value) {
      return cursor.tile > static_cast<int>(step) ? value : std::string("to come");
    };
    CHECK(parts.at(name("wanted", e)).value ==
          expected(Step::count, std::to_string(expert.wanted)));
    CHECK(parts.at(name("first", e)).value ==
          expected(Step::offset, std::to_string(expert.first_slot)));
    std::string gate = "–";
    for (std::size_t c = 0; c < token.expert.size(); ++c) {
      if (token.expert[c] != e) continue;
      char text[16];
      std::snprintf(text, sizeof text, "%.2f", static_cast<double>(token.gate[c]));
      gate = text;
    }
    CHECK(parts.at(name("gate", e)).value == expected(Step::top_k, gate));
    // The highest bars of the contest are those that are chosen.
    if (cursor.tile == 2) {
      CHECK((parts.at(name("contest", e)).value == "chosen") == (gate != "–"));
      const auto best = parts.at(name("contest", token.expert.front()));
      CHECK(parts.at(name("contest", e)).min.y >= best.min.y - 0.5f);
    }
    if (cursor.tile == 3) CHECK(parts.at(name("demand", e)).value == std::to_string(expert.wanted));
  }
}

void check_tiles(const Parts& parts, const moe_routing::Trace& trace, Cursor cursor) {
  const bool ran = cursor.tile >= 6;
  double end = 0;
  for (const moe_routing::TileTrace& tile : trace.tiles) end = std::max(end, tile.end);
  for (std::size_t i = 0; i < trace.tiles.size(); ++i) {
    const moe_routing::TileTrace& tile = trace.tiles[i];
    CHECK(parts.at(name("tile", tile.expert, tile.number)).value ==
          (ran ? "block " + std::to_string(tile.block) : std::string("to come")));
    const std::string bar = name("gantt", static_cast<int>(i));
    REQUIRE(parts.count(bar) == (ran ? 1 : 0));
    if (!ran) continue;
    const ui::MapEntry& drawn = parts.at(bar);
    CHECK(drawn.label ==
          "E" + std::to_string(tile.expert) + " tile " + std::to_string(tile.number));
    // Bars of the same time axis: those of other tiles say where its clock stands.
    const ui::MapEntry& first = parts.at("gantt_0");
    const double unit = static_cast<double>(first.max.x - first.min.x) /
                        (trace.tiles[0].end - trace.tiles[0].begin);
    CHECK(static_cast<double>(drawn.max.x - drawn.min.x) ==
          Approx(unit * (tile.end - tile.begin)).margin(2).epsilon(0.05));
    CHECK(static_cast<double>(drawn.min.x - first.min.x) ==
          Approx(unit * (tile.begin - trace.tiles[0].begin)).margin(2).epsilon(0.05));
  }
}

void check_inside(const Parts& parts, ImVec2 size) {
  for (const auto& [id, part] : parts) {
    const bool is_inside = part.min.x >= -1 && part.min.y >= -1 && part.max.x <= size.x + 1 &&
                           part.max.y <= size.y + 1;
    if (is_inside) continue;
    CAPTURE(id, part.min.x, part.max.x, part.min.y, part.max.y, size.x);
    FAIL("a part leaves the picture");
  }
}

void check_apart(const Parts& parts, std::initializer_list<std::string> ids) {
  for (const std::string& one : ids) {
    for (const std::string& other : ids) {
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

void point_at(const ui::MapEntry& part) {
  ImGui::GetIO().MousePos = {(part.min.x + part.max.x) / 2, (part.min.y + part.max.y) / 2};
}

}  // namespace

TEST_CASE("the MoE picture equals the trace at every step", "[moe_routing_scene]") {
  SceneFrame frame;
  for (const lab::Settings& settings :
       {lab::Settings{}, shape(40, 6, 2, "skewed"), shape(32, 4, 1, "skewed", 8, 1),
        shape(24, 4, 2, "random", 8, 0.75, "tile-padded"),
        shape(30, 4, 1, "skewed", 8, 0, "padded-to-capacity"), shape(1, 2, 2, "balanced", 16),
        shape(48, 8, 1, "one-hot", 16, 2)}) {
    const lab::Report report = report_of(settings);
    const auto trace = moe_routing::trace_from_json(report.trace);
    MoeRoutingScene scene;
    scene.load(report);
    for (int step = 0; step <= moe_routing::kSteps; ++step) {
      const Cursor cursor{step, 0};
      CAPTURE(lab::to_json(report.params).dump(), step);
      const auto parts = frame.draw(kSizes[2], [&] { scene.draw_picture(cursor); });
      CHECK(parts.at("sentence").label == scene.sentence(cursor));
      check_tokens(parts, trace, cursor);
      check_rows(parts, trace, scene.followed(), cursor);
      if (step >= 4) {
        check_columns(parts, trace, cursor);
        check_tiles(parts, trace, cursor);
      }
      if (step < 4 || trace.capacity < 0) CHECK(parts.count("capacity") == 0);
      if (step >= 4 && trace.dropped() > 0) CHECK(parts.count("capacity") == 1);
    }
  }
}

TEST_CASE("no kept token stands above the capacity line and no dropped one below",
          "[moe_routing_scene]") {
  SceneFrame frame;
  for (const double factor : {0.5, 1.0, 1.25}) {
    const lab::Report report = report_of(shape(32, 4, 1, "one-hot", 8, factor));
    const auto trace = moe_routing::trace_from_json(report.trace);
    REQUIRE(trace.dropped() > 0);
    MoeRoutingScene scene;
    scene.load(report);
    const auto parts = frame.draw(kSizes[2], [&] { scene.draw_picture(after(Step::permute)); });
    const ui::MapEntry& line = parts.at("capacity");
    CHECK(line.value == std::to_string(trace.capacity));
    for (const auto& [id, part] : parts) {
      CAPTURE(id, factor);
      if (id.rfind("slot_", 0) == 0 && part.value.rfind("token", 0) == 0) {
        CHECK(part.min.y >= line.min.y);
      }
      if (id.rfind("dropped_", 0) == 0) CHECK(part.max.y <= line.min.y + 3);
    }
    CHECK(parts.at("straggler").label == "E0");
    CHECK(parts.at("straggler").value == std::to_string(trace.expert[0].kept));
  }
}

TEST_CASE("a clicked token is followed in the grid, in its columns and in words",
          "[moe_routing_scene]") {
  SceneFrame frame;
  const lab::Report report = report_of(shape(32, 4, 2, "random"));
  const auto trace = moe_routing::trace_from_json(report.trace);
  MoeRoutingScene scene;
  scene.load(report);
  const Cursor end = after(Step::combine);
  const auto draw = [&] { return frame.draw(kSizes[2], [&] { scene.draw_picture(end); }); };
  auto parts = draw();
  point_at(parts.at("token_17"));
  draw();
  CHECK(scene.followed() == 17);  // under the pointer
  ImGui::GetIO().MouseDown[0] = true;
  draw();
  ImGui::GetIO().MouseDown[0] = false;
  ImGui::GetIO().MousePos = {-100, -100};
  parts = draw();
  CHECK(scene.followed() == 17);
  const moe_routing::TokenTrace& token = trace.token[17];
  for (int c = 0; c < 2; ++c) {
    const auto i = static_cast<std::size_t>(c);
    const int e = token.expert[i];
    const int place = token.slot[i] - trace.expert[static_cast<std::size_t>(e)].first_slot;
    const ui::MapEntry& followed = parts.at(name("followed", c));
    const ui::MapEntry& slot = parts.at(name("slot", e, place));
    CHECK(followed.min.x == slot.min.x);
    CHECK(followed.min.y == slot.min.y);
  }
  const std::string formula = scene.formula(end, 2);
  char gate[32];
  std::snprintf(gate, sizeof gate, "%.2f·E%d(x)", static_cast<double>(token.gate[0]),
                token.expert[0]);
  CHECK(formula.find(gate) != std::string::npos);
  CHECK(parts.at("formula").value == formula);
  // A row under Data lights the same token.
  scene.hover_row("assignments", 2 * 9);
  draw();
  CHECK(scene.followed() == 9);
  CHECK(scene.table_row("assignments", end) == 2 * 9);
  scene.hover_row("assignments", -1);
  draw();
  CHECK(scene.followed() == 17);
}

TEST_CASE("in custom routing a token is dragged to another expert", "[moe_routing_scene]") {
  SceneFrame frame;
  for (const char* routing : {"custom", "balanced"}) {
    const lab::Report report = report_of(shape(32, 4, 1, routing));
    const auto trace = moe_routing::trace_from_json(report.trace);
    MoeRoutingScene scene;
    scene.load(report);
    const auto draw = [&] {
      return frame.draw(kSizes[2], [&] { scene.draw_picture(after(Step::permute)); });
    };
    ImGui::GetIO().MousePos = {-100, -100};
    auto parts = draw();
    const int from = trace.token[6].expert.front();
    const int to = (from + 1) % 4;
    point_at(parts.at("token_6"));
    draw();
    ImGui::GetIO().MouseDown[0] = true;
    draw();
    point_at(parts.at(name("expert", to)));
    CHECK(draw().count("drop_target") == (routing == std::string("custom") ? 1 : 0));
    ImGui::GetIO().MouseDown[0] = false;
    draw();
    const auto request = scene.take_request();
    REQUIRE(request.has_value() == (routing == std::string("custom")));
    CHECK_FALSE(scene.take_request());
    if (!request) continue;
    CHECK(std::get<std::string>(request->at("custom")) == "6:" + std::to_string(to));
    // The knob takes it, and the token goes there.
    lab::Settings settings = shape(32, 4, 1, "custom");
    settings["custom"] = request->at("custom");
    const lab::Report next = report_of(settings);
    const auto moved = moe_routing::trace_from_json(next.trace);
    CHECK(moved.token[6].expert.front() == to);
    scene.load(next);
    CHECK(scene.moved(3, 0) == "3:0,6:" + std::to_string(to));
    CHECK(scene.moved(6, from) == "6:" + std::to_string(from));
  }
}

TEST_CASE("with more tokens than cells, columns are bars as long as their counts",
          "[moe_routing_scene]") {
  SceneFrame frame;
  for (const lab::Settings& settings :
       {shape(4096, 8, 2, "skewed", 32, 1), shape(2000, 64, 1, "skewed", 8),
        shape(8192, 256, 1, "random", 128)}) {
    const lab::Report report = report_of(settings);
    const auto trace = moe_routing::trace_from_json(report.trace);
    MoeRoutingScene scene;
    scene.load(report);
    for (const ImVec2 size : kSizes) {
      const auto parts = frame.draw(size, [&] { scene.draw_picture(after(Step::permute)); });
      const auto tall = [&](int e) {
        const ui::MapEntry& bar = parts.at(name("expert", e));
        return static_cast<double>(bar.max.y - bar.min.y);
      };
      const auto expected = [&](int e) {
        const auto& expert = trace.expert[static_cast<std::size_t>(e)];
        return static_cast<double>(expert.tiles) * trace.tile;
      };
      for (int e = 1; e < trace.experts; ++e) {
        const auto& expert = trace.expert[static_cast<std::size_t>(e)];
        CAPTURE(e, size.x);
        CHECK(parts.at(name("expert", e)).value ==
              "kept " + std::to_string(expert.kept) + ", padded " + std::to_string(expert.padded) +
                  ", dropped " + std::to_string(expert.dropped()));
        if (expert.dropped() > 0) {
          CHECK(parts.at(name("dropped", e)).value == std::to_string(expert.dropped()));
        }
        if (trace.dropped() == 0) {
          CHECK(tall(e) == Approx(tall(0) * expected(e) / expected(0)).margin(2));
        }
        // Side by side, in order.
        CHECK(parts.at(name("expert", e)).min.x >= parts.at(name("expert", e - 1)).max.x - 1);
      }
    }
  }
}

TEST_CASE("the MoE questions are answered by the trace", "[moe_routing_scene]") {
  const auto answer_of = [](const MoeRoutingScene& scene, int step) {
    const auto question = scene.question({step, 0});
    REQUIRE(question);
    CHECK(question->choices.size() >= 2);
    CHECK(std::set<std::string>(question->choices.begin(), question->choices.end()).size() ==
          question->choices.size());
    CHECK_FALSE(question->because.empty());
    return question->choices.at(static_cast<std::size_t>(question->answer));
  };
  MoeRoutingScene scene;
  scene.load(report_of({}));
  CHECK(answer_of(scene, 2) == "None: all are wanted equally");
  CHECK(answer_of(scene, 3) == "32");
  CHECK_FALSE(scene.question({0, 0}));
  CHECK_FALSE(scene.question({5, 0}));
  CHECK_FALSE(scene.question({7, 0}));

  // 40 tokens all want E0, which takes 40 · 1.2 / 4 = 12 of them: two tiles of 8, 28 dropped.
  scene.load(report_of(shape(40, 4, 1, "one-hot", 8, 1.2)));
  CHECK(answer_of(scene, 2) == "E0");
  CHECK(answer_of(scene, 3) == "28");
  CHECK(answer_of(scene, 5) == "16");
  // Padded to the capacity of 12, each of four experts runs two tiles.
  scene.load(report_of(shape(40, 4, 1, "one-hot", 8, 1.2, "padded-to-capacity")));
  CHECK(answer_of(scene, 5) == "64");
}

TEST_CASE("a number is not shown before its step has made it", "[moe_routing_scene]") {
  SceneFrame frame;
  MoeRoutingScene scene;
  scene.load(report_of(shape(20, 4, 1, "balanced")));
  for (int step = 0; step <= moe_routing::kSteps; ++step) {
    const auto parts = frame.draw({300, 700}, [&] { scene.draw_readouts({step, 0}); });
    CAPTURE(step);
    CHECK((parts.at("useful_slots").value == "—") == (step < 4));
    CHECK((parts.at("slots_run").value == "—") == (step < 4));
    CHECK((parts.at("busy_share").value == "—") == (step < 6));
    // Five of eight slots a tile; shown once they are laid out.
    if (step >= 4) CHECK(parts.at("useful_slots").value.rfind("62", 0) == 0);
    if (step >= 4) CHECK(parts.at("slots_run").value.rfind("32", 0) == 0);
    // The emulator counts no tensor pipe: the number is one of a recording, or there is none.
    if (lab::recording("moe-routing") == nullptr || step < 6) {
      CHECK(parts.at("tensor_pipe").value == "—");
    }
  }
}

TEST_CASE("the kernel's lines follow the MoE steps", "[moe_routing_scene]") {
  MoeRoutingScene scene;
  const lab::Report report = report_of({});
  const auto trace = moe_routing::trace_from_json(report.trace);
  scene.load(report);
  CHECK(scene.source({0, 0}).current == 0);
  for (int step = 1; step <= moe_routing::kSteps; ++step) {
    CHECK(scene.source({step, 0}).current == trace.lines[static_cast<std::size_t>(step - 1)]);
  }
  CHECK(scene.source({1, 0}).path == moe_routing::kSourcePath);
}

TEST_CASE("the MoE scene draws at every knob's extremes and sizes", "[moe_routing_scene]") {
  SceneFrame frame;
  std::vector<lab::Settings> cases = {{},
                                      shape(1, 2, 1, "balanced", 128),
                                      shape(256, 256, 8, "random", 8),
                                      shape(256, 2, 1, "one-hot", 8, 0.5),
                                      shape(256, 8, 8, "one-hot", 8, 0.5),
                                      shape(256, 16, 1, "skewed", 128),
                                      shape(64, 16, 4, "skewed", 8, 1.25, "tile-padded"),
                                      shape(8192, 256, 1, "skewed", 8, 4, "padded-to-capacity")};
  for (const lab::Knob& knob : lesson("moe-routing").knobs()) {
    for (const std::string& choice : knob.choices) cases.push_back({{knob.id, choice}});
    for (const double value : {knob.min, knob.max}) {
      if (knob.kind == lab::KnobKind::real) cases.push_back({{knob.id, value}});
      if (knob.kind != lab::KnobKind::integer) continue;
      const auto whole = static_cast<std::int64_t>(value);
      cases.push_back({{knob.id, whole}});
      if (knob.id == "top_k") cases.back()["experts"] = std::int64_t{8};
    }
  }
  for (const lab::Settings& settings : cases) {
    const lab::Report report = report_of(settings);
    CAPTURE(lab::to_json(report.params).dump());
    CHECK(report.ok());
    MoeRoutingScene scene;
    scene.load(report);
    for (const ImVec2 size : kSizes) {
      for (const auto theme : {ui::ThemeKind::dark, ui::ThemeKind::light}) {
        frame.look().theme = theme;
        const bool dark = theme == ui::ThemeKind::dark;
        for (const int step : {dark ? 0 : 2, dark ? 4 : 6, dark ? 7 : 1}) {
          const auto parts = frame.draw(size, [&] { scene.draw_picture({step, 0}); });
          CAPTURE(size.x, step);
          check_inside(parts, size);
          check_apart(parts, {"sentence", "formula", "gantt", "token_0", "expert_0", "wanted_0",
                              "first_0", "straggler"});
          REQUIRE(parts.count("token_0") == 1);
          REQUIRE(parts.count(name("expert", 0)) == (step >= 4 ? 1 : 0));
        }
      }
      frame.draw(size, [&] { scene.draw_readouts({7, 0}); });
      frame.draw(size, [&] { scene.draw_measured(report); });
    }
  }
  // Twice the text in the smallest picture, and in the largest.
  frame.look().text_scale = 2;
  for (const lab::Settings& settings : {cases[0], cases[2], cases[4], cases[6]}) {
    MoeRoutingScene scene;
    scene.load(report_of(settings));
    for (const ImVec2 size : kSizes) {
      for (int step = 0; step <= moe_routing::kSteps; ++step) {
        const auto parts = frame.draw(size, [&] { scene.draw_picture({step, 0}); });
        check_inside(parts, size);
        check_apart(parts, {"sentence", "formula", "gantt", "token_0", "expert_0"});
      }
    }
  }
}

namespace {

/// A bench as a GPU would answer it, for the layout alone.
lab::Report bench_report() {
  lab::Report bench;
  bench.lesson = "moe-routing";
  bench.device.name = "a GPU of the test";
  lab::Table rates{"moe_rate",
                   "rates",
                   {{"scheme", "scheme", "", -1},
                    {"routing", "routing", "", -1},
                    {"skew", "skew", "", 2},
                    {"experts", "experts", "", 0},
                    {"tflops", "useful", "TFLOP/s", 1},
                    {"p10", "p10", "", 1},
                    {"p90", "p90", "", 1},
                    {"slots", "slots", "", 0},
                    {"cublas_tflops", "cuBLAS", "TFLOP/s", 1},
                    {"of_cublas", "of cuBLAS", "", 3}},
                   {}};
  lab::Table gantt{"gantt",
                   "blocks",
                   {{"scheme", "scheme", "", -1},
                    {"routing", "routing", "", -1},
                    {"block", "block", "", 0},
                    {"expert", "expert", "", -1},
                    {"begin_us", "begin", "µs", 1},
                    {"end_us", "end", "µs", 1}},
                   {}};
  const auto text = [](const char* words) { return lab::Cell(std::string(words)); };
  for (const double experts : {8.0, 64.0}) {
    for (const char* scheme : {"packed", "tile-padded", "padded-to-capacity"}) {
      const double rate = scheme == std::string("packed") ? 450 : 300;
      for (const double skew : {0.0, 0.5, 1.0, 1.5}) {
        const double here = rate - 40 * skew;
        rates.rows.push_back({text(scheme), text(skew > 0 ? "skewed" : "balanced"), skew, experts,
                              here, here * 0.99, here * 1.01, 8192.0, 700.0, here / 700});
      }
      rates.rows.push_back({text(scheme), text("one-hot"), 0.0, experts, rate / 2, rate / 2,
                            rate / 2, 8192.0, 700.0, rate / 1400});
    }
  }
  for (int block = 0; block < 132; ++block) {
    gantt.rows.push_back({text("packed"), text("skewed"), static_cast<double>(block),
                          lab::Cell("E" + std::to_string(block % 8)), 0.0, 100.0 + block % 7});
  }
  bench.tables = {rates, gantt};
  return bench;
}

}  // namespace

TEST_CASE("the measured views of the MoE lesson draw", "[moe_routing_scene]") {
  SceneFrame frame;
  MoeRoutingScene scene;
  scene.load(report_of({}));
  const lab::Report bench = bench_report();
  for (const ImVec2 size : kSizes) {
    const auto show = [&](const std::string& press) {
      const auto draw = [&] { return frame.draw(size, [&] { scene.draw_measured(bench); }); };
      const Parts before = draw();
      point_at(before.at(press));
      for (const bool down : {false, true, false}) {
        ImGui::GetIO().MouseDown[0] = down;
        draw();
      }
      return draw();
    };
    auto parts = show("measured_view_0");
    // Three schemes and the library.
    CHECK(parts.at("rate_by_skew").value == "4 curves");
    parts = show("measured_view_1");
    CHECK(parts.at("rate_8_experts_0").label == "packed");
    CHECK(parts.at("rate_8_experts_0").value == "450 TFLOP/s");
    parts = show("measured_view_2");
    CHECK(parts.at("recorded_blocks").value == "132 spans");
    show("measured_view_3");
  }
}
