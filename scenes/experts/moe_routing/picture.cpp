// The picture of the MoE lesson: the tokens; the experts' piles over what the router and the counting
// kernels wrote for each; the blocks that ran the tiles, over time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "scenes/experts/moe_routing/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using moe_routing::ExpertTrace, moe_routing::Step, moe_routing::TileTrace, moe_routing::TokenTrace;
using picture::Axis, picture::Bars, picture::Box, picture::Cells, picture::Chips, picture::Extent,
    picture::Format, picture::Items, picture::Key, picture::Lines, picture::Links, picture::Name,
    picture::Picture, picture::Spans, picture::Stacks, picture::State, picture::Way;
using words::counted, words::number;

namespace {

constexpr float kNothing = std::numeric_limits<float>::quiet_NaN();

/// A value for each of so many things, its number in their order.
std::vector<int> numbers(int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Lines sentences(Name name, const std::vector<std::string>& rows) {
  Lines lines;
  lines.items = picture::items(name, static_cast<int>(rows.size()));
  lines.voice = Lines::words;
  for (const std::string& row : rows) lines.rows.push_back(picture::text(row));
  return lines;
}

}  // namespace

/// Items about the experts, in their tones, one each.
Items MoeRoutingScene::of_experts(Name name) const {
  Items items = picture::items(name, experts());
  for (int e = 0; e < experts(); ++e) items.tone.each.push_back(expert_tone(e));
  items.about = {{"expert", {0, numbers(experts())}}};
  return items;
}

Extent MoeRoutingScene::extent() const {
  double low = 0, high = 1, most = 1, end = 1e-9;
  for (const TokenTrace& each : trace_.token) {
    for (const float logit : each.logits) {
      low = std::min(low, static_cast<double>(logit));
      high = std::max(high, static_cast<double>(logit));
    }
  }
  for (const ExpertTrace& each : trace_.expert) most = std::max(most, double(each.wanted));
  for (const TileTrace& each : trace_.tiles) end = std::max(end, each.end / clock());
  const auto logits = picture::rounded(low, high);
  std::vector<std::string> names;
  for (const int block : blocks_) names.push_back(fmt::format("block {}", block));
  const auto lanes = static_cast<int>(names.size());
  return {{{.name = "experts",
            .kind = Axis::band,
            .count = experts(),
            .title = picture::text(experts() > 32 ? "expert" : ""),
            .ticks = experts() > 32,
            .least_slot = 1},
           {.name = "logit", .low = logits.first, .high = logits.second},
           {.name = "wanted", .high = picture::rounded(0, most).second},
           {.name = "time",
            .high = picture::rounded(0, end).second,
            .title = picture::text(clock() > 1 ? "µs" : "mma"),
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
  Picture picture;
  picture.headline = picture::text(sentence(cursor));
  picture.axes = extent.axes;
  Box left = picture::column({"left"}, {tokens(cursor, token), details(cursor, token)});
  left.weight = 0.35f;
  left.least_width = 6;
  Box right = picture::column({"right"}, {columns(cursor, token, extent.axes[1].low)});
  Box values = picture::column({"values"}, rows(cursor, token));
  values.close = true;
  values.weight = 0;
  right.boxes.push_back(std::move(values));
  right.boxes.push_back(done(Step::multiply, cursor) ? blocks(picture.axes.back())
                                                     : steps_box(cursor, token));
  picture.root = picture::row({"moe"}, {std::move(left), std::move(right)});
  return picture;
}

// ---- the tokens ----------------------------------------------------------------------------------

/// A cell each; once they have chosen, as many parts as choices, in the experts' tones.
Box MoeRoutingScene::tokens(Cursor cursor, int followed) const {
  const int count = shown_tokens();
  const bool chosen = done(Step::top_k, cursor), placed = done(Step::offset, cursor);
  Cells cells;
  cells.columns = static_cast<int>(std::ceil(std::sqrt(count)));
  cells.items = picture::items("token", count);
  cells.items.about = {{"token", {0, numbers(count)}}};
  cells.items.act = {custom() ? picture::Act::set : picture::Act::pick,
                     custom() ? Name("custom") : Name("token")};
  const std::string all = counted(trace_.tokens, "token");
  const std::string first = all_shown() ? all : fmt::format("the first {} of {}", count, all);
  Box box = picture::box(
      {"tokens"}, {},
      picture::text(first + (chosen ? ": the best expert's number" : ": waiting"), first));
  box.weight = 2;
  box.least_height = 4;
  const picture::Frame frame{{"followed"}, {{"token", followed}}};
  if (!chosen) {
    for (int t = 0; t < count; ++t) cells.items.value.each.push_back(static_cast<float>(t));
    cells.items.format = {Format::integer};
    box.marks = {cells, frame};
    return box;
  }
  Cells choices = cells;
  choices.parts = trace_.top_k;
  choices.items.name = "choice";
  choices.items.count = count * trace_.top_k;
  choices.items.per_row = trace_.top_k;
  std::vector<int> tokens, experts;
  for (int t = 0; t < count; ++t) {
    const TokenTrace& each = token(t);
    for (std::size_t c = 0; c < each.expert.size(); ++c) {
      const bool dropped = placed && each.slot[c] < 0;
      choices.items.names.push_back(c == 0 ? std::to_string(each.expert[c]) : "");
      choices.items.tone.each.push_back(expert_tone(each.expert[c]));
      choices.items.state.each.push_back(dropped ? State::wrong : State::plain);
      tokens.push_back(t);
      experts.push_back(each.expert[c]);
    }
  }
  choices.items.about = {{"token", {0, tokens}}, {"expert", {0, experts}}};
  box.marks = {cells, choices, frame};
  return box;
}

Box MoeRoutingScene::details(Cursor cursor, int followed) const {
  Box box = picture::box({"details"}, {sentences("formula", formula(followed, cursor))});
  box.label = picture::text(fmt::format("Token {}{}", followed, custom() ? ": drag it" : ""));
  box.rank = 2;
  box.least_height = 2.4f;
  return box;
}

// ---- the experts ---------------------------------------------------------------------------------

/// First the logits of the followed token, then how many want each expert, then what lies in its slots.
Box MoeRoutingScene::columns(Cursor cursor, int followed, double extent_low) const {
  Box box = picture::box({"columns"}, {});
  box.left = 4.5f;
  box.weight = 2.4f;
  box.least_height = 4.5f;
  box.least_width = 8;
  const TokenTrace& each = token(followed);
  const bool chosen = done(Step::top_k, cursor);
  if (done(Step::offset, cursor)) {
    box.marks = {piles(cursor, followed)};
    const std::vector<int> busiest = trace_.with_most(&ExpertTrace::kept);
    if (busiest.size() == 1) {
      const int e = busiest.front();
      box.marks.emplace_back(picture::Note{
          {"busiest"},
          {{"expert", e}},
          picture::text(fmt::format("busiest, E{}: {}", e, expert(e).kept), "busiest")});
    }
  } else if (done(Step::count, cursor)) {
    Bars demand{of_experts("demand"), "experts", "wanted"};
    for (const ExpertTrace& one : trace_.expert)
      demand.items.value.each.push_back(float(one.wanted));
    demand.items.format = {Format::integer};
    box.marks = {demand};
  } else if (done(Step::score, cursor) && each.logits.empty()) {
    box.marks = {
        sentences("no_logits",
                  {fmt::format("{} logits a token; they are kept in the trace for up to {} experts",
                               experts(), moe_routing::kMostLogits)})};
  } else if (done(Step::score, cursor)) {
    Bars contest{of_experts("contest"), "experts", "logit"};
    contest.items.value.each = each.logits;
    contest.items.base.all = static_cast<float>(extent_low);
    contest.items.format = {Format::fixed, 1};
    for (int e = 0; e < experts(); ++e) {
      const bool wins = chosen && std::count(each.expert.begin(), each.expert.end(), e) > 0;
      contest.items.state.each.push_back(chosen && !wins ? State::to_come : State::plain);
    }
    box.marks = {contest};
  }
  // Bars have their values above them; what stands here without keeps the same place.
  const auto are_bars = [](const picture::Mark& mark) {
    return std::holds_alternative<Bars>(mark);
  };
  if (std::none_of(box.marks.begin(), box.marks.end(), are_bars)) {
    box.marks.emplace_back(Bars{picture::items("bar", {}, {Format::integer}), "experts", "wanted"});
  }
  if (chosen) box.marks.emplace_back(ways(cursor, followed));
  return box;
}

/// The followed token's way from the grid to its experts.
Links MoeRoutingScene::ways(Cursor cursor, int followed) const {
  const TokenTrace& each = token(followed);
  Links ways;
  ways.items = picture::items("way", trace_.top_k);
  for (std::size_t c = 0; c < each.expert.size(); ++c) {
    const int e = each.expert[c];
    const bool moved = all_shown() && done(Step::permute, cursor);
    const Key to = moved                        ? Key{"slot", followed * trace_.top_k + int(c)}
                   : done(Step::offset, cursor) ? Key{"expert", e}
                   : done(Step::count, cursor)  ? Key{"demand", e}
                   : each.logits.empty()        ? Key{"name", e}
                                                : Key{"contest", e};
    ways.from.push_back({{"token", followed}});
    ways.to.push_back({to});
    ways.items.tone.each.push_back(expert_tone(e));
    const bool dropped = done(Step::offset, cursor) && each.slot[c] < 0;
    ways.items.state.each.push_back(dropped ? State::wrong : State::plain);
  }
  return ways;
}

/// The slots, free until the tokens travel into them; above the capacity what was dropped.
Stacks MoeRoutingScene::piles(Cursor cursor, int followed) const {
  const bool moved = done(Step::permute, cursor);
  Stacks piles;
  piles.items = of_experts("expert");
  piles.items.format = {Format::integer};
  piles.items.state.all = moved ? State::plain : State::to_come;
  piles.tile = std::max(1, trace_.tile);
  piles.x = "experts";
  for (const ExpertTrace& each : trace_.expert) {
    piles.kept.push_back(each.kept);
    piles.tiles.push_back(each.tiles);
    piles.dropped.push_back(each.dropped());
    piles.items.value.each.push_back(static_cast<float>(each.kept));
  }
  if (now(Step::multiply, cursor)) piles.items.state.all = State::current;
  if (trace_.capacity >= 0) {
    piles.limit = {{"capacity"},
                   {},
                   double(trace_.capacity),
                   State::plain,
                   picture::text(fmt::format("capacity {}", trace_.capacity),
                                 std::to_string(trace_.capacity))};
  }
  if (!all_shown()) return piles;
  Items& held = piles.held = picture::items(moved ? Name("slot") : Name("free"), 0);
  std::vector<int> tokens, experts;
  const auto add = [&](const Assignment& here, int e, bool dropped) {
    ++held.count;
    held.ids.push_back(here.token * trace_.top_k + here.choice);
    held.names.push_back(moved && !dropped ? std::to_string(here.token) : "");
    held.tone.each.push_back(expert_tone(e));
    held.state.each.push_back(dropped ? State::wrong : moved ? State::plain : State::to_come);
    held.flags.each.push_back(here.token == followed && (moved || dropped) ? picture::kPicked
                                                                           : picture::kNone);
    held.ways.push_back(moved && !dropped ? Way{{"choice", here.token, here.choice}, {}, 0, true}
                                          : Way{});
    tokens.push_back(here.token);
    experts.push_back(e);
  };
  for (int e = 0; e < this->experts(); ++e) {
    for (const Assignment& here : kept_[std::size_t(e)]) add(here, e, false);
    for (const Assignment& here : dropped_[std::size_t(e)]) add(here, e, true);
  }
  held.about = {{"token", {0, tokens}}, {"expert", {0, experts}}};
  held.act = {picture::Act::pick, "token"};
  return piles;
}

// ---- what the kernels wrote for each expert ------------------------------------------------------

std::vector<Box> MoeRoutingScene::rows(Cursor cursor, int followed) const {
  const TokenTrace& each = token(followed);
  Items names = of_experts("name"), logit = of_experts("logit"), gate = of_experts("gate"),
        wanted = of_experts("wanted"), first = of_experts("first");
  gate.names.assign(std::size_t(experts()), "–");
  gate.state.each.assign(std::size_t(experts()), State::to_come);
  gate.tone.each.assign(std::size_t(experts()), 0);
  for (std::size_t c = 0; c < each.expert.size() && done(Step::top_k, cursor); ++c) {
    const auto e = static_cast<std::size_t>(each.expert[c]);
    gate.names[e] = number(double(each.gate[c]), 2);
    gate.state.each[e] = State::plain;
    gate.tone.each[e] = expert_tone(each.expert[c]);
  }
  logit.value.each = each.logits;
  if (each.logits.empty()) logit.value.all = kNothing;
  logit.heat = wanted.heat = true;
  logit.format = {Format::fixed, 1};
  wanted.format = first.format = {Format::integer};
  for (int e = 0; e < experts(); ++e) {
    names.names.push_back(fmt::format("E{}", e));
    wanted.value.each.push_back(float(expert(e).wanted));
    first.value.each.push_back(float(expert(e).first_slot));
  }
  logit.tone = wanted.tone = first.tone = {};
  const auto row = [&](Name key, const char* label, Items items, Step step) {
    if (!done(step, cursor)) {
      items.value = {kNothing, {}};
      items.names.clear();
      items.state = {State::to_come, {}};
      items.tone = {};
    }
    Cells cells{std::move(items)};
    cells.x = "experts";
    Box box = picture::box({key}, {cells});
    box.label = picture::text(label);
    for (picture::Run& run : box.label.full) {
      if (now(step, cursor)) run.state = State::current;
    }
    box.left = 4.5f;
    box.weight = 0;
    box.least_height = 1.05f;
    box.rank = now(step, cursor) ? 1 : 3;
    return box;
  };
  std::vector<Box> rows = {row("names", "", std::move(names), Step::score),
                           row("logits", "logit", std::move(logit), Step::score),
                           row("gates", "gate", std::move(gate), Step::top_k),
                           row("counts", "wanted", std::move(wanted), Step::count),
                           row("firsts", "first slot", std::move(first), Step::offset)};
  if (each.logits.empty()) rows[1].least_height = 1.3f;
  if (each.logits.empty() && done(Step::score, cursor)) {
    rows[1].marks = {sentences("logit_missing", {fmt::format("not kept for more than {} experts",
                                                             moe_routing::kMostLogits)})};
  }
  return rows;
}

// ---- the steps, and the blocks over time ---------------------------------------------------------

Box MoeRoutingScene::steps_box(Cursor cursor, int followed) const {
  Chips steps;
  steps.chain = true;
  steps.items = picture::items("step", moe_routing::kSteps);
  for (int i = 0; i < moe_routing::kSteps; ++i) {
    const auto step = static_cast<Step>(i);
    steps.items.names.emplace_back(name_of(step));
    steps.items.state.each.push_back(now(step, cursor)    ? State::current
                                     : done(step, cursor) ? State::done
                                                          : State::to_come);
  }
  steps.items.about = {{"step", {0, numbers(moe_routing::kSteps)}}};
  steps.items.act = {picture::Act::go};
  Box chips = picture::box({"steps"}, {steps});
  chips.weight = 0;
  chips.least_height = 1.4f;
  Box text = picture::box({"why"}, {sentences("explanation", {explanation(cursor, followed)})});
  text.least_height = 2.2f;
  Box box = picture::column({"below"}, {std::move(chips), std::move(text)});
  box.label = picture::text("the steps");  // as high as the blocks over time with their label
  box.rank = 2;
  box.least_height = 5;
  return box;
}

/// A block's tiles in their experts' tones, the padded part of each hatched; then the time that it has
/// nothing left to do while others still work.
Box MoeRoutingScene::blocks(const Axis& lanes) const {
  const auto lane_of = [&](int block) {
    return static_cast<int>(std::lower_bound(blocks_.begin(), blocks_.end(), block) -
                            blocks_.begin());
  };
  Spans spans;
  spans.items = picture::items("gantt", 0);
  spans.x = "time";
  spans.lanes = "block";
  std::vector<int> tiles, experts;
  std::vector<double> ends(blocks_.size(), 0);
  const auto add = [&](int lane, double begin, double end, State state, std::string name, int tile,
                       int e) {
    ++spans.items.count;
    spans.lane.push_back(lane);
    spans.begin.push_back(begin);
    spans.end.push_back(end);
    spans.items.state.each.push_back(state);
    spans.items.names.push_back(std::move(name));
    spans.items.tone.each.push_back(e < 0 ? std::uint8_t{0} : expert_tone(e));
    tiles.push_back(tile);
    experts.push_back(e);
  };
  const auto real_end = [&](const TileTrace& each) {
    const double share = double(each.kept) / std::max(1, trace_.tile);
    return (each.begin + (each.end - each.begin) * share) / clock();
  };
  int number = 0;
  for (const TileTrace& each : trace_.tiles) {
    add(lane_of(each.block), each.begin / clock(), real_end(each), State::plain,
        fmt::format("E{}", each.expert), number++, each.expert);
    double& end = ends[std::size_t(lane_of(each.block))];
    end = std::max(end, each.end / clock());
    spans.now = std::max(spans.now, end);
  }
  number = 0;
  for (const TileTrace& each : trace_.tiles) {
    if (each.kept < trace_.tile) {
      add(lane_of(each.block), real_end(each), each.end / clock(), State::wasted, "", number,
          each.expert);
    }
    ++number;
  }
  for (std::size_t lane = 0; lane < ends.size(); ++lane) {
    if (ends[lane] < 0.98 * spans.now) {
      add(int(lane), ends[lane], spans.now, State::to_come, "idle", -1, -1);
    }
  }
  spans.items.about = {{"tile", {0, tiles}}, {"expert", {0, experts}}};
  Box gantt = picture::box({"gantt"}, {spans});
  gantt.left = 4.5f;
  gantt.least_height = 2;
  Box box = picture::column({"below"}, {std::move(gantt)});
  box.label = picture::text(blocks_text(), counted(lanes.count, "block"));
  box.rank = 2;
  box.least_height = 5;
  return box;
}

/// How many blocks there are, and whom the others wait for.
std::string MoeRoutingScene::blocks_text() const {
  const auto count = static_cast<int>(blocks_.size());
  const bool all_recorded = trace_.tiles_run == static_cast<std::int64_t>(trace_.tiles.size());
  std::string text = all_recorded && trace_.blocks > count
                         ? fmt::format("{} of {} blocks had a tile to run", count, trace_.blocks)
                         : counted(count, "block") + " over time";
  const std::vector<int> late = stragglers();
  if (late.size() == 1) text += fmt::format("; straggler: block {}", late.front());
  if (late.size() > 1) text += fmt::format("; stragglers: {} of {} blocks", late.size(), count);
  return text;
}

// ---- what is said of a thing --------------------------------------------------------------------

std::string MoeRoutingScene::explain_token(Cursor cursor, int number_of) const {
  const TokenTrace& each = token(number_of);
  std::string text = fmt::format("token {}", number_of);
  for (std::size_t c = 0; c < each.expert.size() && done(Step::top_k, cursor); ++c) {
    text += fmt::format("\nE{}, gate {:.3f}", each.expert[c], static_cast<double>(each.gate[c]));
    if (!done(Step::offset, cursor)) continue;
    text += each.slot[c] < 0 ? ", dropped" : fmt::format(", slot {}", each.slot[c]);
  }
  return text + (custom() ? "\ndrag it to another expert" : "\nclick to follow it");
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
  const std::string_view name = key.name.text();
  const auto one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (one_of({"token", "choice"}) && key.i < shown_tokens())
    return explain_token(view.cursor, key.i);
  if (one_of({"slot", "free"})) return explain_token(view.cursor, key.i / trace_.top_k);
  const bool of_expert =
      one_of({"expert", "contest", "demand", "name", "logit", "gate", "wanted", "first"});
  if (of_expert && key.i >= 0 && key.i < experts()) return explain_expert(view.cursor, key.i);
  if (name == "gantt" && key.i >= 0 && key.i < std::ssize(trace_.tiles)) {
    const TileTrace& each = trace_.tiles[std::size_t(key.i)];
    return fmt::format("E{} tile {}\nblock {}, {} of {} real", each.expert, each.number, each.block,
                       each.kept, trace_.tile);
  }
  return {};
}

/// In custom routing a token is dropped on another expert, or on anything of it.
std::optional<lab::Settings> MoeRoutingScene::dropped(const View&, const Key& item,
                                                      const Key& onto) const {
  const std::string_view name = onto.name.text();
  int to = -1;
  for (const std::string_view each :
       {"expert", "contest", "demand", "name", "logit", "gate", "wanted", "first"}) {
    if (name == each) to = onto.i;
  }
  if (name == "slot" || name == "free") {
    to = token(onto.i / trace_.top_k).expert.at(std::size_t(onto.i % trace_.top_k));
  }
  if (!custom() || to < 0 || to == token(item.i).expert.front()) return std::nullopt;
  return lab::Settings{{"custom", moved(item.i, to)}};
}

}  // namespace tilestep::scenes
