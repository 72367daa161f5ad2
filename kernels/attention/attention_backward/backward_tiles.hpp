#pragma once

/// \file
/// Shared by the kernels of the backward pass. With S = Q·K^T / sqrt(head_dim), P = softmax(S), O = P·V and dO
/// given:
///
///     dV = P^T·dO   dP = dO·V^T   dS = P ∘ (dP − D)   dQ = dS·K / sqrt(head_dim)   dK = dS^T·Q / sqrt(head_dim)
///
/// where D, one number per query, is the sum of P ∘ dP over its keys, equal to that of dO ∘ O over its columns. A
/// score modifier's slope is one more factor of dS.

#include "kernels/attention/attention_backward/kernels.hpp"
#include "kernels/attention/shared/device/softmax.hpp"

namespace tilestep::attention_backward::SIMT_BACKEND {

using namespace attention::SIMT_BACKEND;

// ---- sizes --------------------------------------------------------------------------------------------

/// For blocks that own a tile of keys, whose warps have strips of 16 of them: chosen at run time …
struct AnyKeyTiles {
  int block_q, block_k, columns, head_dim, threads;
  static constexpr int strips = 1;      ///< of keys, of a warp
  static constexpr int sum_strips = 1;  ///< of queries, of the dQ that a warp computes at a time
  static constexpr int part = 16;       ///< queries whose scores are in registers at a time
  static constexpr int kMostColumns = 256, kMostThreads = 256, kBlocks = 1;
  static constexpr int kUnroll = kNever;
};
/// … or at compile time.
template <int kQ, int kPart, int kK, int kD, int kWarps, int kB>
struct FixedKeyTiles {
  static constexpr int block_q = kQ, block_k = kK, head_dim = kD, threads = 32 * kWarps;
  static constexpr int columns = filled_columns(kD);
  static constexpr int strips = kK / kWarps / kStrip;
  static constexpr int sum_strips = kQ / kStrip % 2 == 0 ? 2 : 1;
  static constexpr int part = kPart;
  static constexpr int kMostColumns = columns, kMostThreads = threads, kBlocks = kB;
  static constexpr int kUnroll = kFully;
  static_assert(strips * kWarps * kStrip == kK && kQ % kPart == 0 && kPart % kStrip == 0);
};

/// Registers of a lane: scores with keys down and queries across, and their rows of dK or dV.
template <class T>
using KeyScores = float[T::strips][T::part / 8][4];
template <class T>
using KeyOutputs = float[T::strips][T::kMostColumns / 8][4];

/// A kernel's arrays.
template <class Tape>
struct BackwardOperands {
  template <class T>
  using Array = ArrayOf<Tape, T>;

  Array<const Bits> q, k, v, o, d_o;
  simt::Global<const int> begins;
  Array<const float> lse;
  Array<float> terms, dq_sums;
  Array<Bits> dq, dk, dv;
};

/// A tile of keys: `first` … `last` of `head` of K and V.
struct KeyTile {
  int head, tile, first, last;
};
/// Tile `number` over all heads. Where later queries see more keys, most queries see the first keys, so these
/// come first.
__device__ __forceinline__ KeyTile key_tile(const Setting& set, int block_k, int number) {
  const int tiles = (set.length() + block_k - 1) / block_k;
  const int tile = number % tiles;
  const int first = tile * block_k;
  return {number / tiles, tile, first, min(first + block_k, set.length()) - 1};
}

/// Tells the compiler that no thread index is negative as an int. Divisions then become shifts, which frees
/// registers in a kernel that needs all of them.
#if defined(__CUDACC__)
__device__ __forceinline__ void assume_few_threads() {
  __builtin_assume(threadIdx.x < 1024);
}
#else
inline void assume_few_threads() {}
#endif

// ---- numbers in registers ------------------------------------------------------------------------------

/// 16 bytes of memory as numbers.
template <class From>
__device__ __forceinline__ void load_chunk(float (&numbers)[Bf16::kChunk], const From& from) {
  ask(from, 0, 16);
  const uint4 bits = simt::as<const uint4>(array_of(from))[0];
  const unsigned pairs[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
  for (int i = 0; i < 8; ++i) numbers[i] = simt::unpack_bf16(pairs[i / 2], i % 2);
}

/// Atomically adds four neighbours, aligned to 16 bytes: one instruction from compute capability
/// 9.0 on. The old values are not returned.
#if defined(__CUDACC__)
__device__ __forceinline__ void add_atomically(float* to, const float4& four) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"l"(to), "f"(four.x),
               "f"(four.y), "f"(four.z), "f"(four.w)
               : "memory");
#else
  atomicAdd(to, four.x);
  atomicAdd(to + 1, four.y);
  atomicAdd(to + 2, four.z);
  atomicAdd(to + 3, four.w);
#endif
}
#else
inline void add_atomically(const simt::Global<float>& to, const float4& four) {
  atomicAdd(&to[0], four.x);
  atomicAdd(&to[1], four.y);
  atomicAdd(&to[2], four.z);
  atomicAdd(&to[3], four.w);
}
#endif
template <class To>
__device__ __forceinline__ void add4(const To& to, const float4& four) {
  ask(to, 1, 16);
  add_atomically(array_of(to), four);
}

