#pragma once

// One row of X on W as `quantize` writes it, and W to BF16 in memory.
//
//   gemv_few_bits     y = W · x on the tensor cores, W ternary or in Q4_K's super-blocks. Here x is mma's B, of whose eight
//                     columns it fills one. So each column gets other columns of W, and zeros elsewhere: what a group adds
//                     up to comes out in a column of its own, at no further product
//   dequantize_bf16   the numbers of INT4 and NVFP4, for a BF16 GEMM to read
//
// A warp has 256 columns of 16 rows at a time: of rows lane / 4 and 8 below, a lane has each fourth 16 bytes.

#include <cstddef>
#include <cstdint>

#include "kernels/base/simt/hopper.hpp"
#include "kernels/base/simt/packed.hpp"
#include "kernels/numbers/low_bit/codes.hpp"
#include "kernels/numbers/low_bit/linear/launches.hpp"

namespace tilestep::low_bit::SIMT_BACKEND {

using namespace simt::hopper;

/// x of sixteen columns, in pairs: a lane's part of B, for one of its columns.
using Inputs = unsigned[8];

__device__ __forceinline__ unsigned word_at(const uint4& four, int i) {
  return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
}

/// Sixteen neighbours, the two of a pair `kApart` from each other: 8, or 2 within each four.
template <int kApart>
__device__ __forceinline__ void load_inputs(Inputs& to, simt::Global<const std::uint16_t> x) {
  const auto from = simt::as<const uint4>(x);
  const uint4 low = from[0], high = from[1];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const unsigned a = kApart == 8 ? word_at(low, i) : word_at(i < 2 ? low : high, i % 2 * 2);
    const unsigned b = kApart == 8 ? word_at(high, i) : word_at(i < 2 ? low : high, i % 2 * 2 + 1);
    to[2 * i] = simt::permute_bytes(a, b, 0x5410);
    to[2 * i + 1] = simt::permute_bytes(a, b, 0x7632);
  }
}

// ---- ternary ------------------------------------------------------------------------------------

/// Column n of B has word n of each lane's 16 bytes, sixteen columns of W; four stay empty.
struct TernaryOfLane {
  static constexpr int kApart = 8;
  static constexpr bool kOneScale = true;
  uint4 rows[2];

  __device__ __forceinline__ void load(simt::Global<const uint4> codes, int row, int columns,
                                       int slice) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      rows[i] = codes[static_cast<std::ptrdiff_t>(row + lane / 4 + 8 * i) * (columns / 64) +
                      slice * 4 + lane % 4];
    }
  }
  __device__ __forceinline__ static int column_of_inputs(int lane) {
    return lane % 4 * 64 + lane / 4 % 4 * 16;
  }
  __device__ __forceinline__ static bool has_inputs(int lane) {
    return lane < 16;
  }

  /// BF16's sign and its highest bit of the exponent are a code: −2, 0 and 2, a shift and a mask for two weights.
  __device__ __forceinline__ static unsigned pair(unsigned word, int i) {
    return word << (14 - 2 * i) & 0xC000C000u;
  }

  template <int kTiles>
  __device__ __forceinline__ static void add(float (&sums)[kTiles][2],
                                             const TernaryOfLane (&tiles)[kTiles],
                                             const Inputs& x) {
    const int n = static_cast<int>(threadIdx.x) % 32 / 4;
    float products[kTiles][4] = {};
#pragma unroll
    for (int w = 0; w < 4; ++w) {
#pragma unroll
      for (int i = 0; i < 8; i += 2) {
        const unsigned b0 = n == w ? x[i] : 0, b1 = n == w ? x[i + 1] : 0;
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          const unsigned upper = word_at(tiles[tile].rows[0], w);
          const unsigned lower = word_at(tiles[tile].rows[1], w);
          const unsigned a[4] = {pair(upper, i), pair(lower, i), pair(upper, i + 1),
                                 pair(lower, i + 1)};
          simt::mma_m16n8k16_bf16(products[tile], a, b0, b1);
        }
      }
    }
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        sums[tile][i] += products[tile][2 * i] + products[tile][2 * i + 1];
      }
    }
  }
};

// ---- Q4_K ---------------------------------------------------------------------------------------

