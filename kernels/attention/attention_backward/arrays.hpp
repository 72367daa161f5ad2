#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/shared/task.hpp"
#include "kernels/base/numeric/index.hpp"

namespace tilestep::attention_backward {

using namespace attention;

/// On the device: q, o, d_o, dq [heads × length × head_dim], k, v, dk, dv [kv_heads × length × head_dim], lse
/// [heads × length], and scratch memory.
struct Arrays {
  simt::Span<const std::uint16_t> q, k, v, o, d_o;
  simt::Span<const int> begins;  ///< of documents; backward_recompute's
  simt::Span<const float> lse;
  simt::Span<float> terms;    ///< [heads × q_tiles · block_q × 2]: log-sum-exp to base 2, D
  simt::Span<float> dq_sums;  ///< [heads × q_tiles · block_q × columns]
  simt::Span<std::uint16_t> dq, dk, dv;
};

/// How many FP32 numbers `terms` and `dq_sums` have for tiles of `block_q` queries and `columns`.
struct Scratch {
  std::size_t terms, dq_sums;
};
inline Scratch scratch_of(const Task& task, int block_q, int columns) {
  const int q_tiles = (task.length() + block_q - 1) / block_q;
  const auto rows = numeric::elements_of(task.heads * q_tiles, block_q);
  return {2 * rows, rows * static_cast<std::size_t>(columns)};
}

}  // namespace tilestep::attention_backward
