// What is said and asked of a backward pass.
#include <fmt/format.h>

#include <cmath>

#include "scenes/attention/flash_attention/scene.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using flash_attention::LedgerRow, flash_attention::Tensor;
using words::counted, words::number;

// ---- sentences ----------------------------------------------------------------------------------------

std::string FlashAttentionScene::sentence_of_backward(const FlashMoment& now) const {
  const int q = trace_.chosen.q_tile, query = trace_.chosen.query;
  if (now.now == nullptr && now.through) {
    return "The chosen query sees no key: its dQ is 0, and no block comes to its tile.";
  }
  if (now.now == nullptr) {
    return "O and a log-sum-exp a query are left of the forward pass, and no weight.";
  }
  const int k = now.now->k_tile;
  const std::string d = number(static_cast<double>(trace_.backward.d), 2);
  const int block = trace_.visit(q, k).block;
  if (now.phase == FlashPhase::scores) {
    return fmt::format("Block {} has keys {}, and makes the weights of Q {} again: exp(s − lse).",
                       block, k, q);
  }
  if (now.phase == FlashPhase::gradients) {
    return fmt::format("dP = dO V^T, and dS = P ∘ (dP − D): of query {} D is {}.", query, d);
  }
  if (now.through) {
    return fmt::format("The last part of dQ {} is added; no weight was ever in memory.", q);
  }
  return fmt::format(
      "dV {} and dK {} grow in registers; dQ {} is added to in memory: part {} of {}.", k, k, q,
      now.step, steps_in_all());
}

void FlashAttentionScene::find_backward_events() {
  const int all = steps_in_all();
  if (all == 0) return;
  events_.push_back({{1, 1}, "dS: the first tile"});
  if (all > 1) events_.push_back({{all, 2}, "dQ has all its parts"});
}

std::vector<picture::Symbol> FlashAttentionScene::backward_symbols() const {
  return {{"D",
           {"d", 0},
           4,
           "The sum of dO ∘ O over the columns of the query: how much its weights would pull "
           "together. It is taken from each dP, since weights of a softmax add up to 1.",
           {}}};
}

// ---- numbers ------------------------------------------------------------------------------------------

std::vector<Readout> FlashAttentionScene::backward_readouts(const FlashMoment& now) const {
  const std::string kernel = "recorded by the kernel while it ran on " + report_.device.name;
  std::vector<Readout> all = {
      {"lse", "log-sum-exp", number(static_cast<double>(trace_.backward.lse), 2), "",
       lab::Provenance::traced, "of the chosen query, " + kernel + " of the forward pass"},
      {"d", "D", number(static_cast<double>(trace_.backward.d), 2), "", lab::Provenance::traced,
       "sum of dO ∘ O of the chosen query, " + kernel}};
  all[1].about = {"d", 0};
  const auto [before, after] = sums_of_dq(now);
  const double so_far = now.phase == FlashPhase::values ? after : before;
  all.push_back({"dq", fmt::format("dQ[{}] so far", trace_.chosen.component),
                 now.step == 0 ? "–" : number(so_far, 4), "", lab::Provenance::derived,
                 "parts that blocks added, recorded; their sum, times 1/√d", Readout::accent});
  all.back().about = {"tensor", static_cast<int>(Tensor::dq)};
  return all;
}