/// Column n of B has group n of the super-block: 32 bytes hold the codes of two groups, in their low and high halves.
struct Q4KOfLane {
  static constexpr int kApart = 2;
  static constexpr bool kOneScale = false;
  struct Row {
    uint4 head;      ///< d and dmin, then the scales
    uint4 codes[2];  ///< 16 bytes of the first half, and of the second
  } rows[2];

  __device__ __forceinline__ void load(simt::Global<const uint4> blocks, int row, int columns,
                                       int slice) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const auto block =
          blocks +
          (static_cast<std::ptrdiff_t>(row + lane / 4 + 8 * i) * (columns / kSuperBlock) + slice) *
              (kSuperBlockBytes / 16);
      rows[i].head = block[0];
      rows[i].codes[0] = block[1 + lane % 4];
      rows[i].codes[1] = block[5 + lane % 4];
    }
  }
  __device__ __forceinline__ static int column_of_inputs(int lane) {
    return lane / 4 * 32 + lane % 2 * 16;
  }
  /// Two of the four lanes that share 64 bytes have the codes of column n.
  __device__ __forceinline__ static bool has_inputs(int lane) {
    return lane / 8 % 2 == lane / 2 % 2;
  }

  /// BF16's lowest eight bits count in units of 2^-133, below the normal numbers and just above: times 2^127 a code is
  /// q · 2^-6, and one in a byte's upper half sixteen times that, which needs no shift.
  __device__ __forceinline__ static unsigned pair(unsigned word, bool upper) {
    return simt::fma_bf16x2(word & (upper ? 0x00F000F0u : 0x000F000Fu), 0x7F007F00u, 0u);
  }

  /// Σ d·s·q·x − dmin·m·x of two groups, of lower and of upper halves, whose products and sums of x a lane has.
  __device__ __forceinline__ static float scaled(const uint4& head, const float (&products)[2],
                                                 const float (&x)[2]) {
    const int t = static_cast<int>(threadIdx.x) % 4, shift = t % 2 * 16;
    const unsigned a = head.y >> shift, b = head.z >> shift, c = head.w >> shift;
    // 6 bits each: of the last four groups two stand apart, above those of the first four.
    const unsigned s = t < 2 ? a & 0x3F3Fu : (c & 0x0F0Fu) | (a >> 2 & 0x3030u);
    const unsigned m = t < 2 ? b & 0x3F3Fu : (c >> 4 & 0x0F0Fu) | (b >> 2 & 0x3030u);
    const float with_scales = static_cast<float>((s & 0xFFu) * 16) * products[0] +
                              static_cast<float>(s >> 8) * products[1];
    const float with_minima =
        static_cast<float>(m & 0xFFu) * x[0] + static_cast<float>(m >> 8) * x[1];
    return 4 * simt::unpack_fp16(head.x, 0) * with_scales -
           simt::unpack_fp16(head.x, 1) * with_minima;
  }

  template <int kTiles>
  __device__ __forceinline__ static void add(float (&sums)[kTiles][2],
                                             const Q4KOfLane (&tiles)[kTiles], const Inputs& x) {
    const int n = static_cast<int>(threadIdx.x) % 32 / 4;
    // A row of ones has the sums of x, which the minima multiply.
    constexpr unsigned kOnes[4] = {0x3F803F80u, 0x3F803F80u, 0x3F803F80u, 0x3F803F80u};
    float ones[4] = {}, products[kTiles][4] = {};
#pragma unroll
    for (int w = 0; w < 4; ++w) simt::mma_m16n8k16_bf16(ones, kOnes, x[2 * w], x[2 * w + 1]);
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int half = part / 2;
      const bool high = part % 2 == 1;
      const bool mine = n / 4 == half && n % 2 == part % 2;
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const unsigned b0 = mine ? x[2 * w] : 0, b1 = mine ? x[2 * w + 1] : 0;
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          const unsigned upper = word_at(tiles[tile].rows[0].codes[half], w);
          const unsigned lower = word_at(tiles[tile].rows[1].codes[half], w);
          const unsigned a[4] = {pair(upper, high), pair(lower, high), pair(upper >> 8, high),
                                 pair(lower >> 8, high)};
          simt::mma_m16n8k16_bf16(products[tile], a, b0, b1);
        }
      }
    }
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float two[2] = {products[tile][2 * i], products[tile][2 * i + 1]};
        sums[tile][i] += scaled(tiles[tile].rows[i].head, two, {ones[0], ones[1]});
      }
    }
  }
};

// ---- a row of X ---------------------------------------------------------------------------------

