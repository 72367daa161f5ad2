#pragma once

/// \file
/// Attention whose scores are products of 8-bit numbers, as the host knows it: the kernels' task, their
/// sizes, and the error bound of an 8-bit number.
///
/// Q, K, V and O are BF16 in memory. Two kernels quantize Q and K to 8 bits, with one scale per tile of queries
/// or keys of a head; a third attends: S = Q Kᵀ in 8 bits, P V in BF16. (Zhang et al., "SageAttention", 2024,
/// arXiv:2410.02367.)

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/attention/flash_attention/kernels.hpp"

namespace tilestep::flash_attention {

struct QuantizedProblem {
  Task task;                        ///< head_dim is 64 or 128
  DataType format = DataType::fp8;  ///< of the score product's operands: fp8 (E4M3) or int8
  bool smooth_k = true;             ///< K's mean over the keys is subtracted first
};

/// On the device: q, o [heads × length × head_dim], k, v [kv_heads × length × head_dim], lse [heads × length].
/// Scratch memory, with tiles as the sizes below have them: q_8 and k_8 as q and k, q_scales [heads × q_tiles],
/// k_scales [kv_heads × k_tiles], and where K's mean is subtracted k_mean [kv_heads × head_dim] and q_mean
/// [heads × length], each query's product with it.
struct QuantizedArrays {
  simt::Span<const std::uint16_t> q, k, v;
  simt::Span<const int> begins;  ///< of documents, [length]
  simt::Span<std::uint16_t> o;
  simt::Span<float> lse;
  simt::Span<std::uint8_t> q_8, k_8;
  simt::Span<float> q_scales, k_scales, k_mean, q_mean;
};

// ---- sizes ----------------------------------------------------------------------------------------

/// A block has one warpgroup per 64 queries.
struct QuantizedSizes {
  int head_dim, block_q, block_k;

  constexpr int threads() const { return 2 * block_q; }
  /// Staging for O; Q; two stages of K and V; their barriers; and slack for alignment.
  constexpr int output_bytes() const { return block_q * head_dim * 2; }
  constexpr int query_bytes() const { return block_q * head_dim; }
  constexpr int key_bytes() const { return block_k * head_dim; }
  constexpr int value_bytes() const { return block_k * head_dim * 2; }
  constexpr int tile_bytes() const {
    return query_bytes() + 2 * (key_bytes() + value_bytes()) + 2 * 8 + 1024;
  }
  constexpr int shared_bytes() const { return output_bytes() + tile_bytes(); }
};
constexpr QuantizedSizes quantized_sizes(int head_dim, bool timed) {
  return {head_dim, timed ? 128 : 64, 64};
}
inline constexpr int kQuantizeThreads = 128;
inline constexpr int kMeanThreads = 256;

// ---- numbers of 8 bits ------------------------------------------------------------------------------

/// The format's largest number, which a tile's largest becomes.
__host__ __device__ constexpr float largest_number(DataType format) {
  return format == DataType::int8 ? 127.0f : 448.0f;
}
/// The most by which a number may differ from its 8-bit form, times the tile's scale: half a step, which
/// with INT8 is the same everywhere, and with E4M3 (3 bits of mantissa, smallest step 2^-9) grows with the number.
/// The last factors are for the scale's own FP32.
inline double quantization_error(double number, double scale, DataType format) {
  if (format == DataType::int8) return scale * 0.5 * (1 + 0x1p-13);
  return (std::abs(number) * 0x1p-4 + scale * 0x1p-10) * (1 + 0x1p-20);
}

/// The kernels' quantized Q and K: 8-bit numbers times their scales, so that
/// score = (q · k + q_mean) / sqrt(head_dim). The means are 0 unless they were subtracted.
struct QuantizedNumbers {
  std::vector<double> q, k;
  std::vector<float> q_scales, k_scales;
  std::vector<float> k_mean;  ///< [kv_heads × head_dim]
  std::vector<float> q_mean;  ///< [heads × length]
  int block_q = 0, block_k = 0;

  bool there() const { return !q.empty(); }
};

}  // namespace tilestep::flash_attention
