// The questions of the lesson on sparse attention before a step, and the events of its trace.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/attention/sparse_attention/cost.hpp"
#include "scenes/attention/sparse_attention/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using sparse_attention::Break, sparse_attention::Finding, sparse_attention::Method,
    sparse_attention::TileKind;
using words::percent, words::significant;

std::optional<Question> SparseAttentionScene::mask_question(int next) const {
  if (next == std::min(2, trace_.tiles())) {
    return of_kind(
        "ninety-percent",
        ask("A rule hides 90 % of all pairs. How many times as fast does it make attention?",
            "It depends on where they are",
            {"10 times", "Not at all: hidden scores are computed all the same",
             "Less than twice, whatever the rule"},
            "only tiles without a single pair are left out, and a tile with one is computed "
            "whole."));
  }
  if (next == trace_.costs()) {
    return of_kind(
        "exact",
        ask("Which of these is exactly causal attention?", "Skipping tiles above the diagonal",
            {"A window with sinks", "The best tokens of an indexer", "Blocks by lot"},
            "what it skips has no weight at all; the others leave out keys that have "
            "some."));
  }
  const int row = next - 1;
  if (row == trace_.tiles() / 2 && row < trace_.tiles() && trace_.tiles() >= 4 &&
      trace_.finding == Finding::pairs) {
    int skipped = 0;
    for (int t = 0; t < trace_.tiles(); ++t)
      skipped += trace_.kind(row, t) == TileKind::skipped ? 1 : 0;
    return of_kind(
        "row-skipped",
        ask_count(
            fmt::format("How many of the {} tiles of row {} are skipped?", trace_.tiles(), row),
            skipped, {skipped + 1, std::max(skipped - 1, 0), 0, trace_.tiles() - 1},
            "those behind the diagonal, and those in which no query sees a key."));
  }
  if (next == trace_.tiles() && trace_.tiles() > 2 && trace_.finding == Finding::pairs) {
    const double before = 100 * counted({next - 1, 1}).computed / all_pairs(),
                 after = 100 * counted({next, 1}).computed / all_pairs();
    return of_kind("last-row",
                   ask_to_set(fmt::format("All rows but the last: {} of all pairs are computed. "
                                          "How many with it?",
                                          percent(before / 100)),
                              {"share_plot"}, "share", after, 3,
                              fmt::format("its tiles that are not skipped add {}.",
                                          percent((after - before) / 100))));
  }
  if (next == trace_.after() && trace_.finding == Finding::pairs) {
    const double share = trace_.sizes.back().computed / all_pairs();
    const double seen = counted({trace_.tiles(), 1}).seen / all_pairs();
    return of_kind(
        "larger-tiles",
        ask_number(
            fmt::format("{} of the pairs are seen. How many are computed in tiles of 32 × 32?",
                        percent(seen)),
            100 * share, {100 * seen, 100.0, 100 * (seen + share) / 2, 50.0},
            [](double one) { return percent(one / 100); },
            "a larger tile is left out only if more pairs are hidden together.", 0.01));
  }
  return std::nullopt;
}

std::optional<Question> SparseAttentionScene::index_question(int next) const {
  if (next == std::min(4, trace_.tiles())) {
    return of_kind(
        "index-square",
        ask("The indexer chooses a few tokens for each query. How many pairs does it score?",
            "All: it is quadratic in the context",
            {"Those that are chosen", "As many as there are tokens", "None: it looks keys up"},
            "what is chosen must be compared; but a pair costs it 16,384 FLOPs, and attention "
            "278,528."));
  }
  if (next == 7 && next <= trace_.tiles() && trace_.broken != Break::topk_ties) {
    const auto before = floor({next - 1, 1}), after = floor({next, 1});
    if (before && after && std::isfinite(*after)) {
      const auto axes = extent().axes;
      const auto axis = std::find_if(axes.begin(), axes.end(), [](const picture::Axis& one) {
        return one.name == picture::Name("score");
      });
      return of_kind("floor", ask_to_set(fmt::format("The floor is {}. Where is it after {} more "
                                                     "tokens?",
                                                     words::number(*before, 2), trace_.tile),
                                         {"index_plot"}, "score", *after, 0.06 * axis->high,
                                         fmt::format("each that comes above it pushes the smallest "
                                                     "out: {}.",
                                                     words::number(*after, 2))));
    }
  }
  if (next == 6 && next <= trace_.tiles() && trace_.broken != Break::topk_ties) {
    const int passed = trace_.passed[static_cast<std::size_t>(next - 1)];
    return of_kind(
        "passed", ask_count(fmt::format("The best {} are kept. How many of the next {} tokens come "
                                        "above the floor?",
                                        trace_.top_k, trace_.tile),
                            passed, {trace_.tile, 0, trace_.tile / 2, passed + 1},
                            "the floor rises as better ones come, and fewer pass it."));
  }
  if (next == trace_.after() && trace_.broken == Break::none && trace_.top_k < trace_.length) {
    const double mass = trace_.mass();
    return of_kind(
        "mass",
        ask_number(
            fmt::format("{} of {} tokens are chosen. How much of the weight of attention "
                        "to all do they have?",
                        trace_.top_k, trace_.length),
            100 * mass, {100.0 * trace_.top_k / trace_.length, 100.0, 50.0, 99.0},
            [](double one) { return percent(one / 100); },
            "weights are far from equal, and the indexer finds most of the large ones.", 0.01));
  }
  if (next == trace_.costs()) {
    const int most = sparse_attention::kContexts.back();
    const double times = sparse_attention::flops_at(most).times();
    return of_kind(
        "fewer-flops",
        ask_ratio(
            fmt::format(
                "At {} K tokens attention reads {} rows, {} times fewer. How many times fewer "
                "FLOPs are that?",
                most / 1024, sparse_attention::kModelTopK, most / sparse_attention::kModelTopK),
            times, {64.0, 32.0, 4.6},
            "the indexer still scores every token, and has most of the work now."));
  }
  return std::nullopt;
}

std::optional<Question> SparseAttentionScene::question(const View& view) const {
  const int next = view.cursor.tile + 1;
  if (next > trace_.costs()) return std::nullopt;
  return placed(trace_.indexes() ? index_question(next) : mask_question(next), report_,
                picture::Key{"gap"});
}

void SparseAttentionScene::find_events() {
  events_.clear();
  if (trace_.indexes()) {
    for (int tile = 1; tile <= trace_.tiles(); ++tile) {
      if (!floor({tile, 1})) continue;
      events_.push_back({{tile, 1}, "there is a floor"});
      break;
    }
    if (trace_.result.wrong > 0) events_.push_back({{trace_.after(), 1}, "numbers are wrong"});
    events_.push_back({{trace_.costs(), 0}, "what a token costs"});
    return;
  }
  for (int row = 0; row < trace_.tiles(); ++row) {
    if (counted({row + 1, 1}).missed == 0) continue;
    events_.push_back({{row + 1, 1}, "pairs are missing"});
    break;
  }
  events_.push_back({{trace_.after(), 0}, "other sizes of tiles"});
  events_.push_back({{trace_.costs(), 0}, "all methods"});
}

}  // namespace tilestep::scenes