/// A block has kTiles · 16 rows of W, its warps every kWarps-th 256 columns, which are on their way while the launch
/// before still runs.
template <class W, int kTiles, int kWarps>
__global__ void __launch_bounds__(kWarps * 32, 16 / kWarps)
    gemv_few_bits(GemvArrays w, LinearShape shape, simt::Global<std::uint16_t> y) {
  // As many of a warp's slices as registers hold.
  constexpr int kAhead = kWarps < 16 && kTiles * sizeof(W) <= 96 ? 2 : 1;
  constexpr int kRows = kTiles * kFragmentRows;
  __shared__ simt::Array<float, kWarps * kRows> parts;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int slices = shape.columns / kSuperBlock, row = static_cast<int>(blockIdx.x) * kRows;
  others_may_begin();
  W ahead[kAhead][kTiles];
  Inputs inputs[kAhead];
  const auto load_w = [&](int i, int slice) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      ahead[i][tile].load(w.codes, row + tile * kFragmentRows, shape.columns, slice);
    }
  };
  const auto load_x = [&](int i, int slice) {
    load_inputs<W::kApart>(inputs[i], w.x + slice * kSuperBlock + W::column_of_inputs(lane));
#pragma unroll
    for (int j = 0; j < 8; ++j) inputs[i][j] = W::has_inputs(lane) ? inputs[i][j] : 0;
  };
#pragma unroll
  for (int i = 0; i < kAhead; ++i) {
    if (warp + i * kWarps < slices) load_w(i, warp + i * kWarps);
  }
  await_launch_before();
#pragma unroll
  for (int i = 0; i < kAhead; ++i) {
    if (warp + i * kWarps < slices) load_x(i, warp + i * kWarps);
  }
  float sums[kTiles][2] = {};
  for (int first = warp; first < slices; first += kAhead * kWarps) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int slice = first + i * kWarps, next = slice + kAhead * kWarps;
      if (slice >= slices) break;
      W::add(sums, ahead[i], inputs[i]);
      if (next >= slices) continue;
      load_w(i, next);
      load_x(i, next);
    }
  }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float sum = sums[tile][i];  // of two columns of B; three more lanes have the others
      sum += __shfl_xor_sync(kAllLanes, sum, 1);
      sum += __shfl_xor_sync(kAllLanes, sum, 2);
      if (lane % 4 == 0) parts[warp * kRows + tile * kFragmentRows + lane / 4 + 8 * i] = sum;
    }
  }
  __syncthreads();  // all warps' parts are there
  if (thread >= kRows) return;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kWarps; ++i) sum += parts[i * kRows + thread];
  if constexpr (W::kOneScale) sum *= w.scale[0] * 0.5f;  // numbers were twice what codes mean
  y[row + thread] = static_cast<std::uint16_t>(simt::pack_bf16(sum, 0.0f));
}

// ---- numbers to memory --------------------------------------------------------------------------

/// A thread has four words of eight codes, a block's width apart: a word becomes 16 bytes, and a warp writes whole lines,
/// four fifths of all that it moves.
template <Format kFormat>
__global__ void dequantize_bf16(simt::Global<const unsigned> codes,
                                simt::Global<const std::uint8_t> scales,
                                simt::Global<const Range> all, int words,
                                simt::Global<uint4> numbers) {
  constexpr int kWords = 4;
  const int first = static_cast<int>(blockIdx.x * kWords * blockDim.x + threadIdx.x);
  unsigned code[kWords] = {};
  float step[kWords] = {};
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    const int at = first + i * static_cast<int>(blockDim.x);
    if (at >= words) break;
    code[i] = codes[at];
    if constexpr (kFormat == Format::nvfp4) {
      step[i] = E4m3::value(scales[at / 2]) * tensor_scale_of(all[0]);
    } else {
      step[i] = simt::unpack_fp16(simt::as<const std::uint16_t>(scales)[at / 16], 0);
    }
  }
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    const int at = first + i * static_cast<int>(blockDim.x);
    if (at >= words) break;
    unsigned pairs[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      pairs[j] = simt::pack_bf16(number_of<kFormat>(code[i] >> 8 * j & 15) * step[i],
                                 number_of<kFormat>(code[i] >> (8 * j + 4) & 15) * step[i]);
    }
    numbers[at] = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  }
}

}  // namespace tilestep::low_bit::SIMT_BACKEND
