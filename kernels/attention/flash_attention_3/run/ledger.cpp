#include <algorithm>

#include "kernels/attention/flash_attention_3/run/run.hpp"

namespace tilestep::flash_attention_3 {
namespace {

using Count = unsigned long long;

}  // namespace

void add_tile(Ledger& ledger, const TilePlan& plan, const attention::Task& task, int q_tile,
              std::size_t output_bytes) {
  const auto at = [&](Tensor tensor) -> Asked& { return ledger[static_cast<std::size_t>(tensor)]; };
  const int length = task.length();
  const int row = q_tile * plan.block_q;
  const int end = std::min(row + plan.block_q, length);
  const KeyTiles tiles = tiles_seen(plan.rule, row, end - 1, plan.block_k);
  const int past_keys = std::min((tiles.last + 1) * plan.block_k, length);
  const auto rows = static_cast<Count>(end - row);
  const auto keys = static_cast<Count>(past_keys - tiles.first * plan.block_k);
  const auto numbers = static_cast<Count>(task.head_dim);
  constexpr Count kBytes = 2;
  at(Tensor::q).loaded += rows * numbers * kBytes;
  at(Tensor::k).loaded += keys * numbers * kBytes;
  at(Tensor::v).loaded += keys * numbers * kBytes;
  at(Tensor::o).stored += rows * numbers * output_bytes;
  at(Tensor::lse).stored += rows * sizeof(float);
}

Ledger ledger_of(const TilePlan& plan, const attention::Task& task, std::size_t output_bytes) {
  Ledger ledger{};
  for (int q_tile = 0; q_tile < plan.q_tiles; ++q_tile) {
    add_tile(ledger, plan, task, q_tile, output_bytes);
  }
  for (Asked& asked : ledger) {
    asked.loaded *= static_cast<Count>(task.heads);
    asked.stored *= static_cast<Count>(task.heads);
  }
  return ledger;
}

Held held_by(const attention::Task& task) {
  Held held{};
  const auto at = [&](Tensor tensor) -> Count& { return held[static_cast<std::size_t>(tensor)]; };
  const Count row = static_cast<Count>(task.length()) * static_cast<Count>(task.head_dim) * 2;
  at(Tensor::q) = at(Tensor::o) = static_cast<Count>(task.heads) * row;
  at(Tensor::k) = at(Tensor::v) = static_cast<Count>(task.kv_heads) * row;
  at(Tensor::lse) = static_cast<Count>(task.heads) * static_cast<Count>(task.length()) * 4;
  return held;
}

double flops_of(const TilePlan& plan, const attention::Task& task) {
  double tiles = 0;
  for (int q_tile = 0; q_tile < plan.q_tiles; ++q_tile) {
    const int row = q_tile * plan.block_q;
    const int last = std::min(row + plan.block_q, task.length()) - 1;
    const KeyTiles seen = tiles_seen(plan.rule, row, last, plan.block_k);
    tiles += seen.last - seen.first + 1;
  }
  return 4.0 * plan.block_q * plan.block_k * plan.columns * task.heads * tiles;
}

}  // namespace tilestep::flash_attention_3
