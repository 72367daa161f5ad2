#include "scenes/attention/sparse_attention/scene.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/attention/sparse_attention/cost.hpp"
#include "kernels/base/lab/source.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using sparse_attention::Break, sparse_attention::Finding, sparse_attention::Kept,
    sparse_attention::Method, sparse_attention::TileKind;
using words::number, words::percent, words::significant;

StepAxis SparseAttentionScene::loaded(const sparse_attention::Trace&) {
  find_events();
  if (trace_.indexes()) return {trace_.costs(), 2, "tile", {"score", "choose"}, ""};
  return {trace_.costs(), 2, "row of tiles", {"find", "attend"}, ""};
}

// ---- what is known at a cursor --------------------------------------------------------------------------

SparseAttentionScene::Counts SparseAttentionScene::counted(Cursor cursor) const {
  Counts all;
  const int tile = trace_.tile;
  for (int row = 0; row < begun(cursor); ++row) {
    for (int q = row * tile; q < std::min((row + 1) * tile, trace_.length); ++q) {
      for (int k = 0; k < trace_.length; ++k) {
        if (!trace_.sees(q, k)) continue;
        ++all.seen;
        all.missed += row < ended(cursor) && !trace_.computes(row, k / tile) ? 1 : 0;
      }
    }
    for (int t = 0; t < trace_.tiles() && row < ended(cursor); ++t)
      all.computed += trace_.computes(row, t) ? trace_.pairs_of(row, t) : 0;
  }
  return all;
}

picture::State SparseAttentionScene::state_of(Cursor cursor, int query, int key) const {
  using picture::State;
  const int row = query / trace_.tile, column = key / trace_.tile;
  const bool is_now = row == cursor.tile - 1;
  if (row >= begun(cursor)) return State::to_come;
  const bool seen = trace_.sees(query, key);
  if (row >= ended(cursor)) return seen ? State::current : State::to_come;
  if (!trace_.computes(row, column)) return seen ? State::wrong : State::to_come;
  // A tile that counts as full is not asked again.
  const bool asked = trace_.kind(row, column) == TileKind::partial;
  if (!seen) return asked ? State::wasted : State::wrong;
  return is_now ? State::current : State::done;
}

std::vector<int> SparseAttentionScene::kept(Cursor cursor) const {
  std::vector<int> tokens;
  const int row = ended(cursor) - 1;
  for (int i = 0; row >= 0 && i < trace_.top_k; ++i) {
    const int token = trace_.best[static_cast<std::size_t>(row * trace_.top_k + i)];
    if (token >= 0) tokens.push_back(token);
  }
  return tokens;
}

std::optional<double> SparseAttentionScene::floor(Cursor cursor) const {
  const std::vector<int> tokens = kept(cursor);
  if (std::ssize(tokens) < trace_.top_k) return std::nullopt;
  double least = INFINITY;
  for (const int token : tokens)
    least = std::min(least, static_cast<double>(trace_.index[static_cast<std::size_t>(token)]));
  return least;
}

// ---- words --------------------------------------------------------------------------------------------

std::string SparseAttentionScene::mask_sentence(Cursor cursor) const {
  const Counts now = counted(cursor);
  if (cursor.tile <= 0) {
    return fmt::format("{} queries and {} keys: {} pairs, in tiles of {} × {}.", trace_.length,
                       trace_.length, significant(all_pairs(), 6), trace_.tile, trace_.tile);
  }
  if (is_after(cursor)) {
    if (!trace_.result.outcome.empty()) {
      return fmt::format("Tiles found by {}: {}.",
                         trace_.finding == Finding::corners ? "four corners" : "asking nothing",
                         trace_.result.outcome);
    }
    const double share = trace_.sizes.back().computed / all_pairs();
    return fmt::format("{} of the pairs are seen; tiles of {} compute {}.",
                       percent(now.seen / all_pairs()), trace_.sizes.back().tile, percent(share));
  }
  if (costs(cursor)) {
    const auto its = std::find_if(trace_.methods.begin(), trace_.methods.end(),
                                  [&](const Kept& one) { return one.method == trace_.method; });
    if (its == trace_.methods.end() || trace_.method == Method::own)
      return "What each method computes, and what it keeps of causal attention's weights.";
    return fmt::format("{} computes {} of all pairs and keeps {} of causal attention's weights.",
                       name_of(trace_.method), percent(its->computed / all_pairs()),
                       percent(its->mass));
  }
  const int row = cursor.tile - 1;
  int kinds[3] = {}, computed = 0, seen = 0;
  for (int t = 0; t < trace_.tiles(); ++t) {
    ++kinds[static_cast<int>(trace_.kind(row, t))];
    computed += trace_.computes(row, t) ? trace_.pairs_of(row, t) : 0;
  }
  for (int q = row * trace_.tile; q < std::min((row + 1) * trace_.tile, trace_.length); ++q) {
    for (int k = 0; k < trace_.length; ++k) seen += trace_.sees(q, k) ? 1 : 0;
  }
  if (cursor.phase == 0) {
    return fmt::format("Row {}: {} full, {} partial, {} skipped.", row, kinds[2], kinds[1],
                       kinds[0]);
  }
  if (now.missed > 0)
    return fmt::format("{} that are seen were in skipped tiles: they are missing.",
                       words::counted(now.missed, "pair"));
  return fmt::format("Row {}: {} pairs are computed for {} that are seen.", row, computed, seen);
}

