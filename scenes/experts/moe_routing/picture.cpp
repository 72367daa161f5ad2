// The picture of the MoE lesson: the tokens, before and after the layer; the experts' piles over the router's and the
// counting kernels' output for each; the tiles of all schemes on the same multiprocessors.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "scenes/experts/moe_routing/scene.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using moe_routing::ExpertTrace, moe_routing::kProcessors, moe_routing::SchemeTrace,
    moe_routing::Step, moe_routing::TileTrace, moe_routing::TokenTrace;
using words::counted, words::number;

namespace {

constexpr float kLeft = 4.5f;  ///< margin for the rows' names, in heights of a line
/// Items of an expert: a token can be dropped on them.
constexpr std::initializer_list<Name> kOfExpert = {"expert", "contest", "demand",
                                                   "name",   "gate",    "first"};
constexpr int kParts = 8;  ///< of a tile's height: its slots, as eight parts
constexpr Name kTiles[] = {"padded_tile", "grouped_tile", "packed_tile"},
               kEnds[] = {"padded_end", "grouped_end", "packed_end"};
static_assert(std::size(kTiles) == moe_routing::kSchemes);

Lines sentences(Name name, const std::vector<std::string>& rows) {
  std::vector<Text> texts;
  for (const std::string& row : rows) texts.push_back(text(row));
  return lines(name, std::move(texts));
}

}  // namespace

/// Items about the experts, one each, in their tones.
Items MoeRoutingScene::of_experts(Name name, std::vector<float> values, Format format) const {
  Items made = items(name, experts());
  made.value.each = std::move(values);
  made.format = format;
  for (int e = 0; e < experts(); ++e) made.tone.each.push_back(tone_of(e));
  made.about = {{"expert", {0, numbers(experts())}}};
  return made;
}

/// The experts. In the kernel a thread knows only its token's expert: the followed token's.
std::vector<Symbol> MoeRoutingScene::symbols(const View& view) const {
  std::vector<Symbol> all;
  for (int e = 0; e < experts(); ++e) {
    all.push_back({fmt::format("E{}", e),
                   {"expert", e},
                   tone_of(e),
                   fmt::format("Expert {} of {}: its own weights, which multiply only the tokens "
                               "that the router sends it.",
                               e, experts())});
  }
  if (shown_tokens() > 0 && done(Step::top_k, view.cursor)) {
    all[static_cast<std::size_t>(token(followed(view)).expert.front())].code = {"best", "mine"};
  }
  return all;
}

std::vector<float> MoeRoutingScene::counts(int ExpertTrace::*count) const {
  std::vector<float> all;
  for (const ExpertTrace& each : trace_.expert) all.push_back(static_cast<float>(each.*count));
  return all;
}

Extent MoeRoutingScene::extent() const {
  float low = 0, high = 1;
  int most = 1;
  for (const TokenTrace& each : trace_.token) {
    for (const float logit : each.logits) {
      low = std::min(low, logit);
      high = std::max(high, logit);
    }
  }
  for (const ExpertTrace& each : trace_.expert) most = std::max(most, each.wanted);
  // A few rounds: the same length for every routing of the lesson's path.
  int end = kProcessors;
  for (const SchemeTrace& each : schemes_) end = std::max(end, end_of(each));
  const auto logits = rounded(low, high);
  const bool many = experts() > 32;
  const int columns = grid_columns();
  return {{{.name = "experts",
            .kind = Axis::band,
            .count = experts(),
            .title = text(many ? "expert" : ""),
            .ticks = many,
            .least_slot = 1},
           {.name = "token_column", .kind = Axis::band, .count = columns, .least_slot = 1},
           {.name = "token_row",
            .kind = Axis::band,
            .count = (shown_tokens() + columns - 1) / columns,
            .least_slot = 1},
           {.name = "logit", .low = logits.first, .high = logits.second},
           {.name = "wanted", .high = rounded(0, most).second},
           {.name = "time",
            .high = rounded(0, end).second,
            .step = end <= 8 ? 1.0 : 0.0,
            .title = text("mma instructions", "mma"),
            .ticks = true},
           {.name = "part",
            .kind = Axis::band,
            .count = kProcessors * kParts,
            .group = kParts,
            .names = std::vector<std::string>(kProcessors * kParts),
            .least_slot = 0.5f},
           {.name = "processor",
            .kind = Axis::band,
            .count = kProcessors,
            .names = {"SM 0", "SM 1", "SM 2", "SM 3"},
            .least_slot = 3}}};
}