SourceMark FlashAttentionScene::backward_source(const FlashMoment& now) const {
  const auto at = [&](FlashPhase phase) {
    if (phase == FlashPhase::scores) return flash_attention::Mark::scores;
    if (phase == FlashPhase::gradients) return flash_attention::Mark::d_s;
    return flash_attention::Mark::d_q;
  };
  const int current = now.now == nullptr ? -1 : static_cast<int>(at(now.phase));
  SourceMark mark = source_mark(flash_attention::source_path(variant(), trace_.pass, trace_.dtype),
                                trace_.lines, current);
  if (now.now == nullptr) return mark;
  const auto say = [&](FlashPhase phase, std::string value) {
    const int line = trace_.lines[static_cast<std::size_t>(at(phase))];
    if (line > 0) mark.values[line] = std::move(value);
  };
  say(FlashPhase::scores, fmt::format("tile = {}", now.now->k_tile));
  if (now.phase >= FlashPhase::gradients) {
    say(FlashPhase::gradients,
        fmt::format("D = {}", number(static_cast<double>(trace_.backward.d), 2)));
  }
  if (now.phase == FlashPhase::values) {
    say(FlashPhase::values, fmt::format("adds {}", number(static_cast<double>(now.now->dq), 3)));
  }
  return mark;
}

// ---- questions ----------------------------------------------------------------------------------------

/// What must be left of the forward pass.
Question FlashAttentionScene::kept_question() const {
  return about(
      {"ledger"},
      ask("Q, K and V are there anyway. What else does this pass need of the forward pass?",
          "O, and one number a query",
          {"The matrix of weights, and O", "O, and one number a key", "Nothing else"},
          "O makes D = rowsum(dO ∘ O), and exp(s − log-sum-exp) is the weight itself, without a "
          "maximum or a sum to look for."));
}

/// Weights made again: five products in place of four.
Question FlashAttentionScene::products_question() const {
  return about({"scores"},
               ask_count("Stored weights need four products of tiles: dP, dV, dQ and dK. How many "
                         "does this pass compute for each tile of scores?",
                         5, {4, 6, 8, 10},
                         "S = Q K^T comes first, once more: a quarter more multiplications, and no "
                         "matrix in memory."));
}

/// Blocks own keys: dQ is everybody's.
Question FlashAttentionScene::adders_question() const {
  const int blocks = steps_in_all();
  return about({"outputs"},
               ask_count(fmt::format("A block has a tile of keys, and walks over the queries. How "
                                     "many blocks add to tile {} of dQ?",
                                     trace_.chosen.q_tile),
                         blocks, {1, 2, 2 * blocks, blocks / 2},
                         "each tile of keys that it sees has a block, and they add in memory, by "
                         "atomics, in any order."));
}

/// Recompute or store? By what has to lie in memory between the passes, of all that was asked for.
Question FlashAttentionScene::keep_or_recompute_question() const {
  double kept = 0;
  for (const LedgerRow& row : trace_.ledger) {
    kept += static_cast<double>(row.kept);
  }
  const auto length = static_cast<double>(trace_.shape.asked_length);
  const double pitch = std::ceil(length / 8) * 8;  // of a row of weights in memory
  const double weights = trace_.shape.asked_heads * length * pitch * flash_attention::kElementBytes;
  const double ratio = (kept + weights) / kept;
  return about(
      {"ledger"},
      ask_ratio(
          fmt::format("Recompute or store? For {} of length {}: how many times as much must "
                      "lie in memory between the passes if weights are stored?",
                      counted(trace_.shape.asked_heads, "head"), trace_.shape.asked_length),
          ratio, {1, 1.25, 2, 4, 16, 64, 256},
          fmt::format("{} would lie there in place of {}, where recomputing costs a quarter more "
                      "multiplications on the same tiles and has no matrix to read back.",
                      bytes_text(kept + weights), bytes_text(kept))));
}

std::optional<Question> FlashAttentionScene::backward_question(int next) const {
  const auto asked = [&](const char* kind, Question question) {
    return std::optional(shuffled(of_kind(kind, std::move(question)), report_));
  };
  const bool last = next + 1 == steps_in_all();
  if (next == 1 && !last) return asked("kept", kept_question());
  if (last) return asked("keep-or-recompute", keep_or_recompute_question());
  if (next == 2) return asked("products", products_question());
  if (next == 3) return asked("adders", adders_question());
  return std::nullopt;
}

}  // namespace tilestep::scenes
