// Progress up to a cursor: tiles of scores, rows of queries, bytes.
#include <algorithm>

#include "scenes/attention/flash_attention/scene.hpp"

namespace tilestep::scenes {

using flash_attention::Tensor, flash_attention::TileVisit, flash_attention::Variant;

FlashPhase FlashAttentionScene::phase_at(Cursor cursor) const {
  // The last step of naive has two more phases: the softmax of all rows, and the product with V.
  const FlashPhase more = is_naive() ? FlashPhase::weights : FlashPhase::rescale;
  if (cursor.phase <= 0 || (is_naive() && cursor.tile < steps_in_all())) return FlashPhase::scores;
  return cursor.phase == 1 ? more : FlashPhase::values;
}

TileFate FlashAttentionScene::fate(const FlashMoment& now, int q_tile, int k_tile) const {
  const TileVisit& visit = trace_.visit(q_tile, k_tile);
  if (visit.order < 0) return TileFate::never;
  if (is_naive()) {
    // All blocks run side by side, one tile each; they are shown from left to right.
    return now.step > k_tile ? TileFate::stored : TileFate::to_come;
  }
  if (!seen(now, visit)) return TileFate::to_come;
  const bool chosen = q_tile == trace_.chosen.q_tile;
  if (chosen && !now.through && k_tile == now.now->k_tile) return TileFate::now;
  // Other blocks that have got as far; flash-1 has one block per head.
  const bool beside = variant() == Variant::flash_2 && !chosen && !now.through &&
                      step_of(trace_.steps, visit) == now.step && visit.order == now.now->order;
  return beside ? TileFate::now : keeps_scores() ? TileFate::stored : TileFate::gone;
}

/// flash-1 and naive write O at the end.
bool FlashAttentionScene::row_through(const FlashMoment& now, int q_tile) const {
  if (variant() != Variant::flash_2) return now.through;
  return MatrixScene::row_through(now, q_tile);
}

Bytes FlashAttentionScene::shares_by(const FlashMoment& now, Tensor tensor) const {
  const double visits = share_of_visits(now), through = share_of_rows(now, false);
  if (is_naive()) {
    const double weights = now.phase >= FlashPhase::weights ? 1 : 0;
    const double columns = static_cast<double>(now.step) / trace_.plan.k_tiles;
    switch (tensor) {
      case Tensor::q:
      case Tensor::k:
        return {columns, 0};
      case Tensor::s:
        return {weights, columns};
      case Tensor::p:
      case Tensor::lse:
        return {0, weights};
      default:
        return {};
    }
  }
  // Separate kernels have quantized Q and K to 8 bits before the first tile.
  if (has_bytes()) {
    switch (tensor) {
      case Tensor::q:
      case Tensor::k:
      case Tensor::k_mean:
        return {1, 1};
      case Tensor::q_8:
      case Tensor::q_mean:
        return {share_of_rows(now, true), 1};
      case Tensor::k_8:
      case Tensor::scales:
        return {visits, 1};
      default:
        break;
    }
  }
  const bool whole_head = variant() == Variant::flash_1;
  switch (tensor) {
    case Tensor::q:
      return {whole_head ? visits : share_of_rows(now, true), 0};
    case Tensor::o:
    case Tensor::lse:
      return {0, through};
    default:
      return {visits, visits};
  }
}

}  // namespace tilestep::scenes
