// What has happened until a cursor: tiles of scores, rows of queries, bytes.
#include <algorithm>

#include "scenes/attention/flash_attention/scene.hpp"

namespace tilestep::scenes {

using flash_attention::LedgerRow, flash_attention::Tensor, flash_attention::TileVisit,
    flash_attention::Variant;

FlashMoment FlashAttentionScene::moment(Cursor cursor) const {
  FlashMoment now;
  const int all = steps_in_all();
  now.step = std::clamp(cursor.tile, 0, all);
  if (now.step == 0) {
    now.through = all == 0;
    return now;
  }
  const auto at = static_cast<std::size_t>(now.step - 1);
  now.now = &trace_.steps[at];
  if (at > 0) now.before = &trace_.steps[at - 1];
  const bool last = now.step == all;
  if (is_naive()) {
    // The last step has two phases more: the softmax of all rows, and the product with V.
    now.phase = !last || cursor.phase <= 0 ? FlashPhase::scores
                : cursor.phase == 1        ? FlashPhase::weights
                                           : FlashPhase::values;
  } else {
    now.phase = cursor.phase <= 0  ? FlashPhase::scores
                : cursor.phase > 1 ? FlashPhase::values
                                   : FlashPhase::rescale;
  }
  now.through = last && now.phase == FlashPhase::values;
  return now;
}

/// Blocks run side by side: a visit is known when the chosen query's block has come as far.
bool FlashAttentionScene::seen(const FlashMoment& now, const TileVisit& visit) const {
  const int step = step_of(trace_.steps, visit);
  return step > 0 && step <= now.step;
}

TileFate FlashAttentionScene::fate(const FlashMoment& now, int q_tile, int k_tile) const {
  const TileVisit& visit = trace_.visit(q_tile, k_tile);
  if (visit.order < 0) return TileFate::never;
  if (is_naive()) {
    // All blocks run side by side, a tile each; they are shown from left to right.
    return now.step > k_tile ? TileFate::stored : TileFate::to_come;
  }
  if (!seen(now, visit)) return TileFate::to_come;
  const bool chosen = q_tile == trace_.chosen.q_tile;
  if (chosen && !now.through && k_tile == now.now->k_tile) return TileFate::now;
  const bool kept = trace_.broken == flash_attention::Break::materialize;
  // Of the other blocks those that are as far; flash-1 has one block a head.
  const bool beside = variant() == Variant::flash_2 && !chosen && !now.through &&
                      step_of(trace_.steps, visit) == now.step && visit.order == now.now->order;
  return beside ? TileFate::now : kept ? TileFate::stored : TileFate::gone;
}

bool FlashAttentionScene::row_through(const FlashMoment& now, int q_tile) const {
  if (now.through) return true;
  // O is written when all is through.
  if (variant() == Variant::flash_1 || is_naive()) return false;
  bool any = false;
  for (int k = 0; k < trace_.plan.k_tiles; ++k) {
    const TileVisit& visit = trace_.visit(q_tile, k);
    if (visit.order < 0) continue;
    any = true;
    if (!seen(now, visit)) return false;
    if (step_of(trace_.steps, visit) == now.step && now.phase != FlashPhase::values) return false;
  }
  return any;
}

bool FlashAttentionScene::row_begun(const FlashMoment& now, int q_tile) const {
  for (int k = 0; k < trace_.plan.k_tiles; ++k) {
    if (seen(now, trace_.visit(q_tile, k))) return true;
  }
  return false;
}

double FlashAttentionScene::share_of_visits(const FlashMoment& now) const {
  int all = 0, known = 0;
  for (const TileVisit& visit : trace_.visits) {
    if (visit.order < 0) continue;
    ++all;
    known += seen(now, visit) ? 1 : 0;
  }
  return all == 0 || now.through ? 1.0 : static_cast<double>(known) / all;
}

double FlashAttentionScene::share_of_rows(const FlashMoment& now, bool begun) const {
  int all = 0, known = 0;
  for (int q = 0; q < trace_.plan.q_tiles; ++q) {
    ++all;
    known += (begun ? row_begun(now, q) : row_through(now, q)) ? 1 : 0;
  }
  return now.through ? 1.0 : static_cast<double>(known) / all;
}

Bytes FlashAttentionScene::asked_by(const FlashMoment& now, const LedgerRow& row) const {
  const auto of = [&](double loads, double stores) {
    return Bytes{loads * static_cast<double>(row.loaded), stores * static_cast<double>(row.stored)};
  };
  if (now.through) return of(1, 1);
  if (now.step == 0) return {};
  const double visits = share_of_visits(now), through = share_of_rows(now, false);
  if (is_naive()) {
    const double weights = now.phase >= FlashPhase::weights ? 1 : 0;
    const double columns = static_cast<double>(now.step) / trace_.plan.k_tiles;
    switch (row.tensor) {
      case Tensor::q:
      case Tensor::k:
        return of(columns, 0);
      case Tensor::s:
        return of(weights, columns);
      case Tensor::p:
      case Tensor::lse:
        return of(0, weights);
      default:
        return {};
    }
  }
  // Kernels of their own have made Q and K numbers of 8 bits before the first tile.
  if (has_bytes()) {
    switch (row.tensor) {
      case Tensor::q:
      case Tensor::k:
      case Tensor::k_mean:
        return of(1, 1);
      case Tensor::q_8:
      case Tensor::q_mean:
        return of(share_of_rows(now, true), 1);
      case Tensor::k_8:
      case Tensor::scales:
        return of(visits, 1);
      default:
        break;
    }
  }
  const bool whole_head = variant() == Variant::flash_1;
  switch (row.tensor) {
    case Tensor::q:
      return of(whole_head ? visits : share_of_rows(now, true), 0);
    case Tensor::o:
    case Tensor::lse:
      return of(0, through);
    default:
      return of(visits, visits);
  }
}

}  // namespace tilestep::scenes
