// The picture of attention on Hopper: the activity of a block over time, and the tiles that it walks through.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "scenes/attention/flash_attention_3/scene.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using attention::LedgerRow, attention::Tensor, attention::TileKind, attention::TileVisit;
using flash_attention_3::Activity, flash_attention_3::Span;
using words::counted, words::number;

namespace {

constexpr Layout kQueries = {.weight = 0.06f, .least_width = 1.9f, .least_height = 3.9f};
constexpr Layout kScores = {.weight = 1, .least_width = 8, .least_height = 3.9f};
constexpr float kLetter = 3.3f;       ///< margin for a tensor's name, in line heights
constexpr float kLane = 5.4f;         ///< and for a lane's name
constexpr std::uint8_t kSoftmax = 5;  ///< the tone of exponentials, and of their sum

int lane_of(const Span& span) {
  if (span.lane <= 0) return span.tensor == 'V' ? 1 : 0;
  return 2 * span.lane + (span.what == Activity::softmax ? 1 : 0);
}

}  // namespace

// ---- where things stand -----------------------------------------------------------------------------

Extent FlashAttention3Scene::extent() const {
  Axis time{.name = "time", .high = clocked_until(), .title = text("cycles"), .ticks = true};
  if (emulated()) time = beats_.axis("time");
  Axis lane = band_axis("lane", 2);
  lane.names = {"copies of K", "copies of V"};
  for (int c = 1; c <= consumers(); ++c) {
    lane.names.push_back(fmt::format("products {}", c));
    lane.names.push_back(fmt::format("softmax {}", c));
  }
  lane.count = static_cast<int>(lane.names.size());
  Extent extent{{keys_axis(trace_),
                 band_axis("q", trace_.plan.q_tiles),
                 band_axis("kind", 3),
                 {.name = "bytes", .low = 0, .high = rounded(0, most_bytes(trace_)).second},
                 band_axis("one", 1),
                 {.name = "l", .low = 0, .high = most_l()},
                 std::move(time),
                 std::move(lane)}};
  for (Axis& axis : turn_axes()) extent.axes.push_back(std::move(axis));
  return extent;
}

Picture FlashAttention3Scene::picture(const Extent& extent, const View& view) const {
  const LaneMoment now = moment(view.cursor);
  if (now.now == nullptr && !now.through) {
    return {{marked(sentence(now), symbols(view)), {{brief(now)}}},
            extent.axes,
            column({"all"}, {turns(false), turns(true)})};
  }
  std::vector<Box> beside = {
      chosen_row(now),
      ledger_box(
          ledger_groups(), [&](const LedgerRow& row) { return asked_by(now, row); },
          fmt::format("block {}", trace_.chosen.block), kLetter)};
  add_masks(beside, trace_);
  std::vector<std::string> notes;
  if (!trace_.plan.cut.empty()) notes.push_back(trace_.plan.cut);
  if (!notes.empty() || judged(now)) {
    beside.push_back(
        notes_box(trace_, judged(now) ? result_sentence_of(trace_, false) : Text(), notes, true));
  }
  Box right = column({"beside"}, std::move(beside), {.rank = 1, .weight = 0.9f});
  std::vector<Axis> axes = extent.axes;
  for (Axis& axis : axes) {
    const bool in_beats = emulated() && axis.name == Name("time");
    if (in_beats) axis = beats_.axis("time", beats_.at(clock_at(now)));
  }
  return {{marked(sentence(now), symbols(view)), {{brief(now)}}},
          std::move(axes),
          column({"all"}, {lanes(now), row({"below"}, {strips(now), std::move(right)})}),
          {"busy", "formulas"}};
}

// ---- the matrix, and what stands round it -------------------------------------------------------------

Box FlashAttention3Scene::strips(const LaneMoment& now) const {
  int corners = 0;
  const auto beside = [&](Name name, const char* letter, Box middle) {
    const auto corner = [&](std::vector<Mark> marks = {}) {
      return box({"corner", corners++}, std::move(marks), {}, low(kQueries));
    };
    return std::vector<Box>{corner({lines(name, {text(letter)})}), std::move(middle), corner()};
  };
  constexpr Layout kFlat = {.weight = 0.085f};
  const bool in_vain = std::any_of(
      trace_.visits.begin(), trace_.visits.end(),
      [](const TileVisit& one) { return one.kind == TileKind::skipped && one.order >= 0; });
  return column({"strips"},
                {in_device_memory(
                     trace_, "Q, K, V and O",
                     {row({"above"}, beside("name_k", "K", of_keys(now, false)), kFlat),
                      row({"across"}, {of_queries(now, false), scores(now), of_queries(now, true)}),
                      row({"under"}, beside("name_v", "V", of_keys(now, true)), kFlat)}),
                 // A block visits a tile even if it sees none.
                 legend(trace_, now.step > 0, in_vain ? "all masked" : "skipped", kHollow, 4)},
                {.rank = 2});
}

