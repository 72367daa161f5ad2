#include "scenes/experts/moe_routing/scene.hpp"

#include "kernels/base/lab/recording.hpp"
#include "scenes/picture/placed.hpp"
#include "tests/lesson_contract/pictures.hpp"
#include "tests/scenes/marks.hpp"

using namespace tilestep;
using moe_routing::Step;
using scenes::Cursor;
using tests::mark_of;
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

void check_tokens(const picture::Picture& picture, const moe_routing::Trace& trace, Cursor cursor) {
  const auto* choices = mark_of<picture::Cells>(picture, "choice");
  // The schemes have their room.
  if (cursor.tile == 6) {
    CHECK(choices == nullptr);
    return;
  }
  CHECK(mark_of<picture::Cells>(picture, "token")->items.count == std::ssize(trace.token));
  REQUIRE((choices != nullptr) == (cursor.tile >= 2));
  if (choices == nullptr) return;
  std::size_t k = 0;
  for (std::size_t t = 0; t < trace.token.size(); ++t) {
    for (std::size_t c = 0; c < trace.token[t].expert.size(); ++c, ++k) {
      const bool dropped = cursor.tile >= 4 && trace.token[t].slot[c] < 0;
      CHECK(choices->items.about[0].second[k] == static_cast<int>(t));
      CHECK(choices->items.about[1].second[k] == trace.token[t].expert[c]);
      CHECK((choices->items.state[k] == picture::State::wrong) == dropped);
    }
    const std::size_t best = k - trace.token[t].expert.size();
    CHECK(choices->items.names[best] == std::to_string(trace.token[t].expert.front()));
  }
  CHECK(static_cast<int>(k) == choices->items.count);
}

/// Every slot of every pile, found from the tokens' own slots; what is left over is padding.
void check_columns(const picture::Picture& picture, const moe_routing::Trace& trace,
                   Cursor cursor) {
  const auto* piles = mark_of<picture::Stacks>(picture, "expert");
  REQUIRE(piles != nullptr);
  CHECK((piles->held.name == picture::Name("slot")) == (cursor.tile >= 5));
  std::vector<int> first(trace.expert.size() + 1, 0);
  for (std::size_t e = 0; e < trace.expert.size(); ++e) {
    const moe_routing::ExpertTrace& expert = trace.expert[e];
    CHECK(piles->kept[e] == expert.kept);
    CHECK(piles->dropped[e] == expert.dropped());
    CHECK(piles->tiles[e] * piles->tile - piles->kept[e] == expert.padded);
    first[e + 1] = first[e] + expert.wanted;
  }
  CHECK(piles->held.count == first.back());
  std::vector<int> lost(trace.expert.size(), 0);
  for (std::size_t t = 0; t < trace.token.size(); ++t) {
    const moe_routing::TokenTrace& token = trace.token[t];
    for (std::size_t c = 0; c < token.expert.size(); ++c) {
      const auto e = static_cast<std::size_t>(token.expert[c]);
      const bool dropped = token.slot[c] < 0;
      const int place =
          dropped ? trace.expert[e].kept + lost[e]++ : token.slot[c] - trace.expert[e].first_slot;
      const auto k = static_cast<std::size_t>(first[e] + place);
      CHECK(piles->held.ids[k] == static_cast<int>(t) * trace.top_k + static_cast<int>(c));
      CHECK((piles->held.state[k] == picture::State::wrong) == dropped);
      const bool moved = cursor.tile >= 5 && !dropped;
      CHECK(piles->held.names[k] == (moved ? std::to_string(t) : ""));
      const picture::Key from = moved ? picture::Key{"choice", int(t), int(c)} : picture::Key{};
      CHECK(piles->held.ways[k].from == from);
    }
  }
  CHECK((piles->limit.key.name == picture::Name("capacity")) == (trace.capacity >= 0));
  if (trace.capacity >= 0) CHECK(piles->limit.at == trace.capacity);
}

