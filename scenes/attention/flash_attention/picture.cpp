// The picture of the lesson on attention: the matrix of scores in tiles, and round it the strips of Q, K, V and O on
// the same axes.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenes/attention/flash_attention/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using flash_attention::Break, flash_attention::Tensor, flash_attention::TileKind,
    flash_attention::TileVisit;
using words::counted;

namespace {

constexpr int kMostNumbered = 24;  ///< tiles that have room for their numbers
constexpr int kChunk = 16;         ///< columns of a tile that a cell shows where zeros fill some
/// Of the strips beside the matrix, in heights of a line.
constexpr Layout kQueries = {.weight = 0.05f, .least_width = 1.9f, .least_height = 5.9f};
constexpr Layout kScores = {.weight = 1, .least_width = 8, .least_height = 5.9f};
constexpr Layout kRescaled = {.weight = 0.04f, .least_width = 1.7f, .least_height = 5.9f};
constexpr Layout kGradients = {.weight = 0.05f, .least_width = 2.3f, .least_height = 5.9f};
constexpr Layout kOutputs = {.weight = 0.08f, .least_width = 2.3f, .least_height = 5.9f};

Layout low(Layout layout) {
  layout.least_height = 0.9f;
  return layout;
}

/// A tensor's strip lights up with its bar and its bytes under Data.
void of_tensor(Items& items, Tensor tensor) {
  items.about.emplace_back(Name("tensor"), Column<int>{static_cast<int>(tensor)});
  items.tone.all = tone_of(tensor);
}

}  // namespace

// ---- where things stand -----------------------------------------------------------------------------

Extent FlashAttentionScene::extent() const {
  const auto band = [](Name name, int count) {
    return Axis{.name = name, .kind = Axis::band, .count = count, .align = 0.5f, .least_slot = 0};
  };
  const auto line = [](Name name, std::pair<double, double> ends) {
    return Axis{.name = name, .low = ends.first, .high = ends.second};
  };
  Axis keys = band("k", trace_.plan.k_tiles);
  keys.ticks = trace_.plan.k_tiles > kMostNumbered;
  double most = 1, lowest = 0, highest = 1, heaviest = 0;
  for (const flash_attention::LedgerRow& row : trace_.ledger) {
    most = std::max(most, static_cast<double>(row.formula_loaded + row.formula_stored));
    most = std::max(most, static_cast<double>(row.loaded + row.stored));
  }
  for (const float score : trace_.scores) {
    if (!std::isfinite(score)) continue;
    lowest = std::min<double>(lowest, score);
    highest = std::max<double>(highest, score);
  }
  for (const float weight : trace_.weights) {
    if (std::isfinite(weight)) heaviest = std::max<double>(heaviest, weight);
  }
  double o = 0;
  for (const flash_attention::Step& step : trace_.steps) {
    if (std::isfinite(step.o)) o = std::max(o, std::abs(static_cast<double>(step.o)));
  }
  std::pair<double, double> ds{0, 0};
  const auto widen = [](std::pair<double, double>& ends, float value) {
    if (!std::isfinite(value)) return;
    ends = {std::min<double>(ends.first, value), std::max<double>(ends.second, value)};
  };
  for (const float weight : trace_.backward.p) {
    if (std::isfinite(weight)) heaviest = std::max<double>(heaviest, weight);
  }
  for (const float value : trace_.backward.ds) widen(ds, value);
  Axis time = line("time", {0, clocked_until()});
  time.ticks = true;
  time.title = emulated() ? text("events in order, not time", "events") : text("cycles");
  Axis lane = band("lane", 2);
  lane.names = {"copies of K", "copies of V"};
  int consumers = 0;
  for (const flash_attention::Event& event : trace_.events) {
    consumers = std::max(consumers, event.lane);
  }
  for (int c = 1; c <= consumers; ++c) {
    lane.names.push_back(fmt::format("products {}", c));
    lane.names.push_back(fmt::format("softmax {}", c));
  }
  lane.count = static_cast<int>(lane.names.size());
  return {{std::move(keys), band("q", trace_.plan.q_tiles), band("kind", 3),
           line("bytes", rounded(0, most)), band("one", 1), line("l", {0, most_l()}),
           line("o", rounded(0, o)), band("key", trace_.shape.length),
           line("score", rounded(lowest, highest)), line("weight", rounded(0, heaviest)),
           line("ds", rounded(ds.first, ds.second)), std::move(time), std::move(lane),
           line("error", rounded(0, worst_error()))}};
}