int MoeRoutingScene::followed(const View& view) const {
  return std::clamp(view.pick("token", 5), 0, shown_tokens() - 1);
}

/// The router's choices beside the experts; while these multiply, the schemes; then the output.
Picture MoeRoutingScene::picture(const Extent& extent, const View& view) const {
  const Cursor cursor = view.cursor;
  const int token = followed(view);
  const bool multiplies = now(Step::multiply, cursor), combined = done(Step::combine, cursor);
  const auto experts = [&](int place, Layout layout) {
    Box above = columns(cursor, token);
    if (place > 0) above.key.i = place;
    return column({"experts", place},
                  {std::move(above), column({"values", place}, rows(cursor, token, place),
                                            {.close = true, .weight = 0})},
                  layout);
  };
  std::vector<Box> parts;
  if (cursor.tile <= 0) {
    std::vector<Box> names = rows(cursor, token, 3);
    names.resize(1);
    parts = {column({"start"}, {tokens(cursor, token, {"waiting"}), std::move(names.front())})};
  } else if (multiplies) {
    parts = {experts(1, {.weight = 0.5f, .least_width = 8}), schemes()};
  } else {
    std::vector<Box> left;
    if (combined) {
      left = {tokens(cursor, token, {"in"}), outputs(cursor, token)};
    } else {
      left = {tokens(cursor, token, {"tokens"}), details(cursor, token)};
    }
    parts = {column({"left", combined ? 1 : 0}, std::move(left),
                    {.weight = combined ? 3 : 0.5f, .least_width = 6}),
             experts(combined ? 2 : 0, {.least_width = 8})};
  }
  return {{marked(sentence(cursor), symbols(view))},
          extent.axes,
          row({"moe"}, std::move(parts)),
          multiplies ? std::vector<std::string>{"schemes"} : std::vector<std::string>()};
}

// ---- the tokens ----------------------------------------------------------------------------------

/// A cell each; once they have chosen, a part per choice, in the experts' tones.
Box MoeRoutingScene::tokens(Cursor cursor, int followed, Key key) const {
  const int count = shown_tokens();
  const bool chosen = done(Step::top_k, cursor), placed = done(Step::offset, cursor);
  Cells cells{items("token", count)};
  on_grid(cells);
  cells.items.about = {{"token", {0, numbers(count)}}};
  cells.items.act = all_shown() ? Act{Act::set, "token"} : Act{Act::pick, "token"};
  Cells choices = cells;
  if (!chosen) {
    for (int t = 0; t < count; ++t) cells.items.value.each.push_back(static_cast<float>(t));
    cells.items.format = {Format::integer};
  }
  choices.parts = choices.items.per_row = trace_.top_k;
  choices.items.name = "choice";
  choices.items.count = count * trace_.top_k;
  std::vector<int> tokens, experts;
  for (int t = 0; t < count && chosen; ++t) {
    const TokenTrace& each = token(t);
    for (int c = 0; c < trace_.top_k; ++c) {
      const bool dropped = placed && each.slot[c] < 0;
      choices.items.names.push_back(c == 0 ? std::to_string(each.expert[c]) : "");
      choices.items.tone.each.push_back(tone_of(each.expert[c]));
      choices.items.state.each.push_back(dropped ? State::wrong : State::plain);
      tokens.push_back(t);
      experts.push_back(each.expert[c]);
    }
  }
  choices.items.about = {{"token", {0, tokens}}, {"expert", {0, experts}}};
  const std::string all = counted(trace_.tokens, "token");
  const std::string first = all_shown() ? all : fmt::format("the first {} of {}", count, all);
  Box made =
      box(key, {cells}, text(first + (chosen ? ": the best expert's number" : ": waiting"), first),
          {.weight = 3, .least_height = 4, .place = Place::device_memory});
  if (chosen) made.marks.emplace_back(choices);
  made.marks.emplace_back(Frame{{"followed"}, {{"token", followed}}});
  return made;
}