std::string SparseAttentionScene::index_sentence(Cursor cursor) const {
  if (cursor.tile <= 0) {
    return fmt::format("The last of {} tokens looks for the {} that it should attend to.",
                       trace_.length, std::min(trace_.top_k, trace_.length));
  }
  if (costs(cursor)) {
    const int most = sparse_attention::kContexts.back();
    const auto flops = sparse_attention::flops_at(most), bytes = sparse_attention::bytes_at(most);
    if (cursor.phase == 0) {
      return fmt::format(
          "At {} K tokens: {} times fewer FLOPs, and the indexer takes {} times "
          "what attention does.",
          most / 1024, significant(flops.times(), 2),
          significant(flops.index / flops.attention, 2));
    }
    return fmt::format("At {} K tokens: {} times fewer FLOPs and {} times fewer bytes, not {}.",
                       most / 1024, significant(flops.times(), 2), significant(bytes.times(), 2),
                       most / sparse_attention::kModelTopK);
  }
  if (is_after(cursor)) {
    const auto read =
        std::count_if(trace_.rows.begin(), trace_.rows.end(), [](int row) { return row >= 0; });
    if (cursor.phase == 0)
      return fmt::format("Attention reads {} of {} rows of the cache.", read, trace_.length);
    if (trace_.result.wrong > 0) return fmt::format("{}.", trace_.result.outcome);
    return fmt::format("The chosen tokens have {} of the weight that attention to all would give.",
                       percent(trace_.mass()));
  }
  const int tile = cursor.tile - 1, first = tile * trace_.tile;
  const int last = std::min(first + trace_.tile, trace_.length) - 1;
  if (cursor.phase == 0) {
    return fmt::format("{} score tokens {} to {}, with FP8 numbers.",
                       words::counted(trace_.heads, "index head"), first, last);
  }
  const int passed = trace_.passed[static_cast<std::size_t>(tile)];
  const auto least = floor(cursor);
  if (!least)
    return fmt::format("{} are kept: there is room for {}.",
                       words::counted(std::ssize(kept(cursor)), "token"), trace_.top_k);
  return fmt::format("{} of {} came above the floor, which is {} now.", passed, last - first + 1,
                     number(*least, 2));
}

std::string SparseAttentionScene::sentence(const View& view) const {
  return trace_.indexes() ? index_sentence(view.cursor) : mask_sentence(view.cursor);
}

std::vector<picture::Symbol> SparseAttentionScene::symbols(const View&) const {
  if (!trace_.indexes()) {
    return {{"seen",
             {"share_of", 0},
             kBestTone,
             "Pairs of a query and a key that the rule lets it see.",
             {}}};
  }
  return {{"floor",
           {"floor_rule"},
           kBestTone,
           "The smallest score that is kept, once all places are taken.",
           {}}};
}

std::vector<std::string> SparseAttentionScene::stage_knobs() const {
  return {"method", "tile", trace_.indexes() ? "break" : "window"};
}

// ---- tables -------------------------------------------------------------------------------------------

Cursor SparseAttentionScene::known(const lab::Table& table, int row, int column) const {
  if (column == 0) return {};
  if (table.id == "rows") return {row + 1, column < 5 ? 0 : 1};
  if (table.id == "sizes") return {trace_.after(), 0};
  if (table.id == "methods") return {trace_.costs(), 0};
  if (table.id == "ledger") return {trace_.costs(), column < 5 ? 0 : 1};
  if (table.id == "tokens" && column == 1) return {row / trace_.tile + 1, 0};
  if (table.id == "tokens") return {trace_.after(), column == 2 ? 0 : 1};
  if (table.id == "stream" && column == 3) return {trace_.tiles(), 1};
  if (table.id == "stream") return {row + 1, 1};
  return Scene::known(table, row, column);
}

int SparseAttentionScene::table_row(std::string_view table_id, const View& view) const {
  const int tile = view.cursor.tile - 1;
  const bool in_tiles = tile >= 0 && tile < trace_.tiles();
  return in_tiles && (table_id == "rows" || table_id == "stream") ? tile : -1;
}

// ---- numbers beside the picture -------------------------------------------------------------------------

