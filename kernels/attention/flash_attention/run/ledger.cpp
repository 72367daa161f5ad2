#include <algorithm>

#include "kernels/attention/flash_attention/quantized/problem.hpp"
#include "kernels/attention/flash_attention/run/explained.hpp"

namespace tilestep::flash_attention {
namespace {

using Count = unsigned long long;

/// Of one head: what the visits of all its tiles come to.
struct Visited {
  std::int64_t tiles = 0;
  Count blocks = 0;   ///< tiles of queries that visit a key at all
  Count queries = 0;  ///< rows of Q of tiles that visit a key at all
  Count rows = 0;     ///< rows of queries, once for each visit
  Count keys = 0;     ///< keys, once for each visit
  Count scores = 0;
};

Visited visited_by(const Plan& plan, const std::vector<int>& begins) {
  Visited sum;
  const MaskRule& rule = plan.rule;
  for (int q0 = 0; q0 < rule.length; q0 += plan.block_q) {
    const int q1 = std::min(q0 + plan.block_q, rule.length) - 1;
    const auto rows = static_cast<Count>(q1 - q0 + 1);
    const KeyTiles tiles = rule.tiles(q0, q1, plan.block_k, begins);
    if (tiles.count() > 0) {
      sum.queries += rows;
      ++sum.blocks;
    }
    // All visited tiles are whole, but the last of all.
    const int last = (rule.length - 1) / plan.block_k;
    const auto count = static_cast<Count>(tiles.count());
    const bool ragged = tiles.next(last) == last && last < tiles.end;
    const auto missing = static_cast<Count>(ragged ? (last + 1) * plan.block_k - rule.length : 0);
    const Count keys = count * static_cast<Count>(plan.block_k) - missing;
    sum.tiles += tiles.count();
    sum.rows += rows * count;
    sum.keys += keys;
    sum.scores += rows * keys;
  }
  return sum;
}

/// Scores in 8 bits: K's mean, Q and K in 8 bits, and then as flash-2.
Ledger quantized_ledger(const Plan& plan, const Task& task, const std::vector<int>& begins) {
  Ledger ledger{};
  const auto at = [&](Tensor tensor) -> Asked& { return ledger[static_cast<std::size_t>(tensor)]; };
  const auto heads = static_cast<Count>(task.heads), kv_heads = static_cast<Count>(task.kv_heads);
  const auto length = static_cast<Count>(task.length());
  const auto columns = static_cast<Count>(task.head_dim);
  const Count queries = heads * length, keys = kv_heads * length;
  const Count blocks = heads * static_cast<Count>(plan.q_tiles) +
                       kv_heads * static_cast<Count>(plan.k_tiles);  // that make 8 bits
  at(Tensor::q).loaded = queries * columns * 2;
  at(Tensor::k).loaded = keys * columns * 2;
  at(Tensor::q_8).stored = queries * columns;
  at(Tensor::k_8).stored = keys * columns;
  at(Tensor::scales).stored = blocks * sizeof(float);
  const Visited visited = visited_by(plan, begins);
  at(Tensor::q_8).loaded = heads * visited.queries * columns;
  at(Tensor::k_8).loaded = heads * visited.keys * columns;
  at(Tensor::v).loaded = heads * visited.keys * columns * 2;
  // Each warp asks for its own.
  at(Tensor::scales).loaded = heads * (visited.blocks + static_cast<Count>(visited.tiles)) *
                              static_cast<Count>(plan.threads / 32) * sizeof(float);
  at(Tensor::o).stored = queries * columns * 2;
  at(Tensor::lse).stored = queries * sizeof(float);
  if (!plan.smooth_k) return ledger;
  at(Tensor::k).loaded *= 2;
  at(Tensor::k_mean) = {blocks * kQuantizeThreads * 8 * sizeof(float),
                        kv_heads * columns * sizeof(float)};
  at(Tensor::q_mean) = {heads * visited.queries * sizeof(float), queries * sizeof(float)};
  return ledger;
}

}  // namespace

Ledger ledger_of(const Plan& plan, const Task& task, Break broken, const std::vector<int>& begins) {
  if (plan.quantized) return quantized_ledger(plan, task, begins);
  Ledger ledger{};
  const auto at = [&](Tensor tensor) -> Asked& { return ledger[static_cast<std::size_t>(tensor)]; };
  const Count bytes = kElementBytes;
  const auto heads = static_cast<Count>(task.heads);
  const auto length = static_cast<Count>(task.length());
  const Count row = static_cast<Count>(task.head_dim) * bytes;
  const Count all = heads * length * row;  // one tensor of all query heads
  at(Tensor::o).stored = all;
  at(Tensor::lse).stored = heads * length * sizeof(float);
  if (plan.runs == Variant::naive) {
    const Count scores = heads * length * static_cast<Count>(score_pitch(task.length())) * bytes;
    at(Tensor::q).loaded = all * static_cast<Count>(plan.k_tiles);
    at(Tensor::k).loaded = all * static_cast<Count>(plan.q_tiles);
    at(Tensor::v).loaded = all * static_cast<Count>(plan.q_tiles);
    at(Tensor::s) = at(Tensor::p) = {scores, scores};
    return ledger;
  }
  const Visited visited = visited_by(plan, begins);
  if (plan.runs == Variant::flash_1) {
    const Count sums_row = static_cast<Count>(task.head_dim) * sizeof(float);
    const Count pair = 2 * sizeof(float);  // m and ℓ
    at(Tensor::q).loaded = heads * visited.rows * row;
    at(Tensor::k).loaded = at(Tensor::v).loaded = all;
    // Begun once, read and written at each visit; O is made of the sums at the end.
    at(Tensor::o_sums) = {heads * (visited.rows + length) * sums_row,
                          heads * (length + visited.rows) * sums_row};
    at(Tensor::m_l) = {heads * (visited.rows + length) * pair,
                       heads * (visited.rows + length) * pair};
    return ledger;
  }
  at(Tensor::q).loaded = heads * visited.queries * row;
  at(Tensor::k).loaded = at(Tensor::v).loaded = heads * visited.keys * row;
  if (broken == Break::materialize) at(Tensor::s).stored = heads * visited.scores * bytes;
  return ledger;
}

Held held_by(const Plan& plan, const Task& task, Break broken) {
  Held held{};
  const auto at = [&](Tensor tensor) -> Count& { return held[static_cast<std::size_t>(tensor)]; };
  const Count bytes = kElementBytes;
  const Count rows = static_cast<Count>(task.heads) * static_cast<Count>(task.length());
  const Count numbers = rows * static_cast<Count>(task.head_dim);
  const Count keys = numbers / static_cast<Count>(task.heads) * static_cast<Count>(task.kv_heads);
  const Count scores = rows * static_cast<Count>(score_pitch(task.length()));
  at(Tensor::q) = at(Tensor::o) = numbers * bytes;
  at(Tensor::k) = at(Tensor::v) = keys * bytes;
  at(Tensor::lse) = rows * sizeof(float);
  if (plan.quantized) {
    const auto kv_heads = static_cast<Count>(task.kv_heads);
    at(Tensor::q_8) = numbers;
    at(Tensor::k_8) = keys;
    at(Tensor::scales) = (static_cast<Count>(task.heads) * static_cast<Count>(plan.q_tiles) +
                          kv_heads * static_cast<Count>(plan.k_tiles)) *
                         sizeof(float);
    at(Tensor::k_mean) =
        plan.smooth_k ? kv_heads * static_cast<Count>(task.head_dim) * sizeof(float) : 0;
    at(Tensor::q_mean) = plan.smooth_k ? rows * sizeof(float) : 0;
  }
  if (plan.runs == Variant::naive || broken == Break::materialize) at(Tensor::s) = scores * bytes;
  if (plan.runs == Variant::naive) at(Tensor::p) = scores * bytes;
  if (plan.runs == Variant::flash_1) {
    at(Tensor::m_l) = 2 * rows * sizeof(float);
    at(Tensor::o_sums) = numbers * sizeof(float);
  }
  return held;
}

std::int64_t tiles_of(const Plan& plan, const std::vector<int>& begins) {
  if (plan.runs == Variant::naive) return std::int64_t{plan.q_tiles} * plan.k_tiles;
  return visited_by(plan, begins).tiles;
}

double tile_flops(const Plan& plan, const Task& task, const std::vector<int>& begins) {
  return 4.0 * plan.block_q * plan.block_k * plan.columns * task.heads *
         static_cast<double>(tiles_of(plan, begins));
}

double needed_flops(const Task& task, const std::vector<int>& begins) {
  double pairs = 0;
  for (int query = 0; query < task.length(); ++query) {
    const int end = task.rule.last_key(query) + 1;
    const int begin = std::min(task.rule.first_key(query, begins), end);
    pairs += end - begin + std::min(task.rule.first_keys(), begin);
  }
  return 4.0 * task.head_dim * task.heads * pairs;
}

}  // namespace tilestep::flash_attention
