// Bytes that a backward pass asks for and holds in memory, and what it multiplies: of the kernels here, and by arithmetic
// of a pass that would keep its weights.

#include <algorithm>

#include "kernels/attention/attention_backward/run/explained.hpp"

namespace tilestep::attention_backward {

using Count = unsigned long long;

namespace {

/// Of one query head, what the tiles of keys visit.
struct VisitedByKeys {
  Count keys = 0;    ///< of tiles that a query visits at all
  Count visits = 0;  ///< tiles of queries, once for each visit
  Count rows = 0;    ///< of them the queries that are there
};

VisitedByKeys visited_by_keys(const TilePlan& plan, const std::vector<int>& begins) {
  VisitedByKeys sum;
  const MaskRule& rule = plan.rule;
  for (int k0 = 0; k0 < rule.length; k0 += plan.block_k) {
    const int k1 = std::min(k0 + plan.block_k, rule.length) - 1;
    const QueryTiles tiles = rule.query_tiles(k0, k1, plan.block_q, begins);
    if (tiles.count() == 0) continue;
    sum.keys += static_cast<Count>(k1 - k0 + 1);
    sum.visits += static_cast<Count>(tiles.count());
    const int end = std::min(tiles.end * plan.block_q, rule.length);
    sum.rows += static_cast<Count>(end - tiles.begin * plan.block_q);
  }
  return sum;
}

}  // namespace

Ledger ledger_of(const TilePlan& plan, const Task& task, const std::vector<int>& begins) {
  Ledger ledger{};
  const auto at = [&](Tensor tensor) -> Asked& { return ledger[static_cast<std::size_t>(tensor)]; };
  const auto heads = static_cast<Count>(task.heads);
  const auto length = static_cast<Count>(task.length());
  const Count row = static_cast<Count>(task.head_dim) * kElementBytes;
  const Count all = heads * length * row;  // one tensor of all query heads
  const Count shared = static_cast<Count>(task.kv_heads) * length * row;
  const Count padded = heads * static_cast<Count>(plan.q_tiles * plan.block_q);
  const Count pair = 2 * sizeof(float);  // log-sum-exp and D
  at(Tensor::dq).stored = all;
  at(Tensor::dk).stored = at(Tensor::dv).stored = shared;
  // D's kernel.
  at(Tensor::o).loaded = at(Tensor::d_o).loaded = all;
  at(Tensor::lse).loaded = heads * length * sizeof(float);
  at(Tensor::d).stored = padded * pair;
  const VisitedByKeys visited = visited_by_keys(plan, begins);
  const Count sums_row = static_cast<Count>(plan.columns) * sizeof(float);
  const Count rows = heads * visited.visits * static_cast<Count>(plan.block_q);  // whole tiles
  at(Tensor::k).loaded = at(Tensor::v).loaded =
      static_cast<Count>(task.kv_heads) * visited.keys * row;
  at(Tensor::q).loaded = heads * visited.rows * row;
  at(Tensor::d_o).loaded += heads * visited.rows * row;
  at(Tensor::d).loaded = rows * pair;
  at(Tensor::dq_sums) = {padded * sums_row, (padded + rows) * sums_row};
  return ledger;
}

Memory memory_of(const TilePlan& plan, const Task& task) {
  Memory memory;
  const Count bytes = kElementBytes;
  const Count rows = static_cast<Count>(task.heads) * static_cast<Count>(task.length());
  const Count numbers = rows * static_cast<Count>(task.head_dim);
  const Count keys = numbers / static_cast<Count>(task.heads) * static_cast<Count>(task.kv_heads);
  const Count padded =
      static_cast<Count>(task.heads) * static_cast<Count>(plan.q_tiles * plan.block_q);
  const auto hold = [&](Tensor tensor, Count size) {
    memory.held[static_cast<std::size_t>(tensor)] = size;
  };
  const auto keep = [&](Tensor tensor, Count size) {
    hold(tensor, size);
    memory.kept[static_cast<std::size_t>(tensor)] = size;
  };
  for (const Tensor tensor : {Tensor::q, Tensor::o}) keep(tensor, numbers * bytes);
  for (const Tensor tensor : {Tensor::k, Tensor::v}) keep(tensor, keys * bytes);
  keep(Tensor::lse, rows * sizeof(float));
  for (const Tensor tensor : {Tensor::d_o, Tensor::dq}) hold(tensor, numbers * bytes);
  for (const Tensor tensor : {Tensor::dk, Tensor::dv}) hold(tensor, keys * bytes);
  hold(Tensor::d, padded * 2 * sizeof(float));  // beside each a log-sum-exp
  hold(Tensor::dq_sums, padded * static_cast<Count>(plan.columns) * sizeof(float));
  return memory;
}

double flops_of(const TilePlan& plan, const Task& task, const std::vector<int>& begins) {
  const auto visits = static_cast<double>(visited_by_keys(plan, begins).visits);
  return 5 * 2.0 * plan.block_q * plan.block_k * plan.columns * task.heads * visits;
}

StoringPass storing_pass_of(const TilePlan& plan, const Task& task) {
  const auto heads = static_cast<double>(task.heads), length = static_cast<double>(task.length());
  const double q_tiles = plan.q_tiles, k_tiles = plan.k_tiles, bytes = kElementBytes;
  const double all = heads * length * task.head_dim * bytes;  // one tensor of all query heads
  const double shared = task.kv_heads * length * task.head_dim * bytes;
  const double scores = heads * length * score_pitch(task.length()) * bytes;
  const double lse = heads * length * sizeof(float);
  const double terms = heads * q_tiles * plan.block_q * 2 * sizeof(float);
  const double capped = task.mod == ScoreMod::softcap ? scores : 0;  // S, for the cap's slope
  StoringPass pass;
  // dP, dV, dQ and dK, of every tile.
  pass.flops = 8.0 * plan.block_q * plan.block_k * plan.columns * heads * q_tiles * k_tiles;
  // D of dO and O; Q and dO by tiles of keys, dO once more for dV; K and V by tiles of queries; P twice, dP once, dS
  // twice, where both were written before.
  pass.asked = (2 * all + lse + terms) + 3 * all * k_tiles + 2 * all * q_tiles + lse + 7 * scores +
               capped + all + 2 * shared;
  pass.kept = 2 * all + 2 * shared + lse + scores + capped;
  pass.held = pass.kept + 2 * all + 2 * shared + terms + 2 * scores;
  return pass;
}

}  // namespace tilestep::attention_backward
