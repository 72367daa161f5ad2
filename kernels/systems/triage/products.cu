// Y = X · W^T of a decode step, for up to 8 rows of X: a warp has a few rows of W. Five kernels, by how W lies in memory. Which
// of them runs is all that a profile shows of a shape or a format that does not fit.

#include "kernels/systems/triage/watch.hpp"

namespace tilestep::triage::SIMT_BACKEND {

using parts::add_pack, parts::bf16_value, parts::kPack, parts::warp_sum;

/// Rows of W that a warp has, and the packs of each that it asks for before it uses the first.
inline constexpr int kRowsOfWarp = 2, kPacksAhead = 4, kRowsOfBytes = 4;

/// Leaves the sums of a warp's rows in Y.
template <int kTokens, int kRows, class Its>
__device__ __forceinline__ void write_rows(const float (&sums)[kRows][kTokens],
                                           const simt::Global<float>& y, int first, int rows,
                                           int tokens, bool adds, const Its& watch) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      const float sum = warp_sum(sums[r][token]);
      if (threadIdx.x % 32 != 0 || token >= tokens || first + r >= rows) continue;
      const int at = token * rows + first + r;
      watch.store(y, at, adds ? y[at] + sum : sum);
    }
  }
}
__device__ __forceinline__ int first_row(int rows_of_warp) {
  return (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * rows_of_warp;
}

/// W in packs of 8 numbers: 16 bytes per load.
template <int kTokens, class Its>
__global__ void product(simt::Global<const uint4> w, simt::Global<const float> x,
                        simt::Global<float> y, Product shape, Its watch) {
  watch.begin();
  const int lane = threadIdx.x % 32, first = first_row(kRowsOfWarp);
  const int packs = shape.k / kPack, pitch = shape.pitch / kPack;
  float sums[kRowsOfWarp][kTokens] = {};
  for (int at = lane; at < packs; at += 32 * kPacksAhead) {
    uint4 ahead[kPacksAhead][kRowsOfWarp];
#pragma unroll  // the packs are registers
    for (int i = 0; i < kPacksAhead; ++i) {
#pragma unroll
      for (int r = 0; r < kRowsOfWarp; ++r) {
        const int pack = at + 32 * i;
        ahead[i][r] = pack < packs && first + r < shape.rows
                          ? watch.early(w, static_cast<std::ptrdiff_t>(first + r) * pitch +
                                               pack)  // [step: packs]
                          : uint4{0, 0, 0, 0};
      }
    }
#pragma unroll
    for (int i = 0; i < kPacksAhead; ++i) {
      const int pack = at + 32 * i;
      if (pack >= packs) continue;
#pragma unroll
      for (int token = 0; token < kTokens; ++token) {
        if (token >= shape.tokens) continue;
        const auto fours = simt::as<const float4>(x);
        const std::ptrdiff_t four =
            (static_cast<std::ptrdiff_t>(token) * shape.k + pack * kPack) / 4;
        const float4 low = fours[four], high = fours[four + 1];
#pragma unroll
        for (int r = 0; r < kRowsOfWarp; ++r) add_pack(ahead[i][r], low, high, sums[r][token]);
      }
    }
  }
  write_rows(sums, y, first, shape.rows, shape.tokens, shape.adds, watch);
  watch.end();
}

/// W in numbers, wherever a row begins: the kernel that takes what no other does. 2 bytes per load, and one load at a time.
template <int kTokens, class Its>
__global__ void product_single(simt::Global<const std::uint16_t> w, simt::Global<const float> x,
                               simt::Global<float> y, Product shape, Its watch) {
  watch.begin();
  const int lane = threadIdx.x % 32, row = first_row(1);
  float sums[1][kTokens] = {};
  if (row < shape.rows) {
#pragma unroll 1
    for (int i = lane; i < shape.k; i += 32) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * shape.pitch + i;
      const float weight = bf16_value(watch.load(w, at));  // [step: single]
#pragma unroll
      for (int token = 0; token < kTokens; ++token) {
        if (token < shape.tokens) sums[0][token] += weight * x[token * shape.k + i];
      }
    }
  }
  write_rows(sums, y, row, shape.rows, shape.tokens, shape.adds, watch);
  watch.end();
}

/// W stored by columns and read by rows: neighbouring lanes read numbers that are a column apart.
template <int kTokens, class Its>
__global__ void product_columns(simt::Global<const std::uint16_t> w, simt::Global<const float> x,
                                simt::Global<float> y, Product shape, Its watch) {
  watch.begin();
  const int lane = threadIdx.x % 32, row = first_row(1);
  float sums[1][kTokens] = {};
  if (row < shape.rows) {
    for (int i = lane; i < shape.k; i += 32) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(i) * shape.rows + row;
      const float weight = bf16_value(watch.load(w, at));  // [step: columns]
#pragma unroll
      for (int token = 0; token < kTokens; ++token) {
        if (token < shape.tokens) sums[0][token] += weight * x[token * shape.k + i];
      }
    }
  }
  write_rows(sums, y, row, shape.rows, shape.tokens, shape.adds, watch);
  watch.end();
}