Picture FlashAttentionScene::picture(const Extent& extent, const View& view) const {
  const FlashMoment now = moment(view.cursor);
  std::vector<Box> beside;
  beside.push_back(is_backward() ? gradient_row(now)
                   : is_naive()  ? row_bars(now)
                                 : chosen_row(now));
  if (has_lanes()) beside.push_back(lanes(now));
  beside.push_back(ledger(now));
  if (has_bytes()) beside.push_back(quantized(now));
  if (trace_.shape.asked_length > trace_.shape.length) beside.push_back(whole_mask());
  if (trace_.documents.size() > 1) beside.push_back(padding());
  if (!note_lines().empty() || judged(now)) beside.push_back(notes(now));
  Box right =
      column({"beside"}, std::move(beside), {.rank = 1, .weight = has_lanes() ? 1.25f : 0.85f});
  return {{marked(sentence(now), symbols(view)), {{brief(now)}}},
          extent.axes,
          row({"all"}, {strips(now, view), std::move(right)})};
}

// ---- the matrix, and what stands round it -------------------------------------------------------------

Box FlashAttentionScene::strips(const FlashMoment& now, const View& view) const {
  int corners = 0;
  const auto beside = [&](Name name, const char* letter, Box middle) {
    const auto corner = [&](const Layout& layout, std::vector<Mark> marks = {}) {
      return box({"corner", corners++}, std::move(marks), {}, low(layout));
    };
    // The letter stands next to its strip.
    const Lines letters = lines(name, {text(letter)});
    std::vector<Box> boxes;
    if (is_backward()) boxes.push_back(corner(kQueries));
    boxes.push_back(corner(is_backward() ? kGradients : kQueries, {letters}));
    boxes.push_back(std::move(middle));
    if (counts_rescaled()) boxes.push_back(corner(kRescaled));
    boxes.push_back(corner(kOutputs));
    return boxes;
  };
  // Four of them leave their room to the matrix.
  const Layout flat = {.weight = is_backward() ? 0.03f : 0.085f};
  if (is_backward()) {
    return column(
        {"strips"},
        {row({"above"}, beside("name_k", "K", of_keys(now, Tensor::k)), flat),
         row({"above", 1}, beside("name_v", "V", of_keys(now, Tensor::v)), flat),
         row({"across"}, {queries(now), output_gradients(now), scores(now), query_gradients(now)}),
         row({"below"}, beside("name_dk", "dK", of_keys(now, Tensor::dk)), flat),
         row({"below", 1}, beside("name_dv", "dV", of_keys(now, Tensor::dv)), flat), legend(now)});
  }
  std::vector<Box> middle = {queries(now), scores(now)};
  if (counts_rescaled()) middle.push_back(rescaled(now));
  middle.push_back(outputs(now));
  std::vector<Box> rows = {row({"above"}, beside("name_k", "K", keys(now, false)), flat)};
  if (view.guess) {  // it is written here, where numbers of columns would stand under it
    rows.push_back(box({"gap"}, {}, {}, {.weight = 0, .least_height = 0.9f}));
  }
  rows.push_back(row({"across"}, std::move(middle)));
  Layout below = flat;
  if (view.guess) below.rank = 9;  // on the smallest screens V makes room for it
  rows.push_back(row({"below"}, beside("name_v", "V", keys(now, true)), below));
  rows.push_back(legend(now));
  return column({"strips"}, std::move(rows));
}

/// Where zeros fill the columns of a tile, a cell stands for 16 columns, and those of zeros are hatched.
void FlashAttentionScene::hatch_filled(Cells& cells, bool upright) const {
  const int all = trace_.shape.columns, used = trace_.shape.head_dim;
  if (all == used) return;
  const int chunks = all / kChunk, tiles = cells.items.count;
  const Items whole = cells.items;
  cells.items.count = tiles * chunks;
  cells.items.per_row = upright ? tiles : chunks;
  cells.columns = cells.items.per_row;
  cells.items.state.each.clear();
  cells.items.glyph.each.clear();
  cells.items.names.clear();
  for (int i = 0; i < cells.items.count; ++i) {
    const int tile = upright ? i % tiles : i / chunks, chunk = upright ? i / tiles : i % chunks;
    const bool hollow = !whole.glyph.each.empty() && whole.glyph.each[tile] == kHollow;
    const bool filled = chunk * kChunk >= used && !hollow;
    cells.items.state.each.push_back(filled ? State::wasted : whole.state.each[tile]);
    cells.items.glyph.each.push_back(hollow ? kHollow : kSolid);
  }
}