// ---- products ------------------------------------------------------------------------------------------

/// Adds A^T·B to `sums`: from A, `depth` rows of `a_columns` in shared memory, the columns from `first_row` on, 16
/// per strip; from B, `depth` rows of `columns`, the given number of fragments of 8 from `first_column` on.
template <int kUnroll, int kStrips, int kFragments>
__device__ __forceinline__ void multiply_transposed(float (&sums)[kStrips][kFragments][4],
                                                    simt::Shared<Bits> a_tile, int first_row,
                                                    int a_columns, simt::Shared<Bits> b_tile,
                                                    int first_column, int columns, int fragments,
                                                    int depth) {
  const Lane me;
  const int a_key = chunk_key(me.lane % 8, a_columns / Bf16::kChunk);
  const int b_key = chunk_key(me.lane % 8, columns / Bf16::kChunk);
  const int a_row = (me.lane / 16 * 8 + me.lane % 8) * a_columns;
  const int b_row = me.lane % 16 * columns;
#pragma unroll kUnroll
  for (int step = 0; step < depth / 16; ++step) {
    unsigned a[kStrips][4];
#pragma unroll kUnroll
    for (int i = 0; i < kStrips; ++i) {
      const int chunk = (first_row / 8 + 2 * i + me.lane / 8 % 2) ^ a_key;
      simt::ldmatrix_x4_trans(a[i],
                              a_tile + (a_row + step * 16 * a_columns + chunk * Bf16::kChunk));
    }
#pragma unroll kUnroll
    for (int j = 0; j < fragments / 2; ++j) {
      const int chunk = (first_column / 8 + 2 * j + me.lane / 16) ^ b_key;
      unsigned b[4];  // two fragments of 8 columns
      simt::ldmatrix_x4_trans(b, b_tile + (b_row + step * 16 * columns + chunk * Bf16::kChunk));
#pragma unroll kUnroll
      for (int i = 0; i < kStrips; ++i) {
        Bf16::multiply(sums[i][2 * j], a[i], b[0], b[1]);
        Bf16::multiply(sums[i][2 * j + 1], a[i], b[2], b[3]);
      }
    }
  }
}

/// Stores a warp's strips, times a factor, through its own rows of a tile in shared memory, so that whole rows are
/// written.
template <int kUnroll, class To, int kStrips, int kFragments>
__device__ __forceinline__ void store_strips(const Rows<To>& to,
                                             const float (&values)[kStrips][kFragments][4],
                                             float factor, simt::Shared<Bits> tile, int columns) {
  const Lane me;
  const int first_row = me.warp * kStrips * kStrip;
  __syncwarp();  // all lanes are done with the old contents
#pragma unroll kUnroll
  for (int i = 0; i < kStrips; ++i) {
    put_strip<kUnroll>(tile, first_row + i * kStrip, columns, values[i], factor, factor);
  }
  __syncwarp();  // all lanes' rows are written
  store_rows(to, tile, first_row, kStrips * kStrip, columns);
}

// ---- D -------------------------------------------------------------------------------------------------

/// Each query's log-sum-exp, to base 2, with its sum of dO ∘ O; and zeros, where blocks will add up dQ. Eight lanes
/// per row, `padded` rows per head: rows beyond the length, and queries that see no key, get infinity, so that
/// 2^(score − it) is 0.
template <class Tape>
__global__ void __launch_bounds__(kRowThreads)
    output_times_gradient(BackwardOperands<Tape> arrays, Setting set, int head_dim, int padded,
                          int sums) {
  const int part = static_cast<int>(threadIdx.x % 8);
  const int row =
      static_cast<int>(blockIdx.x) * (kRowThreads / 8) + static_cast<int>(threadIdx.x / 8);
  const int query = row % padded;
  const std::int64_t at = std::int64_t{row / padded} * set.length() + query;
  const bool there = query < set.length();
  float d = 0;
  for (int chunk = part; there && chunk < head_dim / Bf16::kChunk; chunk += 8) {
    const auto offset = static_cast<std::ptrdiff_t>(at * head_dim + chunk * Bf16::kChunk);
    float o[Bf16::kChunk], d_o[Bf16::kChunk];
    load_chunk(o, arrays.o + offset);
    load_chunk(d_o, arrays.d_o + offset);
#pragma unroll
    for (int i = 0; i < Bf16::kChunk; ++i) d = fmaf(o[i], d_o[i], d);
  }
  for (int lane = 1; lane < 8; lane *= 2) d += __shfl_xor_sync(kAllLanes, d, lane);
  const std::ptrdiff_t mine = row;
  if (part == 0) {
    const float lse = there ? load(arrays.lse + static_cast<std::ptrdiff_t>(at)) : -INFINITY;
    const auto to = arrays.terms + 2 * mine;
    ask(to, 1, 8);
    simt::as<float2>(array_of(to))[0] = make_float2(lse == -INFINITY ? INFINITY : lse * kLog2e, d);
  }
  for (int i = part; i < sums / 4; i += 8) {
    const auto to = arrays.dq_sums + (mine * sums + 4 * i);
    ask(to, 1, 16);
    simt::as<float4>(array_of(to))[0] = make_float4(0, 0, 0, 0);
  }
}

}  // namespace tilestep::attention_backward::SIMT_BACKEND
