#pragma once

// Attention that goes from tile to tile of keys and leaves out those that the block mask skips. A block has a tile of
// queries, each warp some of its rows; a lane has a key of the tile, and then a column of O.

#include <cmath>

#include "kernels/attention/sparse_attention/masks.cu"
#include "kernels/base/simt/softmax_step.hpp"

namespace tilestep::sparse_attention::SIMT_BACKEND {

constexpr unsigned kAllLanes = 0xFFFFFFFFu;
constexpr int kWarps = 4, kRowsEach = kMostTile / kWarps;

__device__ inline float largest_of_warp(float x) {
  for (int apart = 16; apart > 0; apart /= 2) x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, apart));
  return x;
}
__device__ inline float sum_of_warp(float x) {
  for (int apart = 16; apart > 0; apart /= 2) x += __shfl_xor_sync(kAllLanes, x, apart);
  return x;
}

/// A row of O on its way: online softmax. A lane has column `lane` of o.
struct Row {
  float m = -INFINITY, l = 0, o = 0;

  /// Up to 32 keys: the lane's own score, −∞ for none, and the values, [key][kValue].
  template <class Values>
  __device__ void add(float score, int keys, const Values& values) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const auto step = simt::raise_maximum<simt::NaturalExp>(m, largest_of_warp(score));
    const float weight = step.weight(score);
    l = l * step.rescale + sum_of_warp(weight);
    o *= step.rescale;
    for (int key = 0; key < keys; ++key) {
      const float its = __shfl_sync(kAllLanes, weight, key);
      if (lane < kValue) o = fmaf(its, values[key * kValue + lane], o);
    }
  }
  __device__ float output() const { return l > 0 ? o / l : 0; }
  __device__ float log_sum() const { return l > 0 ? m + logf(l) : -INFINITY; }
};

/// q · k, one product after another.
template <class Q, class K>
__device__ float product(const Q& q, const K& k) {
  float sum = 0;
  for (int i = 0; i < kKey; ++i) sum = fmaf(q[i], k[i], sum);
  return sum;
}

struct Attention {
  simt::Global<const float> q, k, v;
  simt::Global<const int> kinds;
  simt::Global<float> o, lse;
  float scale;  ///< 1 / √kKey
};

template <class Tape>
__global__ void attend_kernel(Attention a, Mask mask, int tile, Tape tape) {
  const auto k_tile = simt::dynamic_shared<float>(tile * kKey, 0, "K");
  const auto v_tile = simt::dynamic_shared<float>(
      tile * kValue, static_cast<std::size_t>(tile * kKey) * sizeof(float), "V");
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int first_q = static_cast<int>(blockIdx.x) * tile, tiles = static_cast<int>(gridDim.x);
  Row rows[kRowsEach];
  for (int t = 0; t < tiles; ++t) {
    const int at = static_cast<int>(blockIdx.x) * tiles + t;
    const auto kind = static_cast<TileKind>(a.kinds[at]);
    if (kind == TileKind::skipped) continue;  // [step: skip]
    if (thread == 0) tape.note(kVisit, at, static_cast<int>(kind));
    const int first_k = t * tile, keys = min(tile, mask.length - first_k);
    __syncthreads();  // all are done with the tile before
    for (int i = thread; i < keys * kKey; i += kWarps * 32) k_tile[i] = a.k[first_k * kKey + i];
    for (int i = thread; i < keys * kValue; i += kWarps * 32) v_tile[i] = a.v[first_k * kValue + i];
    __syncthreads();  // this one is there
    for (int r = 0; r * kWarps + warp < tile; ++r) {
      const int q = first_q + r * kWarps + warp, k = first_k + lane;
      if (q >= mask.length) break;
      float score = -INFINITY;
      if (lane < keys) {
        score = a.scale * product(a.q + q * kKey, k_tile + lane * kKey);  // [step: score]
        if (mask.method == Method::own) score = score_mod(score, q, k);
        if (kind == TileKind::partial && !mask.sees(q, k)) score = -INFINITY;  // [step: mask]
        tape.note(kScore, static_cast<std::int64_t>(q) * mask.length + k, score);
      }
      rows[r].add(score, keys, v_tile);
    }
  }
  for (int r = 0; r * kWarps + warp < tile; ++r) {
    const int q = first_q + r * kWarps + warp;
    if (q >= mask.length) break;
    if (lane < kValue) a.o[q * kValue + lane] = rows[r].output();
    if (lane == 0) a.lse[q] = rows[r].log_sum();
  }
}

}  // namespace tilestep::sparse_attention::SIMT_BACKEND
