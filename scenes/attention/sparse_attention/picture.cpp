// The picture of the lesson on sparse attention: pairs, tiles and shares of a mask; scores, the best, rows and weights of
// dsa; what it comes to.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/attention/sparse_attention/cost.hpp"
#include "scenes/attention/sparse_attention/scene.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using sparse_attention::Kept, sparse_attention::Method, sparse_attention::TileKind;
using words::percent, words::significant;

namespace {

constexpr std::uint8_t kSeen = 1, kScoreTone = 5, kMassTone = 4;
constexpr std::uint8_t kBest = SparseAttentionScene::kBestTone;
constexpr float kLeft = 2.8f;

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const Method method : all_of<Method>()) names.emplace_back(name_of(method));
  return names;
}

}  // namespace

Extent SparseAttentionScene::extent() const {
  const int n = trace_.length, tile = trace_.tile, tiles = trace_.tiles();
  std::vector<std::string> contexts;
  for (const int one : sparse_attention::kContexts)
    contexts.push_back(fmt::format("{} K", one / 1024));
  const auto band = [](Name name, int count, int group, const char* title) {
    return Axis{.name = name,
                .kind = Axis::band,
                .count = count,
                .group = group,
                .title = text(title),
                .ticks = true,
                .least_slot = 1.5f};
  };
  const auto named = [](Name name, std::vector<std::string> names, bool ticks) {
    const int count = static_cast<int>(names.size());
    return Axis{.name = name,
                .kind = Axis::band,
                .count = count,
                .ticks = ticks,
                .names = std::move(names),
                .least_slot = 10};
  };
  const auto percents = [](Name name, const char* title) {
    return Axis{
        .name = name, .high = 100, .fixed = true, .step = 25, .title = text(title), .ticks = true};
  };
  const int slots = trace_.pages() * sparse_attention::kPageSize;
  std::vector<Axis> axes = {
      band("key", n, tile, "key"),
      band("query", n, tile, ""),
      band("key_tile", tiles, 0, "tile of keys"),
      band("query_tile", tiles, 0, ""),
      percents("share", "%"),
      percents("method_share", "%"),
      percents("size_share", ""),
      percents("mass", "%"),
      named("what", {"seen", "computed"}, false),
      named("size", {"4 × 4", "8 × 8", "16 × 16", "32 × 32"}, true),
      named("method", method_names(), false),
      named("method_again", std::vector<std::string>(count_of<Method>()), false),
      band("token", n, tile, "token"),
      named("kept_row", {""}, false),
      band("slot", slots, sparse_attention::kPageSize, "row of the cache, by page"),
      named("context", std::move(contexts), true),
      {.name = "mflop", .kind = Axis::log, .low = 10, .high = 1e5, .ticks = true},
      {.name = "mb", .kind = Axis::log, .low = 0.1, .high = 100, .ticks = true}};
  if (trace_.indexes()) {
    double most = 0;
    for (const float one : trace_.index) {
      if (std::isfinite(one)) most = std::max(most, std::abs(static_cast<double>(one)));
    }
    axes.push_back({.name = "score", .low = 0, .high = rounded(0, most).second, .ticks = true});
    axes.push_back({.name = "weight", .low = 0, .high = 0.4, .ticks = true});
  }
  return {std::move(axes)};
}