/// On axes that fill a box.
void MoeRoutingScene::on_grid(Cells& cells) const {
  cells.columns = grid_columns();
  cells.x = "token_column";
  cells.y = "token_row";
}

/// After the layer: a dropped token has only its residual, carried past the layer.
Box MoeRoutingScene::outputs(Cursor cursor, int followed) const {
  const int count = shown_tokens();
  Cells cells{items("out", count)};
  on_grid(cells);
  cells.items.act = {Act::pick, "token"};
  Links past{items("residual", 0)};
  std::vector<int> experts;
  int passing = 0;
  for (int t = 0; t < count; ++t) {
    const TokenTrace& each = token(t);
    const auto kept =
        std::find_if(each.slot.begin(), each.slot.end(), [](int s) { return s >= 0; });
    const bool lost = kept == each.slot.end();
    cells.items.names.push_back(lost ? "x" : std::to_string(t));
    cells.items.tone.each.push_back(lost ? 0 : tone_of(each.expert[kept - each.slot.begin()]));
    cells.items.glyph.each.push_back(lost ? kHollow : kSolid);
    experts.push_back(lost ? -1 : each.expert[kept - each.slot.begin()]);
    if (!lost) continue;
    ++passing;
    if (t != followed) continue;  // all lines would run through each other's cells
    ++past.items.count;
    past.items.ids.push_back(t);
    past.from.push_back({{"token", t}, 0, 0.16f});
    past.to.push_back({{"out", t}, 0, 0.16f});
  }
  cells.items.about = {{"token", {0, numbers(count)}}, {"expert", {0, experts}}};
  past.items.about = {{"token", {0, past.items.ids}}};
  const std::string of_one =
      fmt::format("token {}: {}", followed, formula(followed, cursor).back());
  Box made =
      box({"out"}, {cells, past},
          passing > 0 ? text(fmt::format("x alone, by the residual: {}", counted(passing, "token")),
                             "by the residual")
                      : text(of_one, "after the layer"),
          {.weight = 3, .least_height = 4, .place = Place::device_memory});
  made.marks.emplace_back(Frame{{"followed_out"}, {{"out", followed}}});
  return made;
}

Box MoeRoutingScene::details(Cursor cursor, int followed) const {
  return box({"details"}, {sentences("formula", formula(followed, cursor))},
             text(fmt::format("Token {}", followed)), {.rank = 2, .least_height = 2.4f});
}

// ---- the experts ---------------------------------------------------------------------------------

/// First the logits of the followed token, then the demand for each expert, then the contents of its slots.
Box MoeRoutingScene::columns(Cursor cursor, int followed) const {
  Box made = box({"columns"}, {}, {},
                 {.weight = 2.4f, .least_width = 8, .least_height = 4.5f, .left = kLeft});
  const TokenTrace& each = token(followed);
  const bool chosen = done(Step::top_k, cursor);
  // Bars have their values above them; an empty item keeps the same room.
  Bars bars{items("bar", {}, {Format::integer}), "experts", "wanted"};
  if (done(Step::offset, cursor)) {
    made.place = Place::device_memory;
    made.marks = {piles(cursor, followed)};
    const std::vector<int> busiest = trace_.with_most(&ExpertTrace::kept);
    if (busiest.size() == 1) {
      const int e = busiest.front();
      made.marks.emplace_back(
          Note{{"busiest"},
               {{"expert", e}},
               text(fmt::format("busiest, E{}: {}", e, expert(e).kept), "busiest")});
    }
  } else if (done(Step::count, cursor)) {
    bars.items = of_experts("demand", counts(&ExpertTrace::wanted), {Format::integer});
  } else if (done(Step::score, cursor) && each.logits.empty()) {
    made.marks = {sentences(
        "no_logits", {fmt::format("{} logits per token; the trace keeps them for up to {} experts",
                                  experts(), moe_routing::kMostLogits)})};
  } else if (done(Step::score, cursor)) {
    bars = {of_experts("contest", each.logits, {Format::fixed, 1}), "experts", "logit"};
    for (int e = 0; e < experts(); ++e) {
      const bool wins = !chosen || std::count(each.expert.begin(), each.expert.end(), e) > 0;
      bars.items.state.each.push_back(wins ? State::plain : State::to_come);
    }
  }
  // A guess at the demand is drawn on an axis that is not drawn yet.
  if (bars.y != Name("wanted"))
    made.marks.emplace_back(Bars{items("demand", 0), "experts", "wanted"});
  made.marks.emplace_back(std::move(bars));
  if (chosen && !now(Step::multiply, cursor)) made.marks.emplace_back(ways(cursor, followed));
  return made;
}

