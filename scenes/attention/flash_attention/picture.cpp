// The picture of the lesson on attention: the matrix of scores in tiles, and around it the strips of Q, K, V and O on
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

/// For the strips beside the matrix, in line heights.
constexpr Layout kQueries = {.weight = 0.05f, .least_width = 1.9f, .least_height = 5.9f};
constexpr Layout kScores = {.weight = 1, .least_width = 8, .least_height = 5.9f};
constexpr Layout kRescaled = {.weight = 0.04f, .least_width = 1.7f, .least_height = 5.9f};
constexpr Layout kOutputs = {.weight = 0.08f, .least_width = 2.3f, .least_height = 5.9f};

}  // namespace

// ---- where things stand -----------------------------------------------------------------------------

Extent FlashAttentionScene::extent() const {
  const auto line = [](Name name, std::pair<double, double> ends) {
    return Axis{.name = name, .low = ends.first, .high = ends.second};
  };
  const auto kernels = names_of(Variant{});
  double most = 1, flops = 1;
  for (const Costs& each : costs_) {
    most = std::max(most, each.total);
    flops = std::max(flops, each.flops);
  }
  double o = 0;
  for (const flash_attention::Step& step : trace_.steps) {
    if (std::isfinite(step.o)) o = std::max(o, std::abs(static_cast<double>(step.o)));
  }
  Extent extent{{keys_axis(trace_), band_axis("q", trace_.plan.q_tiles), band_axis("kind", 3),
                 Axis{.name = "bytes", .high = most / 1e6, .title = text("MB"), .ticks = true},
                 Axis{.name = "flops", .high = flops / 1e6, .title = text("MFLOP"), .ticks = true},
                 band_axis("one", 1), line("l", {0, most_l()}), line("o", rounded(0, o)),
                 line("error", rounded(0, worst_error()))}};
  // Two bands, so that either works without the other.
  for (const Name lanes : {Name("kernel"), Name("multiplier")}) {
    extent.axes.push_back({.name = lanes,
                           .kind = Axis::band,
                           .count = static_cast<int>(costs_.size()),
                           .names = {kernels.begin(), kernels.end()},
                           .least_slot = 3});
  }
  return extent;
}

Picture FlashAttentionScene::picture(const Extent& extent, const View& view) const {
  const FlashMoment now = moment(view.cursor);
  std::vector<Box> beside;
  if (!is_naive()) beside.push_back(chosen_row(now));
  beside.push_back(traffic(now));
  beside.push_back(products(now));
  if (has_bytes()) beside.push_back(quantized(now));
  add_masks(beside, trace_);
  if (!note_lines().empty() || judged(now)) {
    beside.push_back(notes_box(trace_, judged(now) ? result_sentence_of(trace_, false) : Text(),
                               note_lines(), false));
  }
  Box right = column({"beside"}, std::move(beside), {.rank = 1, .weight = 1.05f});
  return {{marked(sentence(now), symbols(view)), {{brief(now)}}},
          extent.axes,
          column({"all"}, {strips(now, view), std::move(right)}, {.flow = Layout::tall}),
          {"scores", "formulas", "traffic"}};
}

// ---- the matrix, and what stands round it -------------------------------------------------------------

Box FlashAttentionScene::strips(const FlashMoment& now, const View& view) const {
  int corners = 0;
  const auto beside = [&](Name name, const char* letter, Box middle) {
    const auto corner = [&](const Layout& layout, std::vector<Mark> marks = {}) {
      return box({"corner", corners++}, std::move(marks), {}, low(layout));
    };
    // The letter is next to its strip.
    const Lines letters = lines(name, {text(letter)});
    std::vector<Box> boxes;
    boxes.push_back(corner(kQueries, {letters}));
    boxes.push_back(std::move(middle));
    if (counts_rescaled()) boxes.push_back(corner(kRescaled));
    boxes.push_back(corner(kOutputs));
    return boxes;
  };
  constexpr Layout flat = {.weight = 0.085f};
  std::vector<Box> middle = {queries(now), scores(now)};
  if (counts_rescaled()) middle.push_back(rescaled(now));
  middle.push_back(outputs(now));
  std::vector<Box> rows = {row({"above"}, beside("name_k", "K", keys(now, false)), flat)};
  if (view.guess) {  // it is written here, above the column numbers
    rows.push_back(box({"gap"}, {}, {}, {.weight = 0, .least_height = 0.9f}));
  }
  rows.push_back(row({"across"}, std::move(middle)));
  Layout below = flat;
  if (view.guess) below.rank = 9;  // on the smallest screens V makes room for it
  rows.push_back(row({"below"}, beside("name_v", "V", keys(now, true)), below));
  const char* tensors = is_naive()       ? "Q, K, V, S, P and O"
                        : keeps_scores() ? "Q, K, V, S and O"
                                         : "Q, K, V and O";
  return column({"strips"}, {in_device_memory(trace_, tensors, std::move(rows)), legend_box(now)});
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
  hatch_filled(trace_, strip, false);
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
  hatch_filled(trace_, strip, true);
  return box(of_values ? Key{"values"} : Key{"keys"}, {std::move(strip)}, {}, low(kScores));
}

/// Whether a block is at a tile of scores: blocks run side by side. For naive's softmax: the chosen query's row.
bool FlashAttentionScene::worked_on(const FlashMoment& now, int q, int k) const {
  if (now.now == nullptr || now.through) return false;
  const bool chosen_row = q == trace_.chosen.q_tile;
  if (!is_naive()) return fate(now, q, k) == TileFate::now;
  return now.phase == FlashPhase::scores ? k == now.now->k_tile : chosen_row;
}

