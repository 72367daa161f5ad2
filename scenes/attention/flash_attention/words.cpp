// The steps of the lesson on attention, in sentences.
#include "scenes/shared/words.hpp"

#include <fmt/format.h>

#include <cmath>

#include "scenes/attention/flash_attention/scene.hpp"

namespace tilestep::scenes {

using flash_attention::Break, flash_attention::TileKind, flash_attention::Variant;
using words::counted, words::number;

// ---- before anything ----------------------------------------------------------------------------------

/// Each block's job: which tiles it owns.
std::string FlashAttentionScene::sentence_of_rows() const {
  const attention::Dispatch& plan = trace_.plan;
  switch (variant()) {
    case Variant::naive:
      return fmt::format("Nothing yet: {} of scores, one per block.",
                         counted(std::ssize(trace_.visits), "tile"));
    case Variant::flash_1:
      return fmt::format(
          "Nothing computed yet: one block for the whole head, keys in its outer loop.");
    default:
      if (has_bytes()) {
        return fmt::format("Nothing computed yet: Q and K become {}, one scale per tile.",
                           name_of(trace_.dtype));
      }
      return fmt::format("Nothing computed yet: {} per head, one tile of queries each.",
                         counted(plan.q_tiles, "block"));
  }
}

// ---- step by step -------------------------------------------------------------------------------------

std::string FlashAttentionScene::sentence_of_flash(const FlashMoment& now) const {
  const flash_attention::Step& step = *now.now;
  const int q = trace_.chosen.q_tile, k = step.k_tile, query = trace_.chosen.query;
  const auto text = [](float value) { return number(static_cast<double>(value), 2); };
  if (now.phase == FlashPhase::scores) {
    const char* mask = step.kind == TileKind::partial ? " The mask hides some." : "";
    const std::string where = trace_.broken == Break::materialize
                                  ? "and writes them out, although nothing reads them."
                                  : fmt::format("only in registers.{}", mask);
    return fmt::format("Block {} multiplies Q {} by K {}: {} × {} scores, {}", trace_.chosen.block,
                       q, k, trace_.plan.block_q, trace_.plan.block_k, where);
  }
  if (now.phase == FlashPhase::rescale) {
    if (std::isinf(step.m_after))
      return fmt::format("Query {} sees no key yet: m stays −∞.", query);
    if (std::isinf(step.m_before)) {
      return fmt::format("Query {}: {} is its first maximum; nothing to rescale.", query,
                         text(step.m_after));
    }
    const double due =
        std::exp(static_cast<double>(step.m_before) - static_cast<double>(step.m_after));
    if (!words::close(static_cast<double>(step.rescale), due)) {
      return fmt::format(
          "Query {}: m goes from {} to {}, but ℓ and O are multiplied by {}, not {}.", query,
          text(step.m_before), text(step.m_after), text(step.rescale), number(due, 2));
    }
    if (!(step.m_after > step.m_before)) {
      return fmt::format("Query {}: {} does not beat {}, so ℓ and O keep their scale.", query,
                         text(step.tile_max), text(step.m_before));
    }
    return fmt::format("Query {}: {} beats {}, so ℓ and O shrink to {}.", query,
                       text(step.tile_max), text(step.m_before),
                       words::percent(static_cast<double>(step.rescale)));
  }
  if (variant() == Variant::flash_1) {
    return fmt::format("O {} is read, rescaled, added to and written back: visit {} of {}.", q,
                       now.step, steps_in_all());
  }
  if (now.through && has_bytes()) return quantized_sentence();
  if (now.through) return fmt::format("O {} is divided by ℓ and written; no score ever was.", q);
  return fmt::format("O {} += P V {}: the tile of scores is used up and gone.", q, k);
}

std::string FlashAttentionScene::sentence(const FlashMoment& now) const {
  if (now.now == nullptr) return sentence_of_rows();
  if (judged(now))
    return fmt::format("{}: {}", name_of(trace_.broken), outcome_of(trace_, "O", false));
  if (!is_naive()) return sentence_of_flash(now);
  const std::int64_t scores = std::int64_t{trace_.shape.length} * trace_.shape.length;
  if (now.phase == FlashPhase::scores) {
    return fmt::format("S = Q K^T: the blocks of tile {} of keys write {} × {} scores to memory.",
                       now.now->k_tile, trace_.shape.length, trace_.plan.block_k);
  }
  if (now.phase == FlashPhase::weights) {
    return fmt::format("P = softmax(S): a second kernel reads {} and writes as many weights.",
                       counted(scores, "score"));
  }
  return fmt::format("O = P V: a third kernel reads {} again.", counted(scores, "weight"));
}

std::string FlashAttentionScene::brief(const FlashMoment& now) const {
  if (now.now == nullptr) return "Nothing computed yet.";
  if (judged(now)) return trace_.result.outcome;
  constexpr const char* kDoing[] = {"", "scores", "rescale", "softmax", "O += P V"};
  return fmt::format("Tile {}: {}", now.now->k_tile, kDoing[static_cast<std::size_t>(now.phase)]);
}

/// The dispatcher's choice where it differs from the request.
std::vector<std::string> FlashAttentionScene::note_lines() const {
  std::vector<std::string> lines = dispatch_notes(trace_);
  if (!trace_.instead.empty()) {
    lines.insert(lines.begin(), fmt::format("{} {}", name_of(trace_.asked), trace_.instead));
  }
  return lines;
}

// ---- events -----------------------------------------------------------------------------------------------

/// Each depends only on earlier steps.
void FlashAttentionScene::find_events() {
  const int all = steps_in_all();
  if (is_naive()) {
    if (all > 1) events_.push_back({{all, 0}, "all scores are in memory"});
    if (all > 0) {
      events_.push_back({{all, 1}, "weights are in memory too"});
      events_.push_back({{all, 2}, "O is written"});
    }
    return;
  }
  bool rose = false, stayed = false;
  for (int step = 2; step <= all; ++step) {
    const flash_attention::Step& at = trace_.steps[static_cast<std::size_t>(step - 1)];
    if (std::isinf(at.m_before)) continue;
    const bool rises = at.m_after > at.m_before;
    if (rises && !rose) {
      events_.push_back({{step, 0},
                         fmt::format("m rises to {}, the first rise",
                                     number(static_cast<double>(at.m_after), 2))});
      rose = true;
    } else if (!rises && !stayed) {
      events_.push_back({{step, 0}, "m stays: nothing to rescale"});
      stayed = true;
    }
  }
  if (all > 1) events_.push_back({{all, 2}, "O is divided by ℓ and written"});
}

}  // namespace tilestep::scenes
