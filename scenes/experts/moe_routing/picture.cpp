// The picture of the MoE lesson: the tokens; the experts' piles over what the router and the counting
// kernels wrote for each; the blocks that ran the tiles, over time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/experts/moe_routing/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using moe_routing::ExpertTrace, moe_routing::Step, moe_routing::TileTrace, moe_routing::TokenTrace;
using words::counted, words::number;

namespace {

constexpr float kLeft = 4.5f;  ///< margin for what the rows are called, in heights of a line
/// What stands for an expert: a token can be dropped on it.
constexpr std::initializer_list<Name> kOfExpert = {"expert", "contest", "demand", "name",
                                                   "logit",  "gate",    "wanted", "first"};

Lines sentences(Name name, const std::vector<std::string>& rows) {
  std::vector<Text> texts;
  for (const std::string& row : rows) texts.push_back(text(row));
  return lines(name, std::move(texts));
}

}  // namespace

/// Items about the experts, in their tones, one each.
Items MoeRoutingScene::of_experts(Name name, std::vector<float> values, Format format) const {
  Items made = items(name, experts());
  made.value.each = std::move(values);
  made.format = format;
  for (int e = 0; e < experts(); ++e) made.tone.each.push_back(expert_tone(e));
  made.about = {{"expert", {0, numbers(experts())}}};
  return made;
}