/// W in FP32: as many loads of 16 bytes as half as many numbers need.
template <int kTokens, class Its>
__global__ void product_floats(simt::Global<const float4> w, simt::Global<const float> x,
                               simt::Global<float> y, Product shape, Its watch) {
  watch.begin();
  constexpr int kAhead = 4;
  const int lane = threadIdx.x % 32, first = first_row(kRowsOfWarp);
  const int fours = shape.k / 4, pitch = shape.pitch / 4;
  float sums[kRowsOfWarp][kTokens] = {};
  for (int at = lane; at < fours; at += 32 * kAhead) {
    float4 ahead[kAhead][kRowsOfWarp];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
#pragma unroll
      for (int r = 0; r < kRowsOfWarp; ++r) {
        const int four = at + 32 * i;
        ahead[i][r] = four < fours && first + r < shape.rows
                          ? watch.load(w, static_cast<std::ptrdiff_t>(first + r) * pitch +
                                              four)  // [step: floats]
                          : float4{0, 0, 0, 0};
      }
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int four = at + 32 * i;
      if (four >= fours) continue;
#pragma unroll
      for (int token = 0; token < kTokens; ++token) {
        if (token >= shape.tokens) continue;
        const float4 its =
            simt::as<const float4>(x)[static_cast<std::ptrdiff_t>(token) * fours + four];
#pragma unroll
        for (int r = 0; r < kRowsOfWarp; ++r) {
          const float4& one = ahead[i][r];
          sums[r][token] += one.x * its.x + one.y * its.y + one.z * its.z + one.w * its.w;
        }
      }
    }
  }
  write_rows(sums, y, first, shape.rows, shape.tokens, shape.adds, watch);
  watch.end();
}

/// Number i of a pack of signed bytes: put into the mantissa of 2^23, which converts faster than an instruction does.
__device__ __forceinline__ float byte_value(const uint4& pack, int i) {
  const unsigned word = i < 4 ? pack.x : i < 8 ? pack.y : i < 12 ? pack.z : pack.w;
  const unsigned from_128 = ((word ^ 0x80808080u) >> (8 * (i % 4))) & 0xFFu;
  return __uint_as_float(0x4B000000u | from_128) - 8388736.0f;
}

/// W in INT8, with a scale per row, which the sum is multiplied by: the weights are never written out.
template <int kTokens, class Its>
__global__ void product_bytes(simt::Global<const uint4> w, simt::Global<const float> scales,
                              simt::Global<const float> x, simt::Global<float> y, Product shape,
                              Its watch) {
  watch.begin();
  constexpr int kBytes = 16;
  const int lane = threadIdx.x % 32, first = first_row(kRowsOfBytes);
  const int packs = shape.k / kBytes, pitch = shape.pitch / kBytes;
  float sums[kRowsOfBytes][kTokens] = {};
  for (int pack = lane; pack < packs; pack += 32) {
    uint4 its[kRowsOfBytes];
#pragma unroll
    for (int r = 0; r < kRowsOfBytes; ++r) {
      its[r] = first + r < shape.rows
                   ? watch.early(
                         w, static_cast<std::ptrdiff_t>(first + r) * pitch + pack)  // [step: bytes]
                   : uint4{0, 0, 0, 0};
    }
#pragma unroll
    for (int four = 0; four < kBytes / 4; ++four) {
#pragma unroll
      for (int token = 0; token < kTokens; ++token) {
        if (token >= shape.tokens) continue;
        const float4 of = simt::as<const float4>(
            x)[(static_cast<std::ptrdiff_t>(token) * shape.k + pack * kBytes) / 4 + four];
#pragma unroll
        for (int r = 0; r < kRowsOfBytes; ++r) {
          sums[r][token] +=
              byte_value(its[r], 4 * four) * of.x + byte_value(its[r], 4 * four + 1) * of.y +
              byte_value(its[r], 4 * four + 2) * of.z + byte_value(its[r], 4 * four + 3) * of.w;
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRowsOfBytes; ++r) {
    const float scale = first + r < shape.rows ? scales[first + r] : 0.0f;
#pragma unroll
    for (int token = 0; token < kTokens; ++token) sums[r][token] *= scale;
  }
  write_rows(sums, y, first, shape.rows, shape.tokens, shape.adds, watch);
  watch.end();
}

/// INT8 to BF16, 16 numbers per thread. Scales are powers of two, so nothing is rounded.
template <class Its>
__global__ void dequant(simt::Global<const uint4> from, simt::Global<const float> scales,
                        simt::Global<uint4> to, long long packs, int packs_of_row, Its watch) {
  watch.begin();
  const long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < packs) {
    const uint4 its = watch.early(from, static_cast<std::ptrdiff_t>(at));  // [step: dequant]
    const float scale = scales[at / packs_of_row];
    unsigned words[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const unsigned low = __float_as_uint(byte_value(its, 2 * i) * scale),
                     high = __float_as_uint(byte_value(its, 2 * i + 1) * scale);
      words[i] = low >> 16 | (high & 0xFFFF0000u);
    }
    watch.store(to, static_cast<std::ptrdiff_t>(2 * at),
                uint4{words[0], words[1], words[2], words[3]});
    watch.store(to, static_cast<std::ptrdiff_t>(2 * at + 1),
                uint4{words[4], words[5], words[6], words[7]});
  }
  watch.end();
}

}  // namespace tilestep::triage::SIMT_BACKEND