Box FlashAttentionScene::queries(const FlashMoment& now) const {
  Cells strip{items("Q", trace_.plan.q_tiles)};
  strip.columns = 1;
  strip.y = "q";
  strip.items.act = {Act::set, "query"};
  of_tensor(strip.items, Tensor::q);
  for (int q = 0; q < trace_.plan.q_tiles; ++q) {
    const bool chosen = q == trace_.chosen.q_tile && now.step > 0 && !now.through;
    strip.items.state.each.push_back(chosen                               ? State::current
                                     : now.through || row_through(now, q) ? State::done
                                     : row_begun(now, q) || (is_naive() && now.step > 0)
                                         ? State::plain
                                         : State::to_come);
    strip.items.names.push_back(std::to_string(q));
  }
  hatch_filled(strip, false);
  return box({"queries"}, {std::move(strip)}, text("Q"), kQueries);
}

Box FlashAttentionScene::keys(const FlashMoment& now, bool of_values) const {
  Cells strip{items(of_values ? Name("V") : Name("K"), trace_.plan.k_tiles)};
  strip.x = "k";
  of_tensor(strip.items, of_values ? Tensor::v : Tensor::k);
  const int here = now.now != nullptr ? now.now->k_tile : -1;
  for (int k = 0; k < trace_.plan.k_tiles; ++k) {
    const TileVisit& visit = trace_.visit(trace_.chosen.q_tile, k);
    const bool fetched = is_naive() ? (of_values ? now.through : now.step > k) : seen(now, visit);
    const bool used_now =
        of_values ? now.phase == FlashPhase::values : now.phase == FlashPhase::scores;
    const bool all_at_once = is_naive() && of_values;
    const bool current = !now.through && used_now && (k == here || all_at_once);
    strip.items.state.each.push_back(current                                    ? State::current
                                     : visit.order < 0 || !fetched              ? State::to_come
                                     : k == here && !now.through && !is_naive() ? State::plain
                                                                                : State::done);
    strip.items.glyph.each.push_back(visit.order < 0 ? kHollow : kSolid);
    strip.items.names.push_back(visit.order < 0 ? "" : std::to_string(k));
  }
  hatch_filled(strip, true);
  return box(of_values ? Key{"values"} : Key{"keys"}, {std::move(strip)}, {}, low(kScores));
}

/// Whether a block is at a tile of scores: those run side by side. Of naive's softmax the chosen query's row is shown.
bool FlashAttentionScene::worked_on(const FlashMoment& now, int q, int k) const {
  if (now.now == nullptr || now.through) return false;
  const bool chosen_row = q == trace_.chosen.q_tile;
  if (!is_naive()) return fate(now, q, k) == TileFate::now;
  return now.phase == FlashPhase::scores ? k == now.now->k_tile : chosen_row;
}

Box FlashAttentionScene::scores(const FlashMoment& now) const {
  const int across = trace_.plan.k_tiles;
  Cells grid{items("S", trace_.plan.q_tiles * across)};
  grid.items.per_row = grid.columns = across;
  grid.x = "k";
  grid.y = "q";
  // Square where tiles are; else each side has all of its room.
  if (trace_.plan.q_tiles == across) grid.scale = "tile";
  grid.items.act = {Act::go};
  std::vector<int> steps;
  for (int i = 0; i < grid.items.count; ++i) {
    const int q = i / across, k = i % across;
    const TileVisit& visit = trace_.visits[static_cast<std::size_t>(i)];
    const TileFate tile = fate(now, q, k);
    const bool in_vain = tile == TileFate::stored &&
                         (visit.kind == TileKind::skipped || trace_.broken == Break::materialize);
    grid.items.state.each.push_back(worked_on(now, q, k)        ? State::current
                                    : in_vain                   ? State::wasted
                                    : tile <= TileFate::to_come ? State::to_come
                                                                : State::done);
    // Of what is stored the matrix fills; else its tiles wait with their texture, and leave nothing.
    const bool hollow = tile == TileFate::never || tile == TileFate::gone ||
                        (is_naive() && tile == TileFate::to_come);
    grid.items.glyph.each.push_back(hollow                            ? kHollow
                                    : visit.kind == TileKind::partial ? kStriped
                                                                      : kSolid);
    grid.items.names.push_back(visit.order < 0 ? ""
                               : is_naive()    ? std::to_string(visit.block)
                                               : std::to_string(visit.order));
    steps.push_back(q == trace_.chosen.q_tile ? k : -1);
  }
  grid.items.about = {{Name("k_tile"), Column<int>{-1, std::move(steps)}}};
  Box made = box({"scores"}, {std::move(grid)}, {}, kScores);
  // Backward four strips take from its height; it keeps enough for its numbers.
  if (is_backward()) {
    made.least_height = std::clamp(1.0f * static_cast<float>(trace_.plan.q_tiles), 6.0f, 8.0f);
  }
  if (now.now == nullptr || now.through) return made;
  const int q = trace_.chosen.q_tile, k = now.now->k_tile;
  const bool chunks = trace_.shape.columns != trace_.shape.head_dim;
  const int last = trace_.shape.columns / kChunk - 1;
  const Key query = chunks ? Key{"Q", q, 0} : Key{"Q", q};
  made.marks.emplace_back(Frame{{"row"}, {query, is_backward() ? Key{"dQ", q} : Key{"O", q}}});
  if (is_naive() && now.phase >= FlashPhase::weights) return made;
  made.marks.emplace_back(Frame{{"column"},
                                {chunks ? Key{"K", 0, k} : Key{"K", k}, is_backward() ? Key{"dV", k}
                                                                        : chunks ? Key{"V", last, k}
                                                                                 : Key{"V", k}}});
  return made;
}

