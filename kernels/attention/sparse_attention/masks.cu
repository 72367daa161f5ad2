#pragma once

// A mask is a rule: does query q see key k? A kernel that works in tiles wants to know it of whole tiles: full ones need
// no rule, skipped ones no work at all. `tiles_kernel` asks the rule once, ahead of all layers and heads.

#include "kernels/attention/sparse_attention/kernels.hpp"

namespace tilestep::sparse_attention::SIMT_BACKEND {

// ---- your own -------------------------------------------------------------------------------------

// Method `own` runs these two lines: change them.
__device__ inline bool mask_mod(int q, int k) {
  return k <= q && (q - k < 4 || (q - k) % 5 == 0);  // [step: own]
}
__device__ inline float score_mod(float score, int q, int k) {
  return score - 0.02f * static_cast<float>(q - k);
}

// ---- the others -----------------------------------------------------------------------------------

/// What a launch knows of its mask.
struct Mask {
  Method method;
  int length, window;
  simt::Global<const int> documents;

  /// Whether a block of pairs was drawn: about `window` of `length` keys' blocks are.
  __device__ bool drawn(int query_block, int key_block) const {
    if (key_block == query_block || key_block == 0) return true;
    unsigned lot = static_cast<unsigned>(query_block) * 0x9E3779B1u ^
                   static_cast<unsigned>(key_block) * 0x85EBCA6Bu;
    lot = (lot ^ lot >> 15) * 0x2C1B3C6Du;
    lot = (lot ^ lot >> 12) * 0x297A2D39u;
    return static_cast<int>((lot ^ lot >> 15) % static_cast<unsigned>(length)) < window;
  }
  __device__ bool sees(int q, int k) const {
    switch (method) {
      case Method::causal:
        return k <= q;
      case Method::window:
        return k <= q && (q - k < window || k < kSinks);
      case Method::strided:
        return k <= q && (q - k < window || (q - k) % window == 0);
      case Method::block_sparse:
        return k <= q && drawn(q / kBlock, k / kBlock);
      case Method::documents:
        return k <= q && documents[q] == documents[k];
      case Method::prefix:
        return k <= q || k < window;
      default:
        return mask_mod(q, k);  // [step: rule]
    }
  }
};

// ---- the rule, pair by pair and tile by tile ----------------------------------------------------

__global__ void pairs_kernel(Mask mask, simt::Global<int> pairs) {
  const int pair = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (pair >= mask.length * mask.length) return;
  pairs[pair] = mask.sees(pair / mask.length, pair % mask.length) ? 1 : 0;
}

/// A warp for a tile: how many of the pairs that it asks for are seen?
__global__ void tiles_kernel(Mask mask, int tile, Finding finding, simt::Global<int> kinds) {
  const int at = static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x);
  const int first_q = static_cast<int>(blockIdx.y) * tile;
  const int first_k = static_cast<int>(blockIdx.x) * tile;
  const int rows = min(tile, mask.length - first_q), columns = min(tile, mask.length - first_k);
  const bool corners = finding == Finding::corners;
  const int asked = corners ? 4 : rows * columns;
  int seen = 0;
  for (int i = static_cast<int>(threadIdx.x); i < asked; i += 32) {
    const int q = first_q + (corners ? i / 2 * (rows - 1) : i / columns);
    const int k = first_k + (corners ? i % 2 * (columns - 1) : i % columns);
    seen += mask.sees(q, k) ? 1 : 0;  // [step: ask]
  }
  for (int apart = 16; apart > 0; apart /= 2) seen += __shfl_xor_sync(0xFFFFFFFFu, seen, apart);
  TileKind kind = TileKind::partial;
  if (finding != Finding::nothing && seen == 0) kind = TileKind::skipped;
  if (finding != Finding::nothing && seen == asked) kind = TileKind::full;  // [step: kind]
  if (threadIdx.x == 0) kinds[at] = static_cast<int>(kind);
}

}  // namespace tilestep::sparse_attention::SIMT_BACKEND