/// The experts. In the kernel a thread knows its token's expert alone: that of the token followed.
std::vector<Symbol> MoeRoutingScene::symbols(const View& view) const {
  std::vector<Symbol> all;
  for (int e = 0; e < experts(); ++e) {
    all.push_back(
        {fmt::format("E{}", e),
         {"expert", e},
         expert_tone(e),
         fmt::format("Expert {} of {}: weights of its own, which multiply the tokens that "
                     "the router gives it and no others.",
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
  double end = 1e-9;
  for (const TokenTrace& each : trace_.token) {
    for (const float logit : each.logits) {
      low = std::min(low, logit);
      high = std::max(high, logit);
    }
  }
  for (const ExpertTrace& each : trace_.expert) most = std::max(most, each.wanted);
  for (const auto& [block, its_end] : lanes_) end = std::max(end, its_end / clock());
  const auto logits = rounded(low, high);
  std::vector<std::string> names;
  for (const auto& [block, its_end] : lanes_) names.push_back(fmt::format("block {}", block));
  const auto lanes = static_cast<int>(names.size());
  const bool many = experts() > 32;
  return {{{.name = "experts",
            .kind = Axis::band,
            .count = experts(),
            .title = text(many ? "expert" : ""),
            .ticks = many,
            .least_slot = 1},
           {.name = "logit", .low = logits.first, .high = logits.second},
           {.name = "wanted", .high = rounded(0, most).second},
           {.name = "time",
            .high = rounded(0, end).second,
            .title = text(clock() > 1 ? "µs" : "mma"),
            .ticks = true},
           {.name = "block",
            .kind = Axis::band,
            .count = lanes,
            .names = std::move(names),
            .least_slot = 3}}};
}

int MoeRoutingScene::followed(const View& view) const {
  return std::clamp(view.pick("token", 5), 0, shown_tokens() - 1);
}

Picture MoeRoutingScene::picture(const Extent& extent, const View& view) const {
  const Cursor cursor = view.cursor;
  const int token = followed(view);
  Box left = column({"left"}, {tokens(cursor, token), details(cursor, token)},
                    {.weight = 0.35f, .least_width = 6});
  Box right =
      column({"right"}, {columns(cursor, token, extent.axes[1].low),
                         column({"values"}, rows(cursor, token), {.close = true, .weight = 0}),
                         done(Step::multiply, cursor) ? blocks() : steps_box(cursor, token)});
  return {{marked(sentence(cursor), symbols(view))},
          extent.axes,
          row({"moe"}, {std::move(left), std::move(right)})};
}

// ---- the tokens ----------------------------------------------------------------------------------

/// A cell each; once they have chosen, as many parts as choices, in the experts' tones.
Box MoeRoutingScene::tokens(Cursor cursor, int followed) const {
  const int count = shown_tokens();
  const bool chosen = done(Step::top_k, cursor), placed = done(Step::offset, cursor);
  Cells cells{items("token", count)};
  cells.columns = static_cast<int>(std::ceil(std::sqrt(count)));
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
      choices.items.tone.each.push_back(expert_tone(each.expert[c]));
      choices.items.state.each.push_back(dropped ? State::wrong : State::plain);
      tokens.push_back(t);
      experts.push_back(each.expert[c]);
    }
  }
  choices.items.about = {{"token", {0, tokens}}, {"expert", {0, experts}}};
  const std::string all = counted(trace_.tokens, "token");
  const std::string first = all_shown() ? all : fmt::format("the first {} of {}", count, all);
  Box made = box({"tokens"}, {cells},
                 text(first + (chosen ? ": the best expert's number" : ": waiting"), first),
                 {.weight = 2, .least_height = 4});
  if (chosen) made.marks.emplace_back(choices);
  made.marks.emplace_back(Frame{{"followed"}, {{"token", followed}}});
  return made;
}

Box MoeRoutingScene::details(Cursor cursor, int followed) const {
  return box({"details"}, {sentences("formula", formula(followed, cursor))},
             text(fmt::format("Token {}", followed)), {.rank = 2, .least_height = 2.4f});
}

// ---- the experts ---------------------------------------------------------------------------------

/// First the logits of the followed token, then how many want each expert, then what lies in its slots.
Box MoeRoutingScene::columns(Cursor cursor, int followed, double extent_low) const {
  Box made = box({"columns"}, {}, {},
                 {.weight = 2.4f, .least_width = 8, .least_height = 4.5f, .left = kLeft});
  const TokenTrace& each = token(followed);
  const bool chosen = done(Step::top_k, cursor);
  // Bars have their values above them; what stands here without keeps the same place.
  Bars bars{items("bar", {}, {Format::integer}), "experts", "wanted"};
  if (done(Step::offset, cursor)) {
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
    made.marks = {
        sentences("no_logits",
                  {fmt::format("{} logits a token; they are kept in the trace for up to {} experts",
                               experts(), moe_routing::kMostLogits)})};
  } else if (done(Step::score, cursor)) {
    bars = {of_experts("contest", each.logits, {Format::fixed, 1}), "experts", "logit"};
    bars.items.base.all = static_cast<float>(extent_low);
    for (int e = 0; e < experts(); ++e) {
      const bool wins = !chosen || std::count(each.expert.begin(), each.expert.end(), e) > 0;
      bars.items.state.each.push_back(wins ? State::plain : State::to_come);
    }
  }
  // A guess at how many will want one stands on an axis that is not drawn yet.
  if (bars.y != Name("wanted"))
    made.marks.emplace_back(Bars{items("demand", 0), "experts", "wanted"});
  made.marks.emplace_back(std::move(bars));
  if (chosen) made.marks.emplace_back(ways(cursor, followed));
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
    ways.items.tone.each.push_back(expert_tone(e));
    ways.items.state.each.push_back(placed && each.slot[c] < 0 ? State::wrong : State::plain);
  }
  return ways;
}

/// The slots, free until the tokens travel into them; above the capacity what was dropped.
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
    held.tone.each.push_back(expert_tone(e));
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

// ---- what the kernels wrote for each expert ------------------------------------------------------

std::vector<Box> MoeRoutingScene::rows(Cursor cursor, int followed) const {
  const TokenTrace& each = token(followed);
  const auto row = [&](Key key, const char* label, Items items, Step step) {
    if (!done(step, cursor)) {
      items = of_experts(items.name);
      items.state.all = State::to_come;
      items.tone = {};
    }
    Cells cells{std::move(items)};
    cells.x = "experts";
    Text said = text(label);
    for (Run& run : said.full) run.state = now(step, cursor) ? State::current : State::plain;
    return box(
        key, {cells}, said,
        {.rank = now(step, cursor) ? 1 : 3, .weight = 0, .least_height = 1.05f, .left = kLeft});
  };
  Items names = of_experts("name"), gate = of_experts("gate"),
        logit = of_experts("logit", each.logits, {Format::fixed, 1}),
        wanted = of_experts("wanted", counts(&ExpertTrace::wanted), {Format::integer}),
        first = of_experts("first", counts(&ExpertTrace::first_slot), {Format::integer});
  for (int e = 0; e < experts(); ++e) names.names.push_back(fmt::format("E{}", e));
  logit.heat = wanted.heat = true;
  first.tone = {};
  if (each.logits.empty()) logit.value.all = NAN;
  gate.names.assign(experts(), "–");
  gate.state.each.assign(experts(), State::to_come);
  gate.tone.each.assign(experts(), 0);
  for (int c = 0; c < trace_.top_k && done(Step::top_k, cursor); ++c) {
    const int e = each.expert[c];
    gate.names[e] = number(each.gate[c], 2);
    gate.state.each[e] = gate_is_off(each, c) ? State::wrong : State::plain;
    gate.tone.each[e] = expert_tone(e);
  }
  std::vector<Box> rows = {row({"names"}, "", std::move(names), Step::score),
                           row({"logits"}, "logit", std::move(logit), Step::score),
                           row({"gates"}, "gate", std::move(gate), Step::top_k),
                           row({"counts"}, "wanted", std::move(wanted), Step::count),
                           row({"firsts"}, "first slot", std::move(first), Step::offset)};
  if (each.logits.empty()) {
    rows[1].least_height = 1.3f;
    if (!done(Step::score, cursor)) return rows;
    rows[1].marks = {sentences("logit_missing", {fmt::format("not kept for more than {} experts",
                                                             moe_routing::kMostLogits)})};
  }
  return rows;
}

// ---- the steps, and the blocks over time ---------------------------------------------------------

Box MoeRoutingScene::steps_box(Cursor cursor, int followed) const {
  Chips steps{items("step", moe_routing::kSteps)};
  steps.chain = true;
  for (const Step step : all_of<Step>()) {
    steps.items.names.emplace_back(name_of(step));
    steps.items.state.each.push_back(now(step, cursor)    ? State::current
                                     : done(step, cursor) ? State::done
                                                          : State::to_come);
  }
  steps.items.about = {{"step", {0, numbers(moe_routing::kSteps)}}};
  steps.items.act = {Act::go};
  Box made = column({"below"},
                    {box({"steps"}, {steps}, {}, {.weight = 0, .least_height = 1.4f}),
                     box({"why"}, {sentences("explanation", {explanation(cursor, followed)})}, {},
                         {.least_height = 2.2f})},
                    {.rank = 2, .least_height = 5});
  made.label = text("the steps");  // as high as the blocks over time with their label
  return made;
}

/// A block's tiles in their experts' tones, the padded part of each hatched; then the time that it has
/// nothing left to do while others still work.
Box MoeRoutingScene::blocks() const {
  Spans spans{items("gantt", 0)};
  spans.x = "time";
  spans.lanes = "block";
  std::vector<int> tiles, experts;
  const auto add = [&](int lane, double begin, double end, State state, std::string name, int tile,
                       int e) {
    ++spans.items.count;
    spans.lane.push_back(lane);
    spans.begin.push_back(begin / clock());
    spans.end.push_back(end / clock());
    spans.items.state.each.push_back(state);
    spans.items.names.push_back(std::move(name));
    spans.items.tone.each.push_back(e < 0 ? std::uint8_t{0} : expert_tone(e));
    tiles.push_back(tile);
    experts.push_back(e);
  };
  for (const bool padded : {false, true}) {
    for (int n = 0; n < std::ssize(trace_.tiles); ++n) {
      const TileTrace& each = trace_.tiles[n];
      const auto lane = std::lower_bound(lanes_.begin(), lanes_.end(), std::pair{each.block, -1.0});
      const auto place = static_cast<int>(lane - lanes_.begin());
      const double real =
          each.begin + (each.end - each.begin) * each.kept / std::max(1, trace_.tile);
      if (!padded) {
        add(place, each.begin, real, State::plain, fmt::format("E{}", each.expert), n, each.expert);
      } else if (each.kept < trace_.tile) {
        add(place, real, each.end, State::wasted, "", n, each.expert);
      }
    }
  }
  const double last = last_end();
  for (int lane = 0; lane < std::ssize(lanes_); ++lane) {
    const double end = lanes_[lane].second;
    if (end < kNear * last) add(lane, end, last, State::to_come, "idle", -1, -1);
  }
  spans.now = last / clock();
  spans.items.about = {{"tile", {0, tiles}}, {"expert", {0, experts}}};
  Box made = column({"below"}, {box({"gantt"}, {spans}, {}, {.least_height = 2, .left = kLeft})},
                    {.rank = 2, .least_height = 5});
  made.label = text(blocks_text(), counted(std::ssize(lanes_), "block"));
  return made;
}

/// How many blocks there are, and whom the others wait for: the blocks that end last, where some end
/// well before.
std::string MoeRoutingScene::blocks_text() const {
  const std::int64_t count = std::ssize(lanes_);
  const bool all_recorded = trace_.tiles_run == std::ssize(trace_.tiles);
  std::string text = all_recorded && trace_.blocks > count
                         ? fmt::format("{} of {} blocks had a tile to run", count, trace_.blocks)
                         : counted(count, "block") + " over time";
  std::vector<int> late;
  bool tail = false;
  for (const auto& [block, end] : lanes_) {
    if (end == last_end()) late.push_back(block);
    tail = tail || end < kNear * last_end();
  }
  if (!tail) return text;
  if (late.size() == 1) return text + fmt::format("; straggler: block {}", late.front());
  return text + fmt::format("; stragglers: {} of {} blocks", late.size(), count);
}

// ---- what is said of a thing --------------------------------------------------------------------

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
  if (key.is({"gantt"}) && key.i >= 0 && key.i < std::ssize(trace_.tiles)) {
    const TileTrace& each = trace_.tiles[key.i];
    return fmt::format("E{} tile {}\nblock {}, {} of {} real", each.expert, each.number, each.block,
                       each.kept, trace_.tile);
  }
  return {};
}

/// A token is dropped on another expert, or on anything of it. Where all the others go stays as it is.
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