/// Q, or O.
Box FlashAttention3Scene::of_queries(const LaneMoment& now, bool outputs) const {
  Cells strip{items(outputs ? Name("O") : Name("Q"), trace_.plan.q_tiles)};
  strip.columns = 1;
  strip.y = "q";
  if (!outputs) strip.items.act = {Act::set, "query"};
  of_tensor(strip.items, outputs ? Tensor::o : Tensor::q);
  for (int q = 0; q < trace_.plan.q_tiles; ++q) {
    const bool chosen = q == trace_.chosen.q_tile && now.step > 0 && !now.through;
    const int wrong = outputs && judged(now) ? trace_.wrong[static_cast<std::size_t>(q)] : 0;
    const bool current = chosen && (!outputs || now.phase == LanePhase::values);
    strip.items.state.each.push_back(wrong > 0             ? State::wrong
                                     : current             ? State::current
                                     : row_through(now, q) ? State::done
                                     : row_begun(now, q)   ? State::plain
                                                           : State::to_come);
    strip.items.names.push_back(wrong > 0 ? std::to_string(wrong)
                                : outputs ? ""
                                          : std::to_string(q));
    // Until it is written O is in registers.
    const bool unwritten = outputs && row_begun(now, q) && !row_through(now, q);
    strip.items.glyph.each.push_back(unwritten ? kHollow : kSolid);
  }
  return box(outputs ? Key{"outputs"} : Key{"queries"}, {std::move(strip)},
             text(outputs ? "O" : "Q"), kQueries);
}

Box FlashAttention3Scene::of_keys(const LaneMoment& now, bool values) const {
  Cells strip{items(values ? Name("V") : Name("K"), trace_.plan.k_tiles)};
  strip.x = "k";
  of_tensor(strip.items, values ? Tensor::v : Tensor::k);
  const int here = now.now != nullptr && !now.through ? now.now->k_tile : -1;
  const LanePhase used = values ? LanePhase::values : LanePhase::scores;
  for (int k = 0; k < trace_.plan.k_tiles; ++k) {
    const TileVisit& visit = trace_.visit(trace_.chosen.q_tile, k);
    strip.items.state.each.push_back(k == here && now.phase == used ? State::current
                                     : !seen(now, visit)            ? State::to_come
                                     : k == here                    ? State::plain
                                                                    : State::done);
    strip.items.glyph.each.push_back(visit.order < 0 ? kHollow : kSolid);
    strip.items.names.push_back(visit.order < 0 ? "" : std::to_string(k));
  }
  return box(values ? Key{"values"} : Key{"keys"}, {std::move(strip)}, {}, low(kScores));
}

Box FlashAttention3Scene::scores(const LaneMoment& now) const {
  Cells grid = score_cells(trace_, [&](int q, int k) { return fate(now, q, k); });
  Box made = box({"scores"}, {std::move(grid)}, text("S: queries × keys", "S"), kScores);
  made.place = Place::registers;
  if (now.now == nullptr || now.through) return made;
  const int q = trace_.chosen.q_tile, k = now.now->k_tile;
  made.marks.emplace_back(Frame{{"row"}, {Key{"Q", q}, Key{"O", q}}});
  made.marks.emplace_back(Frame{{"column"}, {Key{"K", k}, Key{"V", k}}});
  return made;
}

// ---- the chosen query -------------------------------------------------------------------------------

std::vector<std::string> FlashAttention3Scene::formulas(const LaneMoment& now) const {
  std::vector<std::string> rows = running_rows(now);
  if (now.now == nullptr) return rows;
  // Later values are named, not given away.
  const std::size_t known = now.phase == LanePhase::scores ? 1 : 3;
  for (std::size_t at = known; at < rows.size(); ++at) {
    rows[at] = rows[at].substr(0, rows[at].find('=') + 1) + " …";
  }
  return rows;
}

