#include "scenes/experts/moe_routing/scene.hpp"

#include "kernels/base/lab/recording.hpp"
#include "tests/lesson_contract/pictures.hpp"
#include "tests/scenes/shown.hpp"

using namespace tilestep;
using moe_routing::Step;
using scenes::Cursor;
using tests::Parts, tests::within;
using Shown = tests::Shown<scenes::MoeRoutingScene>;

namespace {

const ImVec2 kLarge = tests::kPictureSizes[2];

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
      CHECK(within(cell, parts.at(name("expert", e)), 2));
      CHECK(within(cell, parts.at(name("tile", e, place / trace.tile)), 2));
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

}  // namespace

TEST_CASE("the MoE picture equals the trace at every step", "[moe_routing_scene]") {
  Shown shown;
  for (const lab::Settings& settings :
       {lab::Settings{}, shape(40, 6, 2, "skewed"), shape(32, 4, 1, "skewed", 8, 1),
        shape(24, 4, 2, "random", 8, 0.75, "tile-padded"),
        shape(30, 4, 1, "skewed", 8, 0, "padded-to-capacity"), shape(1, 2, 2, "balanced", 16),
        shape(48, 8, 1, "one-hot", 16, 2)}) {
    shown.run(settings);
    const auto& trace = shown.trace();
    for (int step = 0; step <= moe_routing::kSteps; ++step) {
      const Cursor cursor{step, 0};
      CAPTURE(lab::to_json(shown.report().params).dump(), step);
      const auto parts = shown.picture(cursor, kLarge);
      CHECK(parts.at("sentence").label == shown->sentence(cursor));
      check_tokens(parts, trace, cursor);
      check_rows(parts, trace, shown->followed(), cursor);
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
  for (const double factor : {0.5, 1.0, 1.25}) {
    Shown shown(shape(32, 4, 1, "one-hot", 8, factor));
    const auto& trace = shown.trace();
    REQUIRE(trace.dropped() > 0);
    const auto parts = shown.picture(after(Step::permute), kLarge);
    const ui::MapEntry& line = parts.at("capacity");
    CHECK(line.value == std::to_string(trace.capacity));
    for (const auto& [id, part] : parts) {
      CAPTURE(id, factor);
      if (id.rfind("slot_", 0) == 0 && part.value.rfind("token", 0) == 0) {
        CHECK(part.min.y >= line.min.y);
      }
      if (id.rfind("dropped_", 0) == 0) CHECK(part.max.y <= line.min.y + 3);
    }
    CHECK(parts.at("busiest").label == "E0");
    CHECK(parts.at("busiest").value == std::to_string(trace.expert[0].kept));
  }
}

TEST_CASE("a clicked token is followed in the grid, in its columns and in words",
          "[moe_routing_scene]") {
  Shown shown(shape(32, 4, 2, "random"));
  const auto& trace = shown.trace();
  const Cursor end = after(Step::combine);
  const auto draw = [&] { return shown.picture(end, kLarge); };
  shown.point_at(draw().at("token_17"));
  draw();
  CHECK(shown->followed() == 17);  // under the pointer
  shown.press(true);
  draw();
  shown.press(false);
  shown.point_away();
  const auto parts = draw();
  CHECK(shown->followed() == 17);
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
  const std::string formula = shown->formula(end, 2);
  char gate[32];
  std::snprintf(gate, sizeof gate, "%.2f·E%d(x)", static_cast<double>(token.gate[0]),
                token.expert[0]);
  CHECK(tests::contains(formula, gate));
  CHECK(parts.at("formula").value == formula);
  // A row under Data lights the same token.
  shown->hover_row("assignments", 2 * 9);
  draw();
  CHECK(shown->followed() == 9);
  CHECK(shown->table_row("assignments", end) == 2 * 9);
  shown->hover_row("assignments", -1);
  draw();
  CHECK(shown->followed() == 17);
}

TEST_CASE("in custom routing a token is dragged to another expert", "[moe_routing_scene]") {
  for (const char* routing : {"custom", "balanced"}) {
    Shown shown(shape(32, 4, 1, routing));
    const auto draw = [&] { return shown.picture(after(Step::permute), kLarge); };
    shown.point_away();
    const auto parts = draw();
    const int from = shown.trace().token[6].expert.front();
    const int to = (from + 1) % 4;
    shown.point_at(parts.at("token_6"));
    draw();
    shown.press(true);
    draw();
    shown.point_at(parts.at(name("expert", to)));
    CHECK(draw().count("drop_target") == (routing == std::string("custom") ? 1 : 0));
    shown.press(false);
    draw();
    const auto request = shown->take_request();
    REQUIRE(request.has_value() == (routing == std::string("custom")));
    CHECK_FALSE(shown->take_request());
    if (!request) continue;
    CHECK(std::get<std::string>(request->at("custom")) == "6:" + std::to_string(to));
    // The knob takes it, and the token goes there.
    lab::Settings settings = shape(32, 4, 1, "custom");
    settings["custom"] = request->at("custom");
    shown.load(settings);
    CHECK(shown.trace().token[6].expert.front() == to);
    CHECK(shown->moved(3, 0) == "3:0,6:" + std::to_string(to));
    CHECK(shown->moved(6, from) == "6:" + std::to_string(from));
  }
}

TEST_CASE("with more tokens than cells, columns are bars as long as their counts",
          "[moe_routing_scene]") {
  Shown shown;
  for (const lab::Settings& settings :
       {shape(4096, 8, 2, "skewed", 32, 1), shape(2000, 64, 1, "skewed", 8),
        shape(8192, 256, 1, "random", 128)}) {
    shown.run(settings);
    const auto& trace = shown.trace();
    for (const ImVec2 size : tests::kSweptSizes) {
      const auto parts = shown.picture(after(Step::permute), size);
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
  Shown shown;
  CHECK(shown.answer({2, 0}) == "None: all are wanted equally");
  CHECK(shown.answer({3, 0}) == "32");
  CHECK_FALSE(shown->question({0, 0}));
  CHECK_FALSE(shown->question({5, 0}));
  CHECK_FALSE(shown->question({7, 0}));

  // 40 tokens all want E0, which takes 40 · 1.2 / 4 = 12 of them: two tiles of 8, 28 dropped.
  shown.run(shape(40, 4, 1, "one-hot", 8, 1.2));
  CHECK(shown.answer({2, 0}) == "E0");
  CHECK(shown.answer({3, 0}) == "28");
  CHECK(shown.answer({5, 0}) == "16");
  // Padded to the capacity of 12, each of four experts runs two tiles.
  shown.run(shape(40, 4, 1, "one-hot", 8, 1.2, "padded-to-capacity"));
  CHECK(shown.answer({5, 0}) == "64");
}

TEST_CASE("a number is not shown before its step has made it", "[moe_routing_scene]") {
  Shown shown(shape(20, 4, 1, "balanced"));
  for (int step = 0; step <= moe_routing::kSteps; ++step) {
    const auto parts = shown.readouts({step, 0});
    CAPTURE(step);
    CHECK((parts.at("useful_slots").value == "—") == (step < 4));
    CHECK((parts.at("slots_run").value == "—") == (step < 4));
    CHECK((parts.at("busy_share").value == "—") == (step < 6));
    // Five of eight slots a tile; shown once they are laid out.
    if (step >= 4) CHECK(parts.at("useful_slots").value.starts_with("62"));
    if (step >= 4) CHECK(parts.at("slots_run").value.starts_with("32"));
    // The emulator counts no tensor pipe: the number is one of a recording, or there is none.
    if (lab::recording("moe-routing") == nullptr || step < 6) {
      CHECK(parts.at("tensor_pipe").value == "—");
    }
  }
}

TEST_CASE("the kernel's lines follow the MoE steps", "[moe_routing_scene]") {
  Shown shown;
  CHECK(shown->source({0, 0}).current == 0);
  for (int step = 1; step <= moe_routing::kSteps; ++step) {
    CHECK(shown->source({step, 0}).current ==
          shown.trace().lines[static_cast<std::size_t>(step - 1)]);
  }
  CHECK(shown->source({1, 0}).path == moe_routing::kSourcePath);
}

TEST_CASE("routings that are hard to draw", "[moe_routing_scene]") {
  contract::check_pictures(
      lesson("moe-routing"),
      {shape(1, 2, 1, "balanced", 128), shape(256, 256, 8, "random", 8),
       shape(256, 2, 1, "one-hot", 8, 0.5), shape(256, 8, 8, "one-hot", 8, 0.5),
       shape(256, 16, 1, "skewed", 128), shape(64, 16, 4, "skewed", 8, 1.25, "tile-padded"),
       shape(8192, 256, 1, "skewed", 8, 4, "padded-to-capacity")});
}

TEST_CASE("the measured views of the MoE lesson show the recording", "[moe_routing_scene]") {
  Shown shown;
  for (const ImVec2 size : tests::kSweptSizes) {
    const auto show = [&](const std::string& view) { return shown.measured(view, size); };
    // Three schemes and the library.
    CHECK(show("measured_view_0").at("rate_by_skew").value == "4 curves");
    CHECK(show("measured_view_1").at("rate_8_experts_0").label == "padded-to-capacity");
    CHECK(show("measured_view_2").count("recorded_blocks") == 1);
    show("measured_view_3");
  }
}

TEST_CASE("who is busiest is shown with all who tie; a straggler is waited for",
          "[moe_routing_scene]") {
  const Cursor end = after(Step::combine);
  struct Case {
    lab::Settings settings;
    const char *counted, *combined, *label, *unit;
    bool one;  ///< alone with the most
  };
  for (const Case& each :
       {Case{{},
             "all 4 experts are wanted 8 times each.",
             "all 4 experts have 8 tokens each.",
             "busiest experts",
             "each in all 4 experts",
             false},
        Case{shape(10, 4, 1, "balanced"),
             "E0 and E1 are wanted 3 times each; an even share would be 2.5.",
             "E0 and E1 are busiest, with 3 tokens each.", "busiest experts", "each in E0 and E1",
             false},
        Case{shape(32, 4, 1, "one-hot"), "E0 is wanted 32 times; an even share would be 8.",
             "E0 is busiest, with 32 tokens.", "busiest expert", "in E0", true}}) {
    Shown shown(each.settings);
    CAPTURE(shown->sentence(after(Step::count)), shown->sentence(end));
    CHECK(tests::contains(shown->sentence(after(Step::count)), each.counted));
    CHECK(tests::contains(shown->sentence(end), each.combined));
    const auto readouts = shown.readouts(end);
    CHECK(readouts.at("busiest_expert").label == each.label);
    CHECK(readouts.at("busiest_expert").value.ends_with(each.unit));
    CHECK(shown.picture(end, kLarge).count("busiest") == (each.one ? 1 : 0));
  }
  // A straggler is a block that others wait for, whoever is busiest.
  Shown shown;
  CHECK(shown.picture(end, kLarge).count("stragglers") == 0);
  shown.run(shape(33, 4, 1, "balanced"));  // five tiles for four blocks
  CHECK(shown.picture(end, kLarge).at("stragglers").label == "straggler: block 0");
  shown.run(shape(40, 4, 1, "skewed"));
  CHECK(shown.picture(end, kLarge).at("stragglers").label == "stragglers: 2 of 4 blocks");
}

TEST_CASE("the MoE picture as data has no problems", "[moe_routing_scene]") {
  Shown shown;
  for (const lab::Settings& settings :
       {lab::Settings{}, shape(40, 6, 2, "skewed"),
        shape(24, 4, 2, "random", 8, 0.75, "tile-padded"),
        shape(8192, 256, 1, "skewed", 8, 4, "padded-to-capacity"), shape(1, 2, 2, "balanced", 128),
        shape(256, 8, 8, "one-hot", 8, 0.5), shape(32, 4, 1, "custom")}) {
    shown.run(settings);
    for (int step = 0; step <= moe_routing::kSteps; ++step) {
      CAPTURE(lab::to_json(shown.report().params).dump(), step);
      for (const int token : {0, 5, 1000}) {
        const scenes::View view{{step, 0}, {{picture::Name("token"), token}}};
        const auto picture = shown->picture(shown->extent(), view);
        CHECK(picture::problems(picture) == std::vector<std::string>());
      }
    }
  }
}