/// The followed token's way from the grid to its experts.
Links MoeRoutingScene::ways(Cursor cursor, int followed) const {
  const TokenTrace& each = token(followed);
  Links ways{items("way", trace_.top_k)};
  ways.items.about = {{"expert", {0, each.expert}}};
  for (int c = 0; c < trace_.top_k; ++c) {
    const int e = each.expert[c];
    const bool placed = done(Step::offset, cursor);
    const bool moved = all_shown() && done(Step::permute, cursor);
    const Key to = moved                       ? Key{"slot", followed * trace_.top_k + c}
                   : placed                    ? Key{"expert", e}
                   : done(Step::count, cursor) ? Key{"demand", e}
                   : each.logits.empty()       ? Key{"name", e}
                                               : Key{"contest", e};
    ways.from.push_back({{"token", followed}});
    ways.to.push_back({to});
    ways.items.tone.each.push_back(tone_of(e));
    ways.items.state.each.push_back(placed && each.slot[c] < 0 ? State::wrong : State::plain);
  }
  return ways;
}

/// The slots, free until the tokens travel into them; above the capacity the dropped ones.
Stacks MoeRoutingScene::piles(Cursor cursor, int followed) const {
  const bool moved = done(Step::permute, cursor);
  Stacks piles{of_experts("expert", counts(&ExpertTrace::kept), {Format::integer})};
  piles.items.state.all = now(Step::multiply, cursor) ? State::current
                          : moved                     ? State::plain
                                                      : State::to_come;
  piles.tile = std::max(1, trace_.tile);
  piles.x = "experts";
  for (const ExpertTrace& each : trace_.expert) {
    piles.kept.push_back(each.kept);
    piles.tiles.push_back(each.tiles);
    piles.dropped.push_back(each.dropped());
  }
  if (trace_.capacity >= 0) {
    const std::string capacity = std::to_string(trace_.capacity);
    piles.limit = {.key = {"capacity"},
                   .at = double(trace_.capacity),
                   .label = text("capacity " + capacity, capacity)};
  }
  if (!all_shown()) return piles;
  Items& held = piles.held = items(moved ? Name("slot") : Name("free"), 0);
  std::vector<int> tokens, experts;
  const auto add = [&](const Assignment& here, int e, bool dropped) {
    ++held.count;
    held.ids.push_back(here.token * trace_.top_k + here.choice);
    held.names.push_back(moved && !dropped ? std::to_string(here.token) : "");
    held.tone.each.push_back(tone_of(e));
    held.state.each.push_back(dropped ? State::wrong : moved ? State::plain : State::to_come);
    held.flags.each.push_back(here.token == followed && (moved || dropped) ? kPicked : kNone);
    held.ways.push_back(moved && !dropped ? Way{{"choice", here.token, here.choice}, {}, 0, true}
                                          : Way{});
    tokens.push_back(here.token);
    experts.push_back(e);
  };
  for (int e = 0; e < this->experts(); ++e) {
    for (const Assignment& here : kept_[e]) add(here, e, false);
    for (const Assignment& here : dropped_[e]) add(here, e, true);
  }
  held.about = {{"token", {0, tokens}}, {"expert", {0, experts}}};
  held.act = {Act::pick, "token"};
  return piles;
}

// ---- the kernels' output for each expert ---------------------------------------------------------