Picture SparseAttentionScene::picture(const Extent& extent, const View& view) const {
  const Cursor cursor = view.cursor;
  Picture made{{marked(sentence(view), symbols(view))}, extent.axes};
  const Box gap = box({"gap"}, {}, {}, {.weight = 0, .least_height = 0.5f});
  if (trace_.indexes()) {
    if (costs(cursor)) {
      made.root = column({"sparse", 3}, {gap, row({"ledgers"}, {ledger(false), ledger(true)})});
      made.subject = {"flops", "bytes"};
      return made;
    }
    made.root =
        column({"sparse", 2}, {gap, index(cursor), best(cursor), cache(cursor), weights(cursor)});
    made.subject = is_after(cursor) ? std::vector<std::string>{"cache", "weights"}
                                    : std::vector<std::string>{"index", "best"};
    return made;
  }
  if (is_after(cursor) || costs(cursor)) {
    made.root =
        column({"sparse", costs(cursor) ? 4 : 1}, {gap, costs(cursor) ? methods() : sizes()});
    made.subject = {costs(cursor) ? "methods" : "sizes"};
    return made;
  }
  const Box beside = column({"beside"}, {tiles(cursor), shares(cursor)},
                            {.rank = 1, .weight = 0.2f, .least_width = 8});
  made.root = column({"sparse", 0}, {gap, row({"mask"}, {pairs(cursor), beside})});
  made.subject = {"pairs", "tiles", "shares"};
  return made;
}

// ---- masks ----------------------------------------------------------------------------------------------

Box SparseAttentionScene::pairs(Cursor cursor) const {
  const int n = trace_.length;
  Cells cells{items("pair", n * n)};
  cells.x = "key";
  cells.y = "query";
  cells.columns = n;
  cells.items.per_row = n;
  cells.items.fold = Fold::most;
  cells.items.heat = true;
  for (int q = 0; q < n; ++q) {
    for (int k = 0; k < n; ++k) {
      // Thousands of cells: in vain is pale, for hatching each would be as many lines.
      const State state = state_of(cursor, q, k);
      const bool none = state == State::to_come, vain = state == State::wasted;
      cells.items.state.each.push_back(none || vain ? State::plain : state);
      cells.items.tone.each.push_back(none ? std::uint8_t{0} : kSeen);
      cells.items.value.each.push_back(none ? NAN : vain ? 0.0f : 1.0f);
    }
  }
  const std::string what =
      fmt::format("{}: queries down, keys across; pale: in vain", name_of(trace_.method));
  return labelled(
      {"pairs"},
      box({"pair_plot"}, {std::move(cells)}, {}, {.least_height = 8, .aspect = 1, .left = 2.2f}),
      text(what, "pairs"), {.weight = 1, .least_width = 10, .least_height = 10});
}

Box SparseAttentionScene::tiles(Cursor cursor) const {
  const int count = trace_.tiles();
  Cells cells{items("tile", count * count)};
  cells.items.tone.all = kSeen;
  cells.x = "key_tile";
  cells.y = "query_tile";
  cells.columns = count;
  cells.items.per_row = count;
  for (int at = 0; at < count * count; ++at) {
    const int row = at / count;
    const bool found = row < begun(cursor);
    const auto kind = found ? trace_.kind(row, at % count) : TileKind::skipped;
    // The row's own are framed: what a tile is must stay to be seen.
    const bool is_now = row == cursor.tile - 1 && kind != TileKind::skipped;
    cells.items.flags.each.push_back(is_now ? kPicked : kNone);
    cells.items.state.each.push_back(found ? State::done : State::to_come);
    cells.items.glyph.each.push_back(kind == TileKind::full      ? kSolid
                                     : kind == TileKind::partial ? kStriped
                                                                 : kHollow);
  }
  return labelled(
      {"tiles"},
      box({"tile_plot"}, {std::move(cells)}, {}, {.least_height = 3, .aspect = 1, .left = 2.2f}),
      text("tiles: full, partial (striped), skipped (empty)", "full, partial, skipped", "tiles"),
      {.rank = 2, .weight = 1, .least_width = 6, .least_height = 4.5f});
}

