// The steps of attention on Hopper, in sentences.
#include "scenes/shared/words.hpp"

#include <fmt/format.h>

#include <cmath>

#include "scenes/attention/flash_attention_3/scene.hpp"

namespace tilestep::scenes {

using flash_attention_3::Rung;
using words::counted, words::number;

std::string FlashAttention3Scene::sentence(const LaneMoment& now) const {
  if (now.now == nullptr) {
    return fmt::format("Nothing yet: one thread will copy, {} of 64 queries each will multiply.",
                       counted(consumers(), "warpgroup"));
  }
  if (judged(now))
    return fmt::format("{}: {}", name_of(trace_.broken), outcome_of(trace_, "O", false));
  const flash_attention_3::Step& step = *now.now;
  const int q = trace_.chosen.q_tile, k = step.k_tile, query = trace_.chosen.query;
  const auto text = [](float value) { return number(static_cast<double>(value), 2); };
  if (now.phase == LanePhase::scores) {
    return fmt::format("S = Q {} · K {}: {} × {} scores, only in registers.", q, k,
                       trace_.plan.block_q, trace_.plan.block_k);
  }
  if (now.phase == LanePhase::softmax) {
    if (std::isinf(step.m_after)) {
      return fmt::format("Query {} sees no key yet: m stays −∞.", query);
    }
    const char* meanwhile =
        trace_.runs == Rung::tma         ? "the tensor cores run what the other one issues"
        : trace_.runs == Rung::ping_pong ? "the tensor cores belong to the other warpgroup"
                                         : "the next tile's products are in flight";
    return fmt::format("Query {}: m is {}; during its exponentials {}.", query, text(step.m_after),
                       meanwhile);
  }
  if (now.through) return fmt::format("O {} is divided by ℓ and written; no score ever was.", q);
  return fmt::format("O {} += P V {}: the tile of scores is used up and gone.", q, k);
}

std::string FlashAttention3Scene::brief(const LaneMoment& now) const {
  if (now.now == nullptr) return "Nothing computed yet.";
  if (judged(now)) return trace_.result.outcome;
  constexpr const char* kDoing[] = {"", "scores", "softmax", "O += P V"};
  return fmt::format("Tile {}: {}", now.now->k_tile, kDoing[static_cast<std::size_t>(now.phase)]);
}

}  // namespace tilestep::scenes
