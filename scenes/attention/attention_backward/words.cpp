// The steps of the lesson on attention's gradients, in sentences.
#include "scenes/shared/words.hpp"

#include <fmt/format.h>

#include "scenes/attention/attention_backward/scene.hpp"

namespace tilestep::scenes {

using words::number;

std::string AttentionBackwardScene::sentence(const BackwardMoment& now) const {
  const int q = trace_.chosen.q_tile, query = trace_.chosen.query;
  if (now.now == nullptr && now.through) {
    return "The chosen query sees no key: its dQ is 0, and no block comes to its tile.";
  }
  if (now.now == nullptr) {
    return "The forward pass left O and one log-sum-exp per query, no weight.";
  }
  if (judged(now))
    return fmt::format("{}: {}", name_of(trace_.broken), outcome_of(trace_, "dQ, dK and dV", true));
  const int k = now.now->k_tile;
  const std::string d = number(static_cast<double>(trace_.row.d), 2);
  const int block = trace_.visit(q, k).block;
  if (now.phase == BackwardPhase::weights) {
    return fmt::format("Block {} has keys {} and recomputes the weights of Q {}: exp(s − lse).",
                       block, k, q);
  }
  if (now.phase == BackwardPhase::gradients) {
    return fmt::format("dP = dO V^T, and dS = P ∘ (dP − D): D of query {} is {}.", query, d);
  }
  if (now.through) {
    return fmt::format("The last part of dQ {} is added; no weight was ever in memory.", q);
  }
  return fmt::format(
      "dV {} and dK {} grow in registers; dQ {} is added to in memory: part {} of {}.", k, k, q,
      now.step, steps_in_all());
}

std::string AttentionBackwardScene::brief(const BackwardMoment& now) const {
  if (now.now == nullptr) return "Nothing computed yet.";
  if (judged(now)) return trace_.result.outcome;
  constexpr const char* kDoing[] = {"", "P", "dS", "dQ, dK and dV"};
  return fmt::format("Tile {}: {}", now.now->k_tile, kDoing[static_cast<std::size_t>(now.phase)]);
}

}  // namespace tilestep::scenes