void check_rows(const picture::Picture& picture, const moe_routing::Trace& trace, int followed,
                Cursor cursor) {
  const moe_routing::TokenTrace& token = trace.token[static_cast<std::size_t>(followed)];
  const auto written = [&](const char* row, int e) {
    return picture::written(mark_of<picture::Cells>(picture, row)->items, e);
  };
  for (int e = 0; e < trace.experts; ++e) {
    const moe_routing::ExpertTrace& expert = trace.expert[static_cast<std::size_t>(e)];
    const auto expected = [&](Step step, const std::string& value) {
      return cursor.tile > static_cast<int>(step) ? value : std::string();
    };
    std::string gate = "–";
    for (std::size_t c = 0; c < token.expert.size(); ++c) {
      if (token.expert[c] != e) continue;
      char text[16];
      std::snprintf(text, sizeof text, "%.2f", static_cast<double>(token.gate[c]));
      gate = text;
    }
    if (cursor.tile > 3) CHECK(written("first", e) == std::to_string(expert.first_slot));
    if (cursor.tile > 0 && cursor.tile < 4)
      CHECK(written("gate", e) == expected(Step::top_k, gate));
    const auto k = static_cast<std::size_t>(e);
    if (cursor.tile == 2) {
      const picture::Items& contest = mark_of<picture::Bars>(picture, "contest")->items;
      CHECK((contest.state[k] == picture::State::plain) == (gate != "–"));
      CHECK(contest.value[k] == token.logits[k]);
    }
    if (cursor.tile == 3) {
      const picture::Items& demand = mark_of<picture::Bars>(picture, "demand")->items;
      CHECK(demand.value[k] == static_cast<float>(expert.wanted));
    }
  }
}

/// Each scheme's tiles as they queue, as high as they are full; the rest of them hatched.
void check_schemes(const picture::Picture& picture, const moe_routing::Trace& trace,
                   Cursor cursor) {
  const std::string_view names[] = {"padded_tile", "grouped_tile", "packed_tile"};
  for (const moe_routing::SchemeTrace& scheme : trace.schemes) {
    const auto* spans =
        mark_of<picture::Spans>(picture, names[static_cast<std::size_t>(scheme.scheme)]);
    REQUIRE((spans != nullptr) == (cursor.tile == 6));
    if (spans == nullptr) continue;
    const auto queue = queued(scheme);
    std::size_t seen = 0;
    for (int k = 0; k < spans->items.count; ++k) {
      const auto item = static_cast<std::size_t>(k);
      const int id = spans->items.ids[item], count = static_cast<int>(scheme.tiles());
      if (id >= 2 * count) continue;  // idle
      const auto tile = std::find_if(queue.begin(), queue.end(),
                                     [&](const auto& each) { return each.tile == id % count; });
      REQUIRE(tile != queue.end());
      CHECK(spans->begin[item] == tile->begin);
      CHECK(spans->end[item] == tile->end);
      CHECK(spans->lane[item] / 8 == tile->processor);
      const int kept = scheme.kept[static_cast<std::size_t>(id % count)];
      const int high = id < count ? std::clamp(kept * 8 / trace.tile, 1, 8)
                                  : 8 - (kept == 0 ? 0 : std::clamp(kept * 8 / trace.tile, 1, 8));
      CHECK(spans->items.glyph[item] == high);
      CHECK((spans->items.state[item] == picture::State::wasted) == (id >= count));
      seen += id < count ? 1 : 0;
    }
    CHECK(seen == scheme.tiles() - static_cast<std::size_t>(
                                       std::count(scheme.kept.begin(), scheme.kept.end(), 0)));
  }
}

