#pragma once

// C = X · W^T, and what follows it, in one launch: the kernel of the lesson hopper-gemm with other epilogues. A consumer has
// a tile's sums in its registers before it stores them, so what follows costs no trip of C to memory.
//
//   bias, residual   C + a number per column, or per number. Half of them are loaded before the products, the rest after
//                    them: as many as there are registers for
//   swiglu           silu(gate) · value. Rows of W alternate, eight of gates and the eight of the same columns' values, so
//                    that a thread has both: what it stores is half as wide
//
// Sums are rounded to BF16 first, as if they had been stored and read back: the results are those of two launches, bit for
// bit. That takes an instruction per pair, and without it the results would be nearer to the exact ones.

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/hopper_gemm/specialized.cu"
#include "kernels/systems/fusion/rows.cu"

namespace tilestep::fusion::SIMT_BACKEND {

namespace product = hopper_gemm::SIMT_BACKEND;
using hopper_gemm::TilePlace;

/// Pairs of neighbouring numbers that are added: a row of them is `pitch` after the one before, 0 for a bias.
struct Added {
  simt::Global<const unsigned> pairs;
  int down, across, pitch;

  template <class T>
  using Stored = T;
  /// The pairs of half of the tile's columns.
  template <class T>
  struct Ahead {
    unsigned pairs[T::kColumns / 16][2];
  };
  /// From column block `first` on; a thread has a pair of each 8 columns, in two rows.
  template <class T>
  __device__ __forceinline__ Ahead<T> half_of(const TilePlace& place, int first) const {
    Ahead<T> some;
    const int thread = static_cast<int>(threadIdx.x) % product::kWarpgroup;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = place.row + thread / 32 * 16 + i * 8 + thread % 32 / 4;
      const std::ptrdiff_t start = static_cast<std::ptrdiff_t>(row) * pitch;
#pragma unroll
      for (int j = 0; j < T::kColumns / 16; ++j) {
        const int at = place.column / 2 + 4 * (first + j) + thread % 4;
        some.pairs[j][i] = row < down && at < across ? pairs[start + at] : 0;
      }
    }
    return some;
  }
  template <class T, class Place>
  __device__ __forceinline__ Ahead<T> ahead(const Place& here) const {
    return half_of<T>(here(), 0);
  }
  template <class T>
  __device__ __forceinline__ void apply(typename T::Sums& sums, const Ahead<T>& some,
                                        const TilePlace& place) const {
    constexpr int kHalf = T::kColumns / 16;
    const Ahead<T> others = half_of<T>(place, kHalf);
#pragma unroll
    for (int i = 0; i < 4 * kHalf; ++i) {
      const unsigned stored = simt::pack_bf16(sums[2 * i], sums[2 * i + 1]);
      const unsigned pair = (i < 2 * kHalf ? some : others).pairs[i / 2 % kHalf][i % 2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        sums[2 * i + half] =
            simt::unpack_bf16(stored, half) + simt::unpack_bf16(pair, half);  // [step: added]
      }
    }
  }
};

struct Swiglu {
  template <class T>
  using Stored = product::Tile<T::kColumns / 2, T::kFormat>;
  template <class T>
  struct Ahead {};
  template <class T, class Place>
  __device__ __forceinline__ Ahead<T> ahead(const Place&) const {
    return {};
  }
  /// The results take the place of the first half of the sums.
  template <class T>
  __device__ __forceinline__ void apply(typename T::Sums& sums, const Ahead<T>&,
                                        const TilePlace&) const {
#pragma unroll
    for (int i = 0; i < T::kColumns / 8; ++i) {
      const float* from = &sums[i / 2 * 8 + i % 2 * 2];
      const unsigned gates = simt::pack_bf16(from[0], from[1]);
      const unsigned values = simt::pack_bf16(from[4], from[5]);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        sums[2 * i + half] = silu(simt::unpack_bf16(gates, half)) *
                             simt::unpack_bf16(values, half);  // [step: swiglu]
      }
    }
  }
};

template <class Then, class T, class R, int kCluster>
__global__ void __launch_bounds__(3 * product::kWarpgroup, 1)
    multiply_then(const __grid_constant__ product::TensorMaps maps, product::Task task, R ring,
                  Then then) {
  product::specialize<T, R, std::uint16_t, kCluster>(maps, {}, task, ring, simt::NoTape{}, then);
}

/// The bias in a launch of its own. A thread has 8 columns in kBiasRows rows.
constexpr int kBiasRows = 4;
__global__ void add_bias(simt::Global<const uint4> c, simt::Global<const uint4> bias,
                         simt::Global<uint4> out, int rows, int packs) {
  using Pack = Wide<Dtype::bf16>;
  const int pack = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int first = static_cast<int>(blockIdx.y) * kBiasRows;
  if (pack >= packs) return;
  const std::ptrdiff_t start = static_cast<std::ptrdiff_t>(first) * packs + pack;
  uint4 some[kBiasRows];
#pragma unroll
  for (int i = 0; i < kBiasRows; ++i) {
    if (first + i < rows) some[i] = c[start + i * packs];
  }
  Pack::Numbers b, n;
  Pack::unpack(bias[pack], b);
#pragma unroll
  for (int i = 0; i < kBiasRows; ++i) {
    if (first + i >= rows) break;
    Pack::unpack(some[i], n);
    for (int j = 0; j < Pack::kNumbers; ++j) n[j] += b[j];
    out[start + i * packs] = Pack::pack(n);
  }
}

}  // namespace tilestep::fusion::SIMT_BACKEND
