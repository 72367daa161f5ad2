// What has happened until a cursor: tiles of scores, rows of queries, bytes, clocks.
#include <algorithm>

#include "scenes/attention/flash_attention/scene.hpp"

namespace tilestep::scenes {

using flash_attention::LedgerRow, flash_attention::Tensor, flash_attention::TileVisit,
    flash_attention::Variant, flash_attention::What;

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
                : is_backward()    ? FlashPhase::gradients
                                   : FlashPhase::rescale;
  }
  now.through = last && now.phase == FlashPhase::values;
  return now;
}

/// Blocks run side by side: a visit is known when the chosen query's block has come as far.
bool FlashAttentionScene::seen(const FlashMoment& now, const TileVisit& visit) const {
  const int step = trace_.step_of(visit);
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
  // Backward two blocks may come to the chosen query at a time; the picture has one after the other.
  if (chosen && is_backward() && step_of_tile(k_tile) > now.step) return TileFate::to_come;
  if (chosen && !now.through && k_tile == now.now->k_tile) return TileFate::now;
  const bool kept = trace_.broken == flash_attention::Break::materialize;
  // Of the other blocks those that are as far; flash-1 has one block a head, and flash-3 one recorded.
  const bool beside = variant() == Variant::flash_2 && !chosen && !now.through &&
                      trace_.step_of(visit) == now.step && visit.order == now.now->order;
  return beside ? TileFate::now : kept ? TileFate::stored : TileFate::gone;
}

bool FlashAttentionScene::row_through(const FlashMoment& now, int q_tile) const {
  if (now.through) return true;
  // O is written when all is through, and so is dQ.
  if (variant() == Variant::flash_1 || is_naive() || is_backward()) return false;
  bool any = false;
  for (int k = 0; k < trace_.plan.k_tiles; ++k) {
    const TileVisit& visit = trace_.visit(q_tile, k);
    if (visit.order < 0) continue;
    any = true;
    if (!seen(now, visit)) return false;
    if (trace_.step_of(visit) == now.step && now.phase != FlashPhase::values) return false;
  }
  return any;
}

bool FlashAttentionScene::row_begun(const FlashMoment& now, int q_tile) const {
  for (int k = 0; k < trace_.plan.k_tiles; ++k) {
    if (seen(now, trace_.visit(q_tile, k))) return true;
  }
  return false;
}

int FlashAttentionScene::visited() const {
  return static_cast<int>(std::count_if(trace_.visits.begin(), trace_.visits.end(),
                                        [](const TileVisit& visit) { return visit.order >= 0; }));
}

/// Of the visits of the chosen head; flash-3: of those of the block whose bytes are counted.
double FlashAttentionScene::share_of_visits(const FlashMoment& now) const {
  int all = 0, known = 0;
  for (const TileVisit& visit : trace_.visits) {
    if (visit.order < 0 || (is_flash_3() && visit.block != trace_.chosen.block)) continue;
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

FlashAttentionScene::Bytes FlashAttentionScene::asked_by(const FlashMoment& now,
                                                         const LedgerRow& row) const {
  const auto of = [&](double loads, double stores) {
    return Bytes{loads * static_cast<double>(row.loaded), stores * static_cast<double>(row.stored)};
  };
  if (now.through) return of(1, 1);
  if (now.step == 0) return {};
  if (is_backward()) return asked_backward(now, row);
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

// ---- clocks -----------------------------------------------------------------------------------------

/// When the warpgroup of the chosen query had the scores of each step, its weights, and its products with V; it
/// never goes back, since the scores of the next tile come before the products of this one.
void FlashAttentionScene::clock_steps() {
  clocks_.clear();
  event_clocks_.clear();
  for (const flash_attention::Event& event : trace_.events) event_clocks_.push_back(event.clock);
  std::sort(event_clocks_.begin(), event_clocks_.end());
  event_clocks_.erase(std::unique(event_clocks_.begin(), event_clocks_.end()), event_clocks_.end());
  if (!has_lanes()) return;
  const int rows = trace_.chosen.query - trace_.chosen.q_tile * trace_.plan.block_q;
  const int lane = 1 + rows / 64;
  double last = 0;
  for (const flash_attention::Step& step : trace_.steps) {
    for (const What what : {What::done_s, What::ends_softmax, What::done_o}) {
      for (const flash_attention::Event& event : trace_.events) {
        const bool mine = event.what == what && event.lane == lane &&
                          event.head == trace_.chosen.head &&
                          event.q_tile == trace_.chosen.q_tile && event.k_tile == step.k_tile;
        if (mine) last = std::max(last, shown_clock(event.clock));
      }
      clocks_.push_back(last);
    }
  }
  if (!clocks_.empty()) clocks_.back() = clocked_until();
}

double FlashAttentionScene::shown_clock(std::int64_t clock) const {
  if (!emulated()) return static_cast<double>(clock);
  const auto place = std::lower_bound(event_clocks_.begin(), event_clocks_.end(), clock);
  return static_cast<double>(place - event_clocks_.begin());
}

double FlashAttentionScene::clocked_until() const {
  return event_clocks_.empty() ? 1 : std::max(shown_clock(event_clocks_.back()), 1.0);
}

double FlashAttentionScene::clock_at(const FlashMoment& now) const {
  if (now.step == 0 || clocks_.empty()) return 0;
  const int phase = now.phase == FlashPhase::scores ? 0 : now.phase == FlashPhase::rescale ? 1 : 2;
  return clocks_[static_cast<std::size_t>(3 * (now.step - 1) + phase)];
}

}  // namespace tilestep::scenes