Box FlashAttention3Scene::chosen_row(const LaneMoment& now) const {
  Lines made = lines("formula", formula_texts(formulas(now), symbols({})), Lines::formula);
  made.items.about = {{"m", {-1, {0, -1, -1}}}, {"l", {-1, {-1, -1, 0}}}};
  const bool weighed = now.phase >= LanePhase::softmax;
  for (int at = 0; at < made.items.count; ++at) {
    const bool current =
        !now.through && (weighed ? now.phase == LanePhase::softmax && at > 0 : at == 0);
    made.items.state.each.push_back(now.now == nullptr   ? State::to_come
                                    : current            ? State::current
                                    : weighed || at == 0 ? State::done
                                                         : State::to_come);
  }
  const std::string label = chosen_words(trace_, now.now == nullptr ? -1 : now.now->k_tile);
  Box formulas_box =
      box({"formulas"}, {std::move(made)}, {},
          {.weight = 1, .least_width = 14, .least_height = 3.1f, .most_height = 4.2f});
  return labelled({"chosen"}, {std::move(formulas_box), sum_bar(now)},
                  text(label, fmt::format("query {}", trace_.chosen.query)),
                  {.close = true, .rank = 2, .weight = 0.1f});
}

/// The rescaled ℓ of earlier tiles, and this tile's addition.
Box FlashAttention3Scene::sum_bar(const LaneMoment& now) const {
  const double before = now.before == nullptr ? 0 : static_cast<double>(now.before->l);
  const bool weighed = now.phase >= LanePhase::softmax;
  const double kept = weighed ? before * static_cast<double>(now.now->rescale) : before;
  const double after = weighed ? static_cast<double>(now.now->l) : kept;
  const auto part = [](Name name, double from, double to) {
    Bars bar{items(name, std::vector{static_cast<float>(to)}), "l", "one"};
    bar.items.base.all = static_cast<float>(from);
    bar.items.about = {{Name("l"), {0}}};
    return bar;
  };
  Bars left = part("l_kept", 0, kept), fresh = part("l_added", kept, after);
  left.items.state.all = State::done;
  fresh.items.state.all = State::current;
  Box made = box({"bar_l"}, {std::move(left)}, {marked("ℓ", symbols({}))},
                 {.least_height = 0.8f, .most_height = 1.2f, .left = 2.2f, .right = 4.2f});
  if (weighed) made.marks.emplace_back(std::move(fresh));
  made.value = text(number(after, 2));
  return made;
}

LedgerGroups FlashAttention3Scene::ledger_groups() const {
  LedgerGroups groups;
  for (const LedgerRow& row : trace_.ledger) groups.push_back({&row});
  return groups;
}

// ---- lanes --------------------------------------------------------------------------------------------