/// A token that no expert takes is hollow; a line leads past the layer from the one that is followed.
void check_outputs(const picture::Picture& picture, const moe_routing::Trace& trace, int followed,
                   Cursor cursor) {
  const auto* outputs = mark_of<picture::Cells>(picture, "out");
  REQUIRE((outputs != nullptr) == (cursor.tile == 7));
  if (outputs == nullptr) return;
  std::vector<int> lost;
  for (std::size_t t = 0; t < trace.token.size(); ++t) {
    const auto& slots = trace.token[t].slot;
    const bool dropped = *std::max_element(slots.begin(), slots.end()) < 0;
    if (dropped && static_cast<int>(t) == followed) lost.push_back(followed);
    CHECK((outputs->items.glyph[t] == picture::kHollow) == dropped);
  }
  CHECK(mark_of<picture::Links>(picture, "residual")->items.ids == lost);
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
      const scenes::View view = shown.player().view(cursor);
      const auto picture = shown->picture(shown->extent(), view);
      CHECK(picture::plain(picture.headline.full) == shown->sentence(cursor));
      check_tokens(picture, trace, cursor);
      check_rows(picture, trace, shown->followed(view), cursor);
      check_schemes(picture, trace, cursor);
      check_outputs(picture, trace, shown->followed(view), cursor);
      if (step >= 4) check_columns(picture, trace, cursor);
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
    CHECK(tests::contains(line.label, std::to_string(trace.capacity)));
    for (int t = 0; t < trace.tokens; ++t) {
      const ui::MapEntry& part = parts.at(name("slot", t));
      CAPTURE(t, factor);
      if (trace.token[static_cast<std::size_t>(t)].slot.front() >= 0) {
        CHECK(part.min.y >= line.min.y - 1);
      } else {
        CHECK(part.max.y <= line.min.y + 3);
      }
    }
    CHECK(parts.at("busiest").label == "busiest, E0: " + std::to_string(trace.expert[0].kept));
  }
}

TEST_CASE("a clicked token is followed in the grid, in its piles and in words",
          "[moe_routing_scene]") {
  Shown shown(shape(32, 4, 2, "random"));
  const auto& trace = shown.trace();
  const Cursor end = after(Step::combine);
  CHECK(shown->followed(shown.player().view(end)) == 5);
  shown.click("choice_17_0", end, kLarge);
  const scenes::View view = shown.player().view(end);
  REQUIRE(shown->followed(view) == 17);
  const auto picture = shown->picture(shown->extent(), view);
  const picture::Items& held = mark_of<picture::Stacks>(picture, "expert")->held;
  for (std::size_t k = 0; k < held.ids.size(); ++k) {
    CHECK((held.flags[k] == picture::kPicked) == (held.ids[k] / 2 == 17));
  }
  const moe_routing::TokenTrace& token = trace.token[17];
  const auto* ways = mark_of<picture::Links>(picture, "way");
  for (std::size_t c = 0; c < 2; ++c) {
    CHECK(ways->from[c].key == picture::Key{"token", 17});
    CHECK(ways->to[c].key == picture::Key{"slot", 17 * 2 + static_cast<int>(c)});
  }
  char gate[32];
  std::snprintf(gate, sizeof gate, "%.2f·E%d(x)", static_cast<double>(token.gate[0]),
                token.expert[0]);
  CHECK(tests::contains(shown->formula(17, end).front(), gate));
  CHECK(shown->table_row("assignments", shown.player().view(end)) == 2 * 17);
  CHECK(shown->subjects_of_row("assignments", 2 * 9).front() == picture::Subject{"token", 9});
  const int expert = trace.tiles.at(1).expert;
  CHECK(shown->subjects_of_row("tiles", 1).front() == picture::Subject{"expert", expert});
}

TEST_CASE("in any routing a token is dragged to another expert", "[moe_routing_scene]") {
  for (const char* routing : {"custom", "balanced"}) {
    Shown shown(shape(32, 4, 1, routing));
    const auto draw = [&] { return shown.picture(after(Step::permute), kLarge); };
    shown.point_away();
    const auto parts = draw();
    const int from = shown.trace().token[6].expert.front();
    const int to = (from + 1) % 4;
    shown.point_at(parts.at("choice_6_0"));
    draw();
    shown.press(true);
    draw();
    shown.point_at(parts.at(name("name", to)));
    draw();
    shown.press(false);
    draw();
    const auto request = shown.player().take_request();
    REQUIRE(request);
    CHECK_FALSE(shown.player().take_request());
    CHECK(std::get<std::string>(request->at("routing")) == "custom");
    CHECK(std::get<std::string>(request->at("custom")) == "6:" + std::to_string(to));
    // The knob takes it, and the token goes there.
    lab::Settings settings = shape(32, 4, 1, "custom");
    settings["custom"] = request->at("custom");
    shown.load(settings);
    CHECK(shown.trace().token[6].expert.front() == to);
    CHECK(shown->moved(3, 0) == "3:0,6:" + std::to_string(to));
    CHECK(shown->moved(6, from) == "6:" + std::to_string(from));
    CHECK_FALSE(shown->dropped(shown.player().view({}), {"token", 6}, {"expert", to}));
    CHECK(shown->dropped(shown.player().view({}), {"token", 6}, {"expert", from}));
  }
}