/// Two rows: the experts' names, and the followed token's gates or each expert's first slot.
std::vector<Box> MoeRoutingScene::rows(Cursor cursor, int followed, int place) const {
  const TokenTrace& each = token(followed);
  const auto row = [&](Key key, const char* label, Items items, Step step) {
    if (!done(step, cursor)) {
      std::vector<std::string> names = std::move(items.names);
      items = of_experts(items.name);
      items.state.all = State::to_come;
      items.tone = {};
      if (step == Step::score) items.names = std::move(names);
    }
    if (place > 0) key.i = place;
    Cells cells{std::move(items)};
    cells.x = "experts";
    return box(key, {cells}, text(label), {.weight = 0, .least_height = 1.05f, .left = kLeft});
  };
  Items names = of_experts("name"), gate = of_experts("gate"),
        first = of_experts("first", counts(&ExpertTrace::first_slot), {Format::integer});
  for (int e = 0; e < experts(); ++e) names.names.push_back(fmt::format("E{}", e));
  first.tone = {};
  gate.names.assign(experts(), "–");
  gate.state.each.assign(experts(), State::to_come);
  gate.tone.each.assign(experts(), 0);
  for (int c = 0; c < trace_.top_k && done(Step::top_k, cursor); ++c) {
    const int e = each.expert[c];
    gate.names[e] = number(each.gate[c], 2);
    gate.state.each[e] = gate_is_off(each, c) ? State::wrong : State::plain;
    gate.tone.each[e] = tone_of(e);
  }
  return {row({"names"}, "expert", std::move(names), Step::score),
          done(Step::offset, cursor) ? row({"firsts"}, "first slot", std::move(first), Step::offset)
                                     : row({"gates"}, "gate", std::move(gate), Step::top_k)};
}

// ---- the schemes ---------------------------------------------------------------------------------

/// When the last of a scheme's tiles has ended.
int MoeRoutingScene::end_of(const SchemeTrace& scheme) {
  int end = 0;
  for (const moe_routing::QueuedTile& each : queued(scheme)) end = std::max(end, each.end);
  return end;
}

Box MoeRoutingScene::schemes() const {
  std::vector<Box> boxes;
  for (const SchemeTrace& each : schemes_) boxes.push_back(scheme(each));
  return column({"schemes"}, std::move(boxes), {.even = true, .least_width = 12});
}

/// A scheme's tiles on the multiprocessors, as high as their slots and as long as their time: slots with a token in
/// its expert's tone, the rest hatched; then idle time.
Box MoeRoutingScene::scheme(const SchemeTrace& of) const {
  const auto which = static_cast<std::size_t>(of.scheme);
  const int last = end_of(of);
  SpanList names("lane_names", "time", "processor"), list(kTiles[which], "time", "part", "expert");
  const auto add = [&](int id, int lane, int high, int begin, int end, State state,
                       std::string name, int e) {
    list.add({lane, double(begin), double(end), state, tone_of(e), std::move(name), e, id,
              static_cast<std::uint8_t>(high)});
  };
  std::array<int, kProcessors> ends{};
  int slots = 0, kept = 0;
  const int count = static_cast<int>(of.tiles());
  for (const moe_routing::QueuedTile& each : queued(of)) {
    const auto i = static_cast<std::size_t>(each.tile);
    const int e = of.expert[i], lane = each.processor * kParts;
    const int real = of.kept[i] == 0 ? 0 : std::clamp(of.kept[i] * kParts / trace_.tile, 1, kParts);
    const std::string name = fmt::format("E{}", e);
    const bool high = 2 * real >= kParts;
    if (real > 0)
      add(each.tile, lane, real, each.begin, each.end, State::plain, high ? name : "", e);
    if (real < kParts) {
      add(count + each.tile, lane + real, kParts - real, each.begin, each.end, State::wasted,
          high ? "" : name, e);
    }
    ends[static_cast<std::size_t>(each.processor)] = each.end;
    slots += trace_.tile;
    kept += of.kept[i];
  }
  for (int p = 0; p < kProcessors; ++p) {
    const int end = ends[static_cast<std::size_t>(p)];
    if (end < last) add(2 * count + p, p * kParts, kParts, end, last, State::to_come, "idle", -1);
  }
  const Curve end = lane_end({kEnds[which], 0}, "time", "processor", last,
                             text(fmt::format("{} mma", last)), 0, {}, false);
  std::string label =
      fmt::format("{}: {} slots, {} empty", name_of(of.scheme), slots, slots - kept);
  if (of.scheme == trace_.scheme && schemes_.size() > 1) label += " (this run)";
  return labelled({"scheme", static_cast<int>(which)},
                  box({"lanes", static_cast<int>(which)}, {names.made(last), list.made(last), end},
                      {}, {.least_height = 2.4f, .left = 2.6f, .right = 4}),
                  text(label, std::string(name_of(of.scheme))), {});
}

