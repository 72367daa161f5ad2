// What is asked of the lesson on attention before a step.
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

/// Whether O and ℓ shrink at a step.
bool shrinks(const Step& step) {
  return std::isfinite(step.m_before) && step.m_after > step.m_before;
}

}  // namespace

// ---- what follows by thinking -------------------------------------------------------------------------

/// Of the tiles of scores, how many are computed: those that the mask does not hide, or all.
Question FlashAttentionScene::visited_question() const {
  const auto all = std::ssize(trace_.visits);
  const auto diagonal = static_cast<std::int64_t>(trace_.plan.q_tiles);
  const std::int64_t due = visited(trace_);
  return about(
      {"scores"},
      ask_count(fmt::format("{} × {} tiles of scores, with the mask {}. How many of them "
                            "will be computed for a head?",
                            trace_.plan.q_tiles, trace_.plan.k_tiles, name_of(trace_.mask)),
                due, {all, all / 2, (all - diagonal) / 2, all / 2 + diagonal / 2, diagonal},
                is_naive() ? std::string("the mask is put over the scores when they are there, and "
                                         "what it hides was computed in vain.")
                           : std::string("a tile is left out where no query sees any of its keys, "
                                         "and on the edge of the mask it is computed in full.")));
}

/// Of naive, which keeps scores in memory.
Question FlashAttentionScene::crossings_question() const {
  return about(
      {"ledger"},
      ask_count("How many times will each score, or the weight that it becomes, cross the memory "
                "bus?",
                4, {1, 2, 3}, "S is written and read, and so is P."));
}

Question FlashAttentionScene::flops_question() const {
  return about(
      {"scores"},
      ask("This kernel keeps no score in memory. How many of the multiplications does that "
          "save, on the same tiles?",
          "None", {"Half of them", "All of S = Q K^T", "All of O = P V"},
          "both products are computed as before, and rescaling adds some: what is saved is "
          "traffic, since each score is used where it was made."));
}

/// flash-1: each tile of keys goes over all queries.
Question FlashAttentionScene::o_traffic_question() const {
  const int times = steps_in_all();
  return about({"outputs"},
               ask_count(fmt::format("Keys are in the outer loop. How many times will the sums of "
                                     "tile {} of O be read and written?",
                                     trace_.chosen.q_tile),
                         times, {1, 2, trace_.plan.q_tiles, 2 * times},
                         "it happens once a tile of keys that it sees, where flash-2 puts the "
                         "loops the other way round and writes O once."));
}

/// flash-2 with a causal mask: the last block has most to do.
Question FlashAttentionScene::busy_question() const {
  return about({"scores"},
               ask_count("The mask is causal, and a block has a tile of queries. How many times "
                         "more tiles of scores does the last block compute than the first?",
                         trace_.plan.k_tiles, {1, 2, trace_.plan.k_tiles / 2, 4},
                         fmt::format("the first block sees one tile of keys and the last all {}; "
                                     "a block that finishes early takes the next tile.",
                                     trace_.plan.k_tiles)));
}

// ---- what only the run says ---------------------------------------------------------------------------

Question FlashAttentionScene::rescale_question(int step) const {
  const Step& next = trace_.steps[static_cast<std::size_t>(step)];
  return about(
      {"chosen"},
      ask(fmt::format("Tile {} of keys comes next. Its largest score for query {} is {}, and m is "
                      "{}. What happens to ℓ and O before the tile is added?",
                      next.k_tile, trace_.chosen.query, text_of(next.tile_max),
                      text_of(next.m_before)),
          shrinks(next) ? "They shrink" : "They stay", {"They shrink", "They stay"},
          fmt::format("the tile peaks at {}, so that the factor is {}.", text_of(next.tile_max),
                      number(static_cast<double>(next.rescale), 3))));
}

Question FlashAttentionScene::shrunk_question(int step) const {
  const Step &next = trace_.steps[static_cast<std::size_t>(step)],
             &last = trace_.steps[static_cast<std::size_t>(step) - 1];
  const double kept = static_cast<double>(last.l) * static_cast<double>(next.rescale);
  return ask_to_set(
      fmt::format("Tile {} raises m of query {} from {} to {}; ℓ is {}. To what does ℓ shrink "
                  "before the tile's weights are added?",
                  next.k_tile, trace_.chosen.query, text_of(next.m_before), text_of(next.m_after),
                  number(static_cast<double>(last.l), 2)),
      // Never so much that ℓ as it stands would do.
      {"bar_l"}, "l", kept, std::min(0.06 * most_l(), (static_cast<double>(last.l) - kept) / 2),
      fmt::format("ℓ · exp({} − {}) = {}.", text_of(next.m_before), text_of(next.m_after),
                  number(kept, 2)));
}

Question FlashAttentionScene::outcome_question() const {
  const flash_attention::BrokenResult& what = trace_.result;
  const std::vector<std::string> choices = {"O comes out right", "Some of O is wrong",
                                            "All of O is wrong"};
  const std::size_t is = what.wrong == 0 ? 0 : what.wrong < what.elements ? 1 : 2;
  return about({"outputs"},
               ask(fmt::format("The kernel was broken on purpose: {}. What came of it?",
                               name_of(trace_.broken)),
                   choices[is], choices, outcome()));
}

// ---- which one when -----------------------------------------------------------------------------------

/// Each kind once, where it comes up first.
std::optional<Question> FlashAttentionScene::question(const View& view) const {
  const int next = view.cursor.tile;
  if (next >= steps_in_all() || view.cursor.phase != steps().last_phase(next)) return std::nullopt;
  const auto asked = [&](const char* kind, Question question) {
    return std::optional(shuffled(of_kind(kind, std::move(question)), report_));
  };
  const bool last = next + 1 == steps_in_all();
  if (broken() && last && next > 0) return asked("outcome", outcome_question());
  if (next == 0) return asked("visited", visited_question());
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

/// The first step after the second that raises the maximum; −1: none does. Not of a kernel that skips it.
int FlashAttentionScene::first_shrinking() const {
  if (trace_.broken == Break::skip_rescale) return -1;
  for (int step = 2; step < steps_in_all(); ++step) {
    if (shrinks(trace_.steps[static_cast<std::size_t>(step)])) return step;
  }
  return -1;
}

double FlashAttentionScene::most_l() const {
  double most = 0;
  for (const Step& step : trace_.steps) {
    if (std::isfinite(step.l)) most = std::max(most, static_cast<double>(step.l));
  }
  return picture::rounded(0, most).second;
}

}  // namespace tilestep::scenes