Box SparseAttentionScene::shares(Cursor cursor) const {
  const Counts now = counted(cursor);
  SpanList list("share_of", "share", "what");
  const double each[] = {100 * now.seen / all_pairs(), 100 * now.computed / all_pairs()};
  std::vector<Mark> ends;
  for (int lane = 0; lane < 2; ++lane) {
    list.add({lane, 0, each[lane], State::done, kSeen});
    ends.emplace_back(lane_end({"share_end", lane}, "share", "what", each[lane],
                               text(percent(each[lane] / 100))));
  }
  ends.insert(ends.begin(), list.made(100));
  return labelled(
      {"shares"},
      box({"share_plot"}, std::move(ends), {}, {.least_height = 2, .left = 5, .right = 3}),
      {marked("of all pairs: seen, and computed, so far", symbols({cursor})),
       marked("so far", symbols({cursor}))},
      {.rank = 1, .weight = 0.6f, .least_width = 8, .least_height = 3.5f, .most_height = 9});
}

Box SparseAttentionScene::sizes() const {
  const int count = static_cast<int>(trace_.sizes.size());
  Bars bars{items("size_of", count), "size", "size_share"};
  bars.items.format = {Format::fixed, 0, "%"};
  for (const auto& one : trace_.sizes) {
    const double share = one.computed / all_pairs();
    bars.items.value.each.push_back(static_cast<float>(100 * share));
    bars.items.tone.each.push_back(kSeen);
    bars.items.state.each.push_back(one.tile == trace_.tile ? State::current : State::done);
  }
  const double seen = counted({trace_.tiles(), 1}).seen / all_pairs();
  return labelled({"sizes"},
                  box({"size_plot"},
                      {std::move(bars), Rule{{"seen_rule"},
                                             "size_share",
                                             100 * seen,
                                             State::plain,
                                             text("seen: " + percent(seen), "seen")}},
                      {}, {.least_height = 6, .left = kLeft, .right = 6}),
                  text("% of all pairs that are computed, by the tile's size", "computed, by tile"),
                  {.weight = 1, .least_width = 14, .least_height = 8});
}

Box SparseAttentionScene::methods() const {
  const auto plot = [&](Key key, Name name, Name end, Name axis, Name rows, std::uint8_t tone,
                        const auto& share) {
    SpanList list(name, axis, rows);
    std::vector<Mark> marks;
    for (const Kept& one : trace_.methods) {
      const int lane = static_cast<int>(one.method);
      const State state = one.method == trace_.method ? State::current : State::done;
      list.add({lane, 0, 100 * share(one), state, tone});
      marks.emplace_back(lane_end({end, lane}, axis, rows, 100 * share(one),
                                  text(percent(std::round(1e4 * share(one)) / 1e4))));
    }
    marks.insert(marks.begin(), list.made(100));
    const bool first = rows == Name("method");
    return box(key, std::move(marks), {},
               {.least_width = 6, .least_height = 5, .left = first ? 6.5f : 0.5f, .right = 4});
  };
  const auto computed = [&](const Kept& one) { return one.computed / all_pairs(); };
  const auto mass = [](const Kept& one) { return one.mass; };
  return labelled(
      {"methods"},
      {row({"method_rows"}, {plot({"method_share"}, "method_computed", "computed_end",
                                  "method_share", "method", kSeen, computed),
                             plot({"method_mass"}, "method_kept", "mass_end", "mass",
                                  "method_again", kMassTone, mass)})},
      text("pairs computed; of causal attention's weights, kept", "computed; kept", "methods"),
      {.weight = 1.4f, .least_width = 14, .least_height = 6});
}

// ---- dsa --------------------------------------------------------------------------------------------------