// ---- explanations -------------------------------------------------------------------------------

std::string MoeRoutingScene::explain_token(Cursor cursor, int number_of) const {
  const TokenTrace& each = token(number_of);
  std::string text = fmt::format("token {}", number_of);
  for (int c = 0; c < trace_.top_k && done(Step::top_k, cursor); ++c) {
    text += fmt::format("\nE{}, gate {:.3f}", each.expert[c], each.gate[c]);
    if (!done(Step::offset, cursor)) continue;
    text += each.slot[c] < 0 ? ", dropped" : fmt::format(", slot {}", each.slot[c]);
  }
  return text + "\nclick to follow it" + (all_shown() ? ", drag it to another expert" : "");
}

std::string MoeRoutingScene::explain_expert(Cursor cursor, int number_of) const {
  const ExpertTrace& each = expert(number_of);
  std::string text = fmt::format("E{}", number_of);
  if (done(Step::count, cursor)) text += "\nwanted " + words::times(each.wanted);
  if (!done(Step::offset, cursor)) return text;
  text += fmt::format("\nkept {}, padded {}, dropped {}\n{}", each.kept, each.padded,
                      each.dropped(), counted(each.tiles, "tile"));
  constexpr int kMostLines = 12;
  for (int n = 0; n < std::min(each.tiles, kMostLines) && done(Step::multiply, cursor); ++n) {
    const TileTrace* ran = tile(number_of, n);
    if (ran != nullptr) {
      text += fmt::format("\ntile {}: {} of {} slots real, block {}", n, ran->kept, trace_.tile,
                          ran->block);
    }
  }
  return text;
}

std::string MoeRoutingScene::explain(const View& view, const Key& key) const {
  if (key.is({"token", "choice"}) && key.i < shown_tokens()) {
    return explain_token(view.cursor, key.i);
  }
  if (key.is({"slot", "free"})) return explain_token(view.cursor, key.i / trace_.top_k);
  if (key.is(kOfExpert) && key.i >= 0 && key.i < experts()) {
    return explain_expert(view.cursor, key.i);
  }
  for (const SchemeTrace& of : schemes_) {
    const auto which = static_cast<std::size_t>(of.scheme);
    const int count = static_cast<int>(of.tiles());
    if (key.name != kTiles[which] || key.i < 0 || key.i >= 2 * count) continue;
    const auto i = static_cast<std::size_t>(key.i % count);
    return fmt::format("E{}, {} of {} slots real\nblock {} of {}, {} mma", of.expert[i], of.kept[i],
                       trace_.tile, of.block[i], of.blocks, of.mma[i]);
  }
  return {};
}

/// A token is dropped on another expert, or on any item of it. All other tokens keep their experts.
std::optional<lab::Settings> MoeRoutingScene::dropped(const View&, const Key& item,
                                                      const Key& onto) const {
  const int to = onto.is({"slot", "free"})
                     ? token(onto.i / trace_.top_k).expert.at(onto.i % trace_.top_k)
                 : onto.is(kOfExpert) ? onto.i
                                      : -1;
  if (!all_shown() || to < 0 || to == token(item.i).expert.front()) return std::nullopt;
  return lab::Settings{{"routing", std::string(name_of(moe_routing::Routing::custom))},
                       {"custom", moved(item.i, to)}};
}

}  // namespace tilestep::scenes