/// Activity over time, up to the cursor: copies, and for each warpgroup its products on the tensor cores and its
/// exponentials.
Box FlashAttention3Scene::lanes(const LaneMoment& now) const {
  const double at = clock_at(now);
  const std::vector<LaneSpan> all = lane_spans();
  constexpr Name kNames[] = {"waits", "copies", "products_s", "softmax", "products_o", "stores"};
  std::vector<SpanList> marks;
  for (const Name name : kNames) marks.push_back(SpanList(name, "time", "lane", "tensor"));
  std::vector<std::vector<int>> k_tiles(marks.size());
  int lanes = 2;
  std::map<int, double> taken;  // where a lane's last number ends
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Span& span = all[i].span;
    lanes = std::max(lanes, lane_of(span) + 1);
    if (now.step == 0 || all[i].begin > at) continue;
    const bool waits = span.what == Activity::waits, soft = span.what == Activity::softmax;
    double begin = all[i].begin, end = std::min(all[i].end, at);
    if (emulated()) {
      std::tie(begin, end) =
          waits ? beats_.waits(begin, all[i].end, at) : beats_.of(begin, all[i].end, at);
    }
    double& until = taken.try_emplace(lane_of(span), -1).first->second;
    if (waits) begin = std::max(begin, until);
    if (begin >= end) continue;
    const auto what = static_cast<std::size_t>(span.what);
    const bool of_k = span.what == Activity::scores || span.tensor == 'K';
    const bool of_v = span.what == Activity::values || span.tensor == 'V';
    const Tensor tensor = of_k ? Tensor::k : of_v ? Tensor::v : Tensor::o;
    const bool free = begin >= until;
    if (!waits) until = std::max(until, end);
    marks[what].add({.lane = lane_of(span),
                     .begin = begin,
                     .end = end,
                     .state = waits ? State::wasted : State::plain,
                     .tone = soft    ? kSoftmax
                             : waits ? std::uint8_t{0}
                                     : tone_of(tensor),
                     .name = waits || !free    ? ""
                             : span.k_tile < 0 ? "O"
                                               : std::to_string(span.k_tile),
                     .about = waits || soft ? -1 : static_cast<int>(tensor),
                     .id = static_cast<int>(i)});
    const bool mine = span.q_tile == trace_.chosen.q_tile && span.head == trace_.chosen.head;
    k_tiles[what].push_back(mine ? span.k_tile : -1);
  }
  std::vector<Mark> drawn;
  for (std::size_t what = 0; what < marks.size(); ++what) {
    Spans spans = marks[what].made(emulated() ? beats_.at(at) + 1 : at);
    spans.items.about.push_back({"k_tile", {-1, k_tiles[what]}});
    drawn.emplace_back(std::move(spans));
  }
  if (now.step > 0 && !emulated()) {
    drawn.emplace_back(Rule{{"now"}, "time", at, State::current});
  }
  Box inner = box({"lanes"}, std::move(drawn), {},
                  {.weight = 1,
                   .least_width = 12,
                   .least_height = std::clamp(0.78f * static_cast<float>(lanes), 3.0f, 6.8f),
                   .left = kLane});
  return labelled({"busy"}, std::move(inner),
                  text(fmt::format("activity in block {}, {}: numbers are tiles of keys",
                                   trace_.chosen.block, counted(trace_.plan.threads, "thread")),
                       fmt::format("activity in block {}", trace_.chosen.block), "activity"),
                  {.weight = 1.1f});
}

// ---- tooltips --------------------------------------------------------------------------------------------

std::string FlashAttention3Scene::explain_span(const LaneMoment& now, int number) const {
  const std::vector<LaneSpan> all = lane_spans();
  if (number < 0 || number >= std::ssize(all)) return {};
  const Span& span = all[static_cast<std::size_t>(number)].span;
  const bool over = all[static_cast<std::size_t>(number)].end <= clock_at(now);
  constexpr const char* kWords[] = {"waits",        "copy of ", "S = Q K^T",
                                    "exponentials", "O += P V", "stores O"};
  std::string said = kWords[static_cast<std::size_t>(span.what)];
  if (span.what == Activity::copies) said += span.tensor;
  said += fmt::format(", tile of queries {} of head {}", span.q_tile, span.head);
  if (span.k_tile >= 0) said += fmt::format(", tile of keys {}", span.k_tile);
  said += fmt::format("\nfrom {} {}", trace_.clock_unit, span.begin);
  if (over) said += fmt::format(" to {}", span.end);
  return said;
}

std::string FlashAttention3Scene::explain(const View& view, const Key& key) const {
  const LaneMoment now = moment(view.cursor);
  if (is_tile(trace_, key)) return explain_tile(trace_, key.i, key.j);
  if (key.is({"Q", "K", "V", "O"})) {
    const bool across = key.is({"K", "V"});
    std::string said = fmt::format("{} {}: {} {}", key.name.text(), key.i,
                                   across ? "keys" : "queries", rows_of(trace_, key.i, !across));
    if (across && trace_.shape.kv_heads < trace_.shape.heads) {
      said += fmt::format("\nits head is shared by {} heads of Q",
                          trace_.shape.heads / trace_.shape.kv_heads);
    }
    if (key.is({"Q"})) said += "\nclick: follow its last query";
    if (key.is({"O"}) && judged(now)) {
      said += fmt::format("\n{} wrong",
                          counted(trace_.wrong[static_cast<std::size_t>(key.i)], "number"));
    }
    return said;
  }
  if (key.is({"kind"})) return explain_kind(key.i);
  if (key.is({"asked_bytes", "formula_bytes"})) {
    return explain_ledger(
        ledger_groups(), [&](const LedgerRow& row) { return asked_by(now, row); }, key,
        now.through);
  }
  if (key.is({"waits", "copies", "products_s", "softmax", "products_o", "stores"})) {
    return explain_span(now, key.i);
  }
  return explain_mask(trace_, key);
}

}  // namespace tilestep::scenes