TEST_CASE("a token dragged in a skewed routing leaves the others where they are",
          "[moe_routing_scene]") {
  for (const char* routing : {"skewed", "random", "one-hot"}) {
    CAPTURE(routing);
    Shown shown(shape(32, 4, 1, routing));
    const auto before = shown.trace().token;
    const int to = (before[9].expert.front() + 1) % 4;
    const auto asked = shown->dropped(shown.player().view({}), {"token", 9}, {"expert", to});
    REQUIRE(asked);
    lab::Settings settings = shape(32, 4, 1, "custom");
    for (const auto& [id, value] : *asked) settings[id] = value;
    shown.load(settings);
    for (std::size_t t = 0; t < before.size(); ++t) {
      CAPTURE(t);
      CHECK(shown.trace().token[t].expert.front() == (t == 9 ? to : before[t].expert.front()));
    }
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
        const std::string said =
            shown->explain(shown.player().view(after(Step::permute)), {"expert", e});
        CHECK(tests::contains(said, "kept " + std::to_string(expert.kept) + ", padded " +
                                        std::to_string(expert.padded) + ", dropped " +
                                        std::to_string(expert.dropped())));
        if (trace.dropped() == 0) {
          CHECK(tall(e) == Approx(tall(0) * expected(e) / expected(0)).margin(2.5));
        }
        // Side by side, in order.
        CHECK(parts.at(name("expert", e)).min.x >= parts.at(name("expert", e - 1)).max.x - 1);
      }
    }
  }
}

TEST_CASE("the MoE questions are answered by the trace", "[moe_routing_scene]") {
  Shown shown;
  CHECK(shown.answer({1, 0}) == "1.00");  // the gate of one alone
  const auto wanted = shown->question({{2, 0}});
  REQUIRE(wanted);
  CHECK(wanted->id == "wanted");
  CHECK(wanted->values == std::vector<double>{2});
  CHECK(shown.answer({3, 0}) == "56");
  CHECK(shown.answer({5, 0}) == "2.0×");  // four rounds against two
  for (const int step : {0, 4, 6, 7}) CHECK_FALSE(shown->question({{step, 0}}));

  // 40 tokens all want E0, which takes 40 · 1.2 / 4 = 12 of them: two tiles of 8, 28 dropped.
  shown.run(shape(40, 4, 1, "one-hot", 8, 1.2));
  CHECK(shown.answer({2, 0}) == "E0");
  CHECK(shown->question({{2, 0}})->because == "E0 is wanted 40 times, E3 never.");
  CHECK(shown.answer({3, 0}) == "28");
  CHECK(shown.answer({5, 0}) == "2.0×");  // eight tiles in two rounds against two in one
}

TEST_CASE("events of a routing", "[moe_routing_scene]") {
  Shown shown(shape(40, 4, 1, "one-hot", 8, 1.2));
  std::vector<std::string> said;
  for (const auto& each : shown->events()) said.push_back(each.text);
  CHECK(said == std::vector<std::string>{"E0 is wanted most: 40", "1 of 4 experts is full",
                                         "28 choices are dropped",
                                         "padded to capacity 2 mma, packed 1"});
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
    CHECK(show("measured_view_2").at("rate_by_tokens").value == "2 curves");
    const auto blocks = show("measured_view_3");
    CHECK(blocks.count("recorded_blocks") == 1);
    CHECK(blocks.at("recorded_tile_0").label == "E0");
    show("measured_view_4");
  }
}

TEST_CASE("who is busiest is shown with all who tie", "[moe_routing_scene]") {
  const Cursor end = after(Step::combine);
  struct Case {
    lab::Settings settings;
    const char *counted, *combined, *label, *unit;
    bool one;  ///< alone with the most
  };
  for (const Case& each :
       {Case{shape(32, 4, 1, "balanced"), "all 4 experts are wanted 8 times each.",
             "all 4 experts have 8 tokens each.", "busiest experts", "each in all 4 experts",
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
}