Box SparseAttentionScene::index(Cursor cursor) const {
  const int n = trace_.length;
  const std::vector<int> tokens = kept(cursor);
  Bars bars{items("index_of", n), "token", "score"};
  for (int t = 0; t < n; ++t) {
    const int tile = t / trace_.tile;
    const bool scored = tile < begun(cursor), is_now = tile == cursor.tile - 1;
    const bool is_kept = std::find(tokens.begin(), tokens.end(), t) != tokens.end();
    bars.items.value.each.push_back(scored ? trace_.index[static_cast<std::size_t>(t)] : 0);
    bars.items.state.each.push_back(!scored  ? State::to_come
                                    : is_now ? State::current
                                             : State::done);
    bars.items.tone.each.push_back(is_kept ? kBest : std::uint8_t{0});
  }
  std::vector<Mark> marks = {std::move(bars)};
  if (const auto least = floor(cursor))
    marks.emplace_back(Rule{{"floor_rule"}, "score", *least, State::plain, text("floor")});
  return labelled(
      {"index"},
      box({"index_plot"}, std::move(marks), {}, {.least_height = 3, .left = kLeft, .right = 3}),
      {marked("1  the indexer's score of each token; line: the floor", symbols({cursor})),
       marked("1  scores and floor", symbols({cursor}))},
      {.weight = 1.5f, .least_width = 14, .least_height = 5});
}

Box SparseAttentionScene::best(Cursor cursor) const {
  const int n = trace_.length;
  const std::vector<int> tokens = kept(cursor);
  Cells cells{items("best_of", n)};
  cells.x = "token";
  cells.y = "kept_row";
  cells.columns = n;
  cells.items.tone.all = kBest;
  for (int t = 0; t < n; ++t) {
    const bool is_kept = std::find(tokens.begin(), tokens.end(), t) != tokens.end();
    const bool is_now = t / trace_.tile == cursor.tile - 1;
    cells.items.state.each.push_back(!is_kept ? State::to_come
                                     : is_now ? State::current
                                              : State::done);
    cells.items.glyph.each.push_back(is_kept ? kSolid : kHollow);
  }
  return labelled(
      {"best"},
      box({"best_row"}, {std::move(cells)}, {}, {.least_height = 1, .left = kLeft, .right = 3}),
      text(fmt::format("2  the best {} so far", trace_.top_k), "2  top-k"),
      {.weight = 0.4f, .least_width = 14, .least_height = 2.6f, .most_height = 4.5f});
}

Box SparseAttentionScene::cache(Cursor cursor) const {
  const int slots = trace_.pages() * sparse_attention::kPageSize;
  Cells cells{items("row_of", slots)};
  cells.x = "slot";
  cells.y = "kept_row";
  cells.columns = slots;
  cells.items.tone.all = kBest;
  cells.items.state.each.assign(static_cast<std::size_t>(slots), State::to_come);
  cells.items.glyph.each.assign(static_cast<std::size_t>(slots), kHollow);
  const bool known = cursor >= Cursor{trace_.after(), 0};
  const std::vector<int> own = kept({trace_.tiles(), 1});
  for (std::size_t i = 0; known && i < trace_.rows.size(); ++i) {
    const int line = trace_.rows[i];
    if (line < 0) continue;
    // The right row of the right token: one that is among the query's own best.
    const int token = trace_.chosen[i];
    const bool right = token >= 0 && line == trace_.row_of(token) &&
                       std::find(own.begin(), own.end(), token) != own.end();
    cells.items.state.each[static_cast<std::size_t>(line)] = !right             ? State::wrong
                                                             : is_after(cursor) ? State::current
                                                                                : State::done;
    cells.items.glyph.each[static_cast<std::size_t>(line)] = kSolid;
  }
  return labelled(
      {"cache"},
      box({"cache_row"}, {std::move(cells)}, {}, {.least_height = 1, .left = kLeft, .right = 3}),
      text("3  rows of the latent cache that attention reads", "3  rows read"),
      {.rank = 1, .weight = 0.5f, .least_width = 14, .least_height = 3.4f, .most_height = 5.5f});
}