/// Of each tile of queries how many of its rows found a new maximum in their last tile of keys.
Box FlashAttentionScene::rescaled(const FlashMoment& now) const {
  Cells strip{items("rows", trace_.plan.q_tiles)};
  strip.columns = 1;
  strip.y = "q";
  const bool yet = now.phase >= FlashPhase::rescale;
  for (int q = 0; q < trace_.plan.q_tiles; ++q) {
    const TileVisit* last = nullptr;
    for (int k = 0; k < trace_.plan.k_tiles; ++k) {
      const TileVisit& visit = trace_.visit(q, k);
      if (!seen(now, visit) || (trace_.step_of(visit) == now.step && !yet)) continue;
      if (last == nullptr || visit.order >= last->order) last = &visit;
    }
    const bool any = last != nullptr && last->rescaled >= 0;
    strip.items.names.push_back(any ? std::to_string(last->rescaled) : "");
    strip.items.state.each.push_back(!any ? State::to_come
                                     : q == trace_.chosen.q_tile && !now.through &&
                                             now.phase == FlashPhase::rescale
                                         ? State::current
                                         : State::plain);
  }
  return box({"rescaled"}, {std::move(strip)}, text("m ↑"), kRescaled);
}

Box FlashAttentionScene::outputs(const FlashMoment& now) const {
  Cells strip{items("O", trace_.plan.q_tiles)};
  strip.columns = 1;
  strip.y = "q";
  of_tensor(strip.items, Tensor::o);
  for (int q = 0; q < trace_.plan.q_tiles; ++q) {
    const int wrong = judged(now) ? trace_.wrong[static_cast<std::size_t>(q)] : 0;
    const bool works = q == trace_.chosen.q_tile && now.step > 0 && !now.through &&
                       (now.phase == FlashPhase::values || now.phase == FlashPhase::rescale);
    const bool begun = is_naive() ? now.phase == FlashPhase::values : row_begun(now, q);
    strip.items.state.each.push_back(wrong > 0             ? State::wrong
                                     : works               ? State::current
                                     : row_through(now, q) ? State::plain
                                     : begun               ? State::done
                                                           : State::to_come);
    int times = 0;
    for (int k = 0; k < trace_.plan.k_tiles; ++k) {
      const TileVisit& visit = trace_.visit(q, k);
      if (seen(now, visit) && visit.o_reads > 0) ++times;
    }
    strip.items.names.push_back(wrong > 0   ? std::to_string(wrong)
                                : times > 0 ? fmt::format("{}×", times)
                                            : "");
  }
  return box({"outputs"}, {std::move(strip)}, text("O"), kOutputs);
}

/// What the textures mean, and how many tiles are of each kind.
Box FlashAttentionScene::legend(const FlashMoment& now) const {
  std::array<int, 3> counts{};
  for (const TileVisit& visit : trace_.visits) ++counts[static_cast<std::size_t>(visit.kind)];
  Cells cells{items("kind", 3)};
  cells.x = "kind";
  const bool all = is_naive();
  // A block of flash-3 visits a tile even where it sees none.
  const bool in_vain = std::any_of(
      trace_.visits.begin(), trace_.visits.end(),
      [](const TileVisit& one) { return one.kind == TileKind::skipped && one.order >= 0; });
  // How many there are is asked before the first step.
  constexpr const char* kWords[] = {"skipped", "partial", "full"};
  for (const int kind : {2, 1, 0}) {
    std::string name = kind > 0  ? kWords[kind]
                       : all     ? "in vain"
                       : in_vain ? "all masked"
                                 : kWords[kind];
    if (now.step > 0) name += fmt::format(" {}", counts[static_cast<std::size_t>(kind)]);
    cells.items.names.push_back(std::move(name));
  }
  cells.items.state.each = {all ? State::done : State::to_come, all ? State::done : State::to_come,
                            all && counts[0] > 0 ? State::wasted : State::to_come};
  cells.items.glyph.each = {kSolid, kStriped, static_cast<std::uint8_t>(all ? kSolid : kHollow)};
  return box({"legend"}, {std::move(cells)}, {},
             {.rank = is_backward() ? 5 : 4, .weight = 0, .least_width = 12, .least_height = 1});
}

