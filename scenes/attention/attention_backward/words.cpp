// What happens in the lesson on attention's gradients, in sentences.
#include "scenes/shared/words.hpp"

#include <fmt/format.h>

#include "scenes/attention/attention_backward/scene.hpp"

namespace tilestep::scenes {

using attention::Tensor;
using words::number;

std::string AttentionBackwardScene::sentence(const BackwardMoment& now) const {
  const int q = trace_.chosen.q_tile, query = trace_.chosen.query;
  if (now.now == nullptr && now.through) {
    return "The chosen query sees no key: its dQ is 0, and no block comes to its tile.";
  }
  if (now.now == nullptr) {
    return "O and a log-sum-exp a query are left of the forward pass, and no weight.";
  }
  if (judged(now)) return fmt::format("{}: {}", name_of(trace_.broken), outcome());
  const int k = now.now->k_tile;
  const std::string d = number(static_cast<double>(trace_.row.d), 2);
  const int block = trace_.visit(q, k).block;
  if (now.phase == BackwardPhase::weights) {
    return fmt::format("Block {} has keys {}, and makes the weights of Q {} again: exp(s − lse).",
                       block, k, q);
  }
  if (now.phase == BackwardPhase::gradients) {
    return fmt::format("dP = dO V^T, and dS = P ∘ (dP − D): of query {} D is {}.", query, d);
  }
  if (now.through) {
    return fmt::format("The last part of dQ {} is added; no weight was ever in memory.", q);
  }
  return fmt::format(
      "dV {} and dK {} grow in registers; dQ {} is added to in memory: part {} of {}.", k, k, q,
      now.step, steps_in_all());
}

std::string AttentionBackwardScene::brief(const BackwardMoment& now) const {
  if (now.now == nullptr) return "Nothing is computed.";
  if (judged(now)) return trace_.result.outcome;
  constexpr const char* kDoing[] = {"", "P", "dS", "dQ, dK and dV"};
  return fmt::format("Tile {}: {}", now.now->k_tile, kDoing[static_cast<std::size_t>(now.phase)]);
}

std::string AttentionBackwardScene::outcome() const {
  const attention::BrokenResult& what = trace_.result;
  if (what.wrong == 0) return "dQ, dK and dV are right this time, which proves nothing.";
  return fmt::format("{} of {} numbers of dQ, dK and dV {} wrong.", what.wrong, what.elements,
                     what.wrong == 1 ? "is" : "are");
}

/// The worst of it in numbers.
std::string AttentionBackwardScene::result_sentence() const {
  const attention::BrokenResult& what = trace_.result;
  if (what.wrong == 0) return "no number is wrong";
  const bool of_key = what.tensor == Tensor::dk || what.tensor == Tensor::dv;
  return fmt::format("first wrong: {}, head {}, {} {}, component {}: {} instead of {}; worst by {}",
                     name_of(what.tensor), what.head, of_key ? "key" : "query", what.query,
                     what.component, number(what.got, 4), number(what.want, 4),
                     number(what.largest, 4));
}

/// What the dispatcher chose where it is not what was asked for.
std::vector<std::string> AttentionBackwardScene::note_lines() const {
  std::vector<std::string> lines;
  for (const std::string* line : {&trace_.plan.filled, &trace_.plan.resized, &trace_.plan.cut}) {
    if (!line->empty()) lines.push_back(*line);
  }
  return lines;
}

}  // namespace tilestep::scenes