Box SparseAttentionScene::weights(Cursor cursor) const {
  const int n = trace_.length;
  const bool known = cursor >= Cursor{trace_.after(), 1};
  std::vector<Mark> marks;
  Bars bars{items("weight_of", n), "token", "weight"};
  Curve all{.key = {"dense"}, .ax = "token", .ay = "weight"};
  for (int t = 0; t < n; ++t) {
    const auto at = static_cast<std::size_t>(t);
    bars.items.value.each.push_back(known ? trace_.sparse[at] : 0);
    bars.items.state.each.push_back(known ? State::done : State::to_come);
    if (!known) continue;
    all.x.push_back(t + 0.5);
    all.y.push_back(static_cast<double>(trace_.dense[at]));
  }
  bars.items.tone.all = kBest;
  marks.emplace_back(std::move(bars));
  if (known) {
    all.dashed = true;
    all.end = text("to all");
    marks.emplace_back(std::move(all));
  }
  return labelled(
      {"weights"},
      box({"weight_plot"}, std::move(marks), {}, {.least_height = 3, .left = kLeft, .right = 3}),
      text("weights over what was read; dashed: over all tokens", "weights"),
      {.rank = 1, .weight = 1.2f, .least_width = 14, .least_height = 5});
}

Box SparseAttentionScene::ledger(bool bytes) const {
  const Name axis = bytes ? Name("mb") : Name("mflop");
  std::vector<Mark> marks;
  const auto add = [&](Key key, const char* name, std::uint8_t tone, bool dashed,
                       const auto& part) {
    Curve curve{.key = key, .ax = "context", .ay = axis};
    for (const int context : sparse_attention::kContexts) {
      const auto cost =
          bytes ? sparse_attention::bytes_at(context) : sparse_attention::flops_at(context);
      curve.x.push_back(static_cast<double>(curve.x.size()) + 0.5);
      curve.y.push_back(part(cost) / 1e6);
    }
    curve.tone = tone;
    curve.dashed = dashed;
    if (!dashed) curve.base = {bytes ? 0.1 : 10.0};
    curve.end = text(name);
    marks.emplace_back(std::move(curve));
  };
  using Cost = sparse_attention::Cost;
  const int which = bytes ? 1 : 0;
  add({"cost_dense", which}, "dense", 0, false, [](const Cost& c) { return c.dense; });
  add({"cost_index", which}, "indexer", kScoreTone, true, [](const Cost& c) { return c.index; });
  add({"cost_attention", which}, "attention", kBest, true,
      [](const Cost& c) { return c.attention; });
  add({"cost_sparse", which}, "both", kMassTone, false, [](const Cost& c) { return c.sparse(); });
  Box plot = box({bytes ? Name("bytes_plot") : Name("flops_plot")}, std::move(marks), {},
                 {.least_height = 6, .left = 3.6f, .right = 5});
  return labelled({bytes ? Name("bytes") : Name("flops")}, std::move(plot),
                  bytes ? text("MB read for a token, a layer (derived)", "MB per token")
                        : text("MFLOP for a token, a layer (derived)", "MFLOP per token"),
                  {.weight = 1, .least_width = 14, .least_height = 8});
}

// ---- explanations -------------------------------------------------------------------------------------------

std::string SparseAttentionScene::explain(const View& view, const Key& key) const {
  const Cursor cursor = view.cursor;
  if (key.is({"pair"}) && key.i >= 0 && key.j >= 0 && key.i < trace_.length &&
      key.j < trace_.length && !trace_.indexes()) {
    const int row = key.i / trace_.tile;
    if (row >= begun(cursor)) return fmt::format("query {}, key {}", key.i, key.j);
    const bool seen = trace_.sees(key.i, key.j);
    return fmt::format("query {}, key {}: {}, in a {} tile", key.i, key.j,
                       seen ? "seen" : "not seen", name_of(trace_.kind(row, key.j / trace_.tile)));
  }
  if (key.is({"index_of"}) && key.i >= 0 && key.i / trace_.tile < begun(cursor) &&
      key.i < std::ssize(trace_.index)) {
    return fmt::format(
        "token {}: index score {}", key.i,
        words::number(static_cast<double>(trace_.index[static_cast<std::size_t>(key.i)]), 3));
  }
  return {};
}

}  // namespace tilestep::scenes