Box FlashAttentionScene::scores(const FlashMoment& now) const {
  const int across = trace_.plan.k_tiles;
  Cells grid = score_cells(trace_, [&](int q, int k) { return fate(now, q, k); });
  // As tall as wide, or somewhat wider, if the tiles are square; otherwise each side uses all of its space.
  if (trace_.plan.q_tiles == across) grid.scale = "tile";
  grid.widest = 5;
  for (int i = 0; i < grid.items.count; ++i) {
    const int q = i / across, k = i % across;
    const auto at = static_cast<std::size_t>(i);
    const TileVisit& visit = trace_.visits[at];
    const TileFate tile = fate(now, q, k);
    if (worked_on(now, q, k)) {
      grid.items.state.each[at] = State::current;
    } else if (tile == TileFate::stored && (visit.kind == TileKind::skipped || !is_naive())) {
      grid.items.state.each[at] = State::wasted;  // in vain
    }
    // A stored matrix fills up; otherwise tiles wait with their texture and leave nothing behind.
    if (!is_naive()) continue;
    if (tile == TileFate::to_come) grid.items.glyph.each[at] = kHollow;
    if (visit.order >= 0) grid.items.names[at] = std::to_string(visit.block);
  }
  Box made = box({"scores"}, {std::move(grid)}, text("S: queries × keys", "S"), kScores);
  if (!keeps_scores()) made.place = Place::registers;
  if (now.now == nullptr || now.through) return made;
  const int q = trace_.chosen.q_tile, k = now.now->k_tile;
  const bool chunks = trace_.shape.columns != trace_.shape.head_dim;
  const int last = trace_.shape.columns / kChunk - 1;
  const Key query = chunks ? Key{"Q", q, 0} : Key{"Q", q};
  made.marks.emplace_back(Frame{{"row"}, {query, Key{"O", q}}});
  if (is_naive() && now.phase >= FlashPhase::weights) return made;
  made.marks.emplace_back(
      Frame{{"column"},
            {chunks ? Key{"K", 0, k} : Key{"K", k}, chunks ? Key{"V", last, k} : Key{"V", k}}});
  return made;
}

/// How many rows of each tile of queries found a new maximum in their last tile of keys.
Box FlashAttentionScene::rescaled(const FlashMoment& now) const {
  Cells strip{items("rows", trace_.plan.q_tiles)};
  strip.columns = 1;
  strip.y = "q";
  const bool yet = now.phase >= FlashPhase::rescale;
  for (int q = 0; q < trace_.plan.q_tiles; ++q) {
    const TileVisit* last = nullptr;
    for (int k = 0; k < trace_.plan.k_tiles; ++k) {
      const TileVisit& visit = trace_.visit(q, k);
      if (!seen(now, visit) || (step_of(trace_.steps, visit) == now.step && !yet)) continue;
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
  Layout layout = kRescaled;
  if (variant() == Variant::flash_2) layout.place = Place::registers;  // flash-1 stores m
  return box({"rescaled"}, {std::move(strip)}, text("m ↑"), layout);
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
    // Until it is written it is in registers.
    const bool written = variant() != Variant::flash_2 || row_through(now, q);
    strip.items.glyph.each.push_back(begun && !written ? kHollow : kSolid);
  }
  return box({"outputs"}, {std::move(strip)}, text("O"), kOutputs);
}

Box FlashAttentionScene::legend_box(const FlashMoment& now) const {
  if (is_naive()) return legend(trace_, now.step > 0, "masked", kSolid, 4);
  return legend(trace_, now.step > 0, "skipped", kHollow, 4);
}

// ---- what the pointer is told --------------------------------------------------------------------------

std::string FlashAttentionScene::explain_scores(const FlashMoment& now, int q, int k) const {
  if (q < 0 || k < 0 || q >= trace_.plan.q_tiles || k >= trace_.plan.k_tiles) return {};
  const TileVisit& visit = trace_.visit(q, k);
  std::string said = explain_tile(trace_, q, k);
  if (visit.order < 0) return said;
  if (!seen(now, visit)) return said;
  // The effect of a visit is known when it is complete.
  const bool through = step_of(trace_.steps, visit) < now.step || now.phase == FlashPhase::values;
  if (!through) return said;
  if (visit.rescaled >= 0 && !is_naive()) {
    said += fmt::format("\n{} found a new maximum", counted(visit.rescaled, "row"));
  }
  if (visit.o_reads > 0 || visit.o_writes > 0) {
    said += fmt::format("\nrows of O: {} read, {} written", visit.o_reads, visit.o_writes);
  }
  if (visit.begin >= 0 && trace_.clock_unit == "ns") {
    said += fmt::format("\n{}–{} ns", visit.begin, visit.end);
  }
  return said;
}

std::string FlashAttentionScene::explain_strip(const FlashMoment& now, const Key& key) const {
  const bool chunks = trace_.shape.columns != trace_.shape.head_dim;
  const bool across = key.is({"K", "V"});
  const int tile = across && chunks && key.j >= 0 ? key.j : key.i;
  if (key.is({"rows"})) {
    return fmt::format(
        "queries {}: rows whose maximum rose in their last tile of keys,\nso their ℓ and O were "
        "rescaled",
        rows_of(trace_, key.i, true));
  }
  std::string said = fmt::format("{} {}: {} {}", key.name.text(), tile, across ? "keys" : "queries",
                                 rows_of(trace_, tile, !across));
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
  if (key.is({"S"})) return explain_scores(now, key.i, key.j);
  if (key.is({"Q", "K", "V", "O", "rows"})) return explain_strip(now, key);
  if (key.is({"kind"})) return explain_kind(key.i);
  return explain_side(now, key);
}

}  // namespace tilestep::scenes