// ---- what the pointer is told --------------------------------------------------------------------------

std::string FlashAttentionScene::rows_of(int tile, bool of_queries) const {
  const int size = of_queries ? trace_.plan.block_q : trace_.plan.block_k;
  const int first = tile * size, last = std::min(first + size, trace_.shape.length) - 1;
  return first == last ? std::to_string(first) : fmt::format("{}–{}", first, last);
}

std::string FlashAttentionScene::explain_tile(const FlashMoment& now, int q, int k) const {
  if (q < 0 || k < 0 || q >= trace_.plan.q_tiles || k >= trace_.plan.k_tiles) return {};
  const TileVisit& visit = trace_.visit(q, k);
  std::string said = fmt::format("queries {} × keys {}\n", rows_of(q, true), rows_of(k, false));
  said += visit.kind == TileKind::full ? "full: every query sees every key, no score is asked for"
          : visit.kind == TileKind::partial ? "partial: the mask asks for each score"
          : visit.order < 0                 ? "skipped: never fetched, never multiplied"
                                            : "all masked, and computed in vain";
  if (visit.order < 0) return said;
  said += fmt::format("\nblock {}, its tile number {}", visit.block, visit.order);
  if (!seen(now, visit)) return said;
  // What a visit did is known when it is through.
  const bool through = trace_.step_of(visit) < now.step || now.phase == FlashPhase::values;
  if (!through) return said;
  if (visit.rescaled >= 0 && !is_naive()) {
    said += fmt::format("\n{} found a new maximum", counted(visit.rescaled, "row"));
  }
  if (is_backward() && visit.o_writes > 0) {
    said += fmt::format("\n{} of dQ added to", counted(visit.o_writes, "row"));
  } else if (visit.o_reads > 0 || visit.o_writes > 0) {
    said += fmt::format("\nrows of O: {} read, {} written", visit.o_reads, visit.o_writes);
  }
  if (visit.begin >= 0 && trace_.clock_unit == "ns") {
    said += fmt::format("\n{}–{} ns", visit.begin, visit.end);
  }
  return said;
}

std::string FlashAttentionScene::explain_strip(const FlashMoment& now, const Key& key) const {
  const bool chunks = trace_.shape.columns != trace_.shape.head_dim;
  const bool across = key.is({"K", "V", "dK", "dV"});
  const int tile = across && chunks && key.j >= 0 ? key.j : key.i;
  if (key.is({"rows"})) {
    return fmt::format(
        "queries {}: rows whose maximum rose in their last tile of keys,\nso that "
        "their ℓ and O were rescaled",
        rows_of(key.i, true));
  }
  std::string said = fmt::format("{} {}: {} {}", key.name.text(), tile, across ? "keys" : "queries",
                                 rows_of(tile, !across));
  if (across && trace_.shape.kv_heads < trace_.shape.heads) {
    said += fmt::format("\nits head is shared by {} heads of Q",
                        trace_.shape.heads / trace_.shape.kv_heads);
  }
  if (chunks && key.is({"Q", "K", "V"})) said += fmt::format("\n{}", trace_.plan.filled);
  if (key.is({"Q"})) said += "\nclick: follow its last query";
  if (key.is({"O"}) && judged(now)) {
    said +=
        fmt::format("\n{} wrong", counted(trace_.wrong[static_cast<std::size_t>(key.i)], "number"));
  }
  return said;
}

std::string FlashAttentionScene::explain(const View& view, const Key& key) const {
  const FlashMoment now = moment(view.cursor);
  if (key.is({"S"})) return explain_tile(now, key.i, key.j);
  if (is_backward() && key.is({"dO", "dQ", "dK", "dV", "P", "dS"})) {
    return explain_backward(now, key);
  }
  if (key.is({"Q", "K", "V", "O", "rows"})) return explain_strip(now, key);
  if (key.is({"kind"})) {
    constexpr const char* kWords[] = {
        "every query of the tile sees every key: no masking code runs",
        "some scores are masked: each is asked for", "no query sees any key"};
    return kWords[std::clamp(key.i, 0, 2)];
  }
  return explain_side(now, key);
}

}  // namespace tilestep::scenes
