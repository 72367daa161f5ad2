// The questions of the lesson on attention before a step.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/attention/flash_attention/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using flash_attention::Break, flash_attention::Step, flash_attention::Variant;
using words::counted, words::number;

namespace {

std::string text_of(float value) {
  return number(static_cast<double>(value), 2);
}

}  // namespace

// ---- answered by thinking -----------------------------------------------------------------------------

/// For naive, which keeps scores in memory.
Question FlashAttentionScene::crossings_question() const {
  return about(
      {"ledger"},
      ask_count("How many times will each score, or the weight it becomes, cross the memory bus?",
                4, {1, 2, 3}, "S is written and read, and so is P."));
}

Question FlashAttentionScene::flops_question() const {
  return about({"scores"}, ask("This kernel keeps no score in memory. How many multiplications "
                               "does that save, on the same tiles?",
                               "None", {"Half of them", "All of S = Q K^T", "All of O = P V"},
                               "both products are computed as before, and rescaling adds some: it "
                               "saves traffic, since each score is used where it is computed."));
}

/// flash-1: each tile of keys walks over all queries.
Question FlashAttentionScene::o_traffic_question() const {
  const int times = steps_in_all();
  return about(
      {"outputs"},
      ask_count(fmt::format(
                    "Keys are in the outer loop. How often will tile {} of O be read and written?",
                    trace_.chosen.q_tile),
                times, {1, 2, trace_.plan.q_tiles, 2 * times},
                "once per tile of keys that it sees; flash-2 swaps the loops and writes O once."));
}

/// flash-2 with a causal mask: the last block has the most work.
Question FlashAttentionScene::busy_question() const {
  return about({"scores"},
               ask_count("The mask is causal; a block has one tile of queries. The last block "
                         "computes how many times as many tiles of scores as the first?",
                         trace_.plan.k_tiles, {1, 2, trace_.plan.k_tiles / 2, 4},
                         fmt::format("the first block sees one tile of keys and the last all {}; "
                                     "a multiprocessor that is done early takes the next block.",
                                     trace_.plan.k_tiles)));
}

// ---- answered by the run only ---------------------------------------------------------------------------

Question FlashAttentionScene::rescale_question(int step) const {
  const Step& next = trace_.steps[static_cast<std::size_t>(step)];
  return about(
      {"chosen"},
      ask(fmt::format("Tile {} of keys comes next. Its largest score for query {} is {}, and m is "
                      "{}. What happens to ℓ and O before the tile is added?",
                      next.k_tile, trace_.chosen.query, text_of(next.tile_max),
                      text_of(next.m_before)),
          shrinks(next) ? "They shrink" : "They stay", {"They shrink", "They stay"},
          fmt::format("the tile peaks at {}, so the factor is {}.", text_of(next.tile_max),
                      number(static_cast<double>(next.rescale), 3))));
}

// ---- order --------------------------------------------------------------------------------------------

/// Each kind once, where it comes up first.
std::optional<Question> FlashAttentionScene::question(const View& view) const {
  const int next = view.cursor.tile;
  if (!asks_at(view)) return std::nullopt;
  const bool last = next + 1 == steps_in_all();
  if (broken() && last && next > 0)
    return asked("outcome", outcome_question(trace_, "kernel was", "O", false));
  if (next == 0) {
    return asked(
        "visited",
        visited_question(trace_, "will be computed", {},
                         is_naive() ? "the mask is applied to finished scores, and those it hides "
                                      "were computed for nothing."
                                    : "a tile is skipped where no query sees any of its keys; on "
                                      "the edge of the mask it is computed in full."));
  }
  if (is_naive()) {
    return next == 1 ? asked("crossings", crossings_question()) : std::nullopt;
  }
  if (next == 1) return asked("new-maximum", rescale_question(next));
  if (next == first_shrinking()) return of_kind("shrunk-sum", shrunk_question(next));
  if (last && has_bytes()) return asked("quantized", quantized_question());
  if (last) return asked("flops", flops_question());
  const int free = first_shrinking() == 2 ? 3 : 2;
  if (next != free) return std::nullopt;
  if (variant() == Variant::flash_1) return asked("o-traffic", o_traffic_question());
  const bool halves = variant() == Variant::flash_2 &&
                      trace_.mask == flash_attention::Mask::causal &&
                      trace_.plan.q_tiles == trace_.plan.k_tiles;
  return halves ? asked("busy", busy_question()) : std::nullopt;
}

}  // namespace tilestep::scenes
