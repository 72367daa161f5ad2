#pragma once

/// \file
/// What the backward pass for Hopper is asked for: a problem, its arrays, the sizes of its tiles, scratch memory.

#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention_backward/hopper/schedule.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/simt/device.hpp"

namespace tilestep::attention_backward::hopper {

/// What is to be computed. The mask is none, causal or a sliding window without sinks; rule.length is the length.
struct Problem {
  int head_dim = 128;  ///< 64 or 128
  int heads = 1, kv_heads = 1;
  MaskRule rule;
};
/// On the device: q, o, d_o, dq [heads][length][head_dim], k, v, dk, dv [kv_heads][length][head_dim], lse
/// [heads][length]; `rows` and `sums` are scratch memory, of as many numbers as scratch_of says.
struct Arrays {
  simt::Span<const std::uint16_t> q, k, v, o, d_o;
  simt::Span<const float> lse;
  simt::Span<std::uint16_t> dq, dk, dv;
  simt::Span<float> rows, sums;
};
/// Tiles of the timed kernels. Their products come in the order `dq_first`: the fastest of the three on an H200.
constexpr TileSizes timed_sizes(int head_dim) {
  return head_dim == 64 ? TileSizes{64, 128, 2, 2} : TileSizes{128, 64, 2, 2};
}
constexpr int query_tiles_of(const Problem& problem, int queries) {
  return (problem.rule.length + queries - 1) / queries;
}

/// FP32 numbers of scratch memory: 8 bytes for each query, and dQ in FP32.
struct Scratch {
  std::size_t rows, sums;
};
inline Scratch scratch_of(const Problem& problem, const TileSizes& sizes) {
  const auto rows =
      numeric::elements_of(problem.heads * query_tiles_of(problem, sizes.queries), sizes.queries);
  return {2 * rows, rows * static_cast<std::size_t>(sizes.head_dim)};
}
inline Scratch scratch_of(const Problem& problem) {
  return scratch_of(problem, timed_sizes(problem.head_dim));
}

/// The order of the tiles of keys. Under a causal mask the first ones take longest: those of several heads begin
/// together, so that short ones are left for the end, but not of all, so that what they read stays in L2.
constexpr TileOrder order_of(const Problem& problem, int together) {
  const int tiles = (problem.rule.length + kKeys - 1) / kKeys;
  return {tiles, problem.kv_heads, together < problem.kv_heads ? together : problem.kv_heads};
}
inline constexpr int kHeadsTogether = 4;

}  // namespace tilestep::attention_backward::hopper