std::vector<Readout> SparseAttentionScene::cost_readouts() const {
  const int most = sparse_attention::kContexts.back();
  const auto flops = sparse_attention::flops_at(most), bytes = sparse_attention::bytes_at(most);
  const auto times = [](const char* id, const char* label, double value, std::string how) {
    return Readout{id, label, significant(value, 2), "×", lab::Provenance::derived, std::move(how)};
  };
  return {times("fewer_flops", "fewer FLOPs", flops.times(),
                "at 128 K tokens: of attention to all, over those of indexer and attention"),
          times("fewer_bytes", "fewer bytes", bytes.times(),
                "at 128 K tokens: rows of 656 bytes, index keys of 132"),
          times("index_times", "indexer to attention", flops.index / flops.attention,
                "at 128 K tokens: FLOPs"),
          {"break_even", "pays from", number(sparse_attention::break_even(), 0), "tokens",
           lab::Provenance::derived,
           "where indexer and attention to 2048 tokens take as many FLOPs as attention to all"}};
}

std::vector<Readout> SparseAttentionScene::readouts(const View& view) const {
  const Cursor cursor = view.cursor;
  if (trace_.indexes() && costs(cursor)) return cost_readouts();
  const std::string by = "by the kernels on " + report_.device.name;
  std::vector<Readout> all;
  const auto add = [&](const char* id, const char* label, std::string value, std::string unit,
                       std::string detail) {
    all.push_back(
        {id, label, std::move(value), std::move(unit), lab::Provenance::traced, std::move(detail)});
  };
  if (!trace_.indexes()) {
    const Counts now = counted(cursor);
    const std::string of = fmt::format("of {}", significant(all_pairs(), 6));
    add("seen", "pairs seen", std::to_string(now.seen), of, "by the rule, pair by pair, " + by);
    add("computed", "pairs computed", std::to_string(now.computed), of,
        "of the tiles that the kernel visited, " + by);
    if (now.missed > 0) {
      add("missed", "missing", std::to_string(now.missed), "pairs", "seen, in skipped tiles");
      all.back().look = Readout::wrong;
    }
  } else {
    const auto count = std::ssize(kept(cursor));
    const auto least = floor(cursor);
    add("kept", "kept", std::to_string(count), fmt::format("of {}", trace_.top_k),
        "tokens among the best so far, " + by);
    add("floor", "floor", least ? number(*least, 3) : "–", "",
        "the smallest score that is kept, once all places are taken, " + by);
    const bool weighed = cursor >= Cursor{trace_.after(), 1};
    add("mass", "weight kept", weighed ? percent(trace_.mass()) : "–", "",
        "of the last query's weights over all tokens, those of the chosen, " + by);
  }
  const Cursor end{trace_.after(), trace_.indexes() ? 1 : 0};
  if (cursor >= end && trace_.result.wrong > 0) {
    add("wrong", "wrong numbers", std::to_string(trace_.result.wrong),
        fmt::format("of {}", trace_.result.elements), "of O, all queries, against double");
    all.back().look = Readout::wrong;
  }
  return all;
}

// ---- the kernel -----------------------------------------------------------------------------------------

SourceMark SparseAttentionScene::source(const View& view) const {
  const Cursor cursor = view.cursor;
  const auto at = [](std::string_view path, const auto& steps, int current,
                     const std::string& value = {}) {
    const auto lines = lab::source_marks(path).lines(steps);
    SourceMark mark = source_mark(path, lines, current);
    if (!value.empty()) mark.values[lines[static_cast<std::size_t>(current)]] = value;
    return mark;
  };
  constexpr std::string_view kFind[] = {"own", "rule", "ask", "kind"};
  constexpr std::string_view kAttend[] = {"skip", "score", "mask"};
  constexpr std::string_view kIndex[] = {"relu", "index", "choose", "chosen"};
  constexpr std::string_view kGather[] = {"page", "gather", "weigh"};
  if (!trace_.indexes()) {
    if (cursor.tile <= 0 || cursor.tile > trace_.tiles())
      return at(sparse_attention::kMaskSource, kFind, cursor.tile <= 0 ? -1 : 0);
    const int row = cursor.tile - 1;
    std::string kinds;
    int pairs = 0;
    for (int t = 0; t < trace_.tiles(); ++t) {
      kinds += fmt::format(" {}", static_cast<int>(trace_.kind(row, t)));
      pairs += trace_.computes(row, t) ? trace_.pairs_of(row, t) : 0;
    }
    if (cursor.phase == 0)
      return at(sparse_attention::kMaskSource, kFind, 3, fmt::format("row {}:{}", row, kinds));
    return at(sparse_attention::kAttendSource, kAttend, 2,
              fmt::format("row {}: {} scores", row, pairs));
  }
  if (cursor.tile <= 0) return at(sparse_attention::kIndexSource, kIndex, -1);
  if (is_after(cursor))
    return at(sparse_attention::kGatherSource, kGather, cursor.phase == 0 ? 0 : 2);
  if (costs(cursor)) return at(sparse_attention::kIndexSource, kIndex, 3);
  if (cursor.phase == 0) return at(sparse_attention::kIndexSource, kIndex, 1);
  const auto least = floor(cursor);
  return at(sparse_attention::kIndexSource, kIndex, 2,
            least ? fmt::format("floor = {}", number(*least, 2)) : "all are kept");
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(sparse_attention, SparseAttentionScene)
