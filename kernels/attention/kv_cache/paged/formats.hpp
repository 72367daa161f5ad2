#pragma once

/// \file
/// How numbers of a paged cache become tensor-core operands (mma.m16n8k16, simt/mma.hpp).
///
/// A warp takes 16 tokens and two chunks of 16 bytes of their rows at a time: ldmatrix gives register r[2c + h], which
/// has four bytes of chunk c of one of the tokens 8h … 8h + 7; transposed, of two tokens a unit of 16 bits each. A
/// chunk has 8, 16 or 32 numbers of 16, 8 or 4 bits, so these are one, two or four steps of 16 columns.
/// `expand` turns them into fragments[step][h][2]:
///
///     K      fragments[step][h] is B's fragment of tokens 8h … and 16 columns: S += Q·K^T
///     V      the four registers of a step are A's fragment, V^T: 16 columns down, 16 tokens across: O^T += V^T·P^T
///
/// Which columns a step has, and in which order, follows from where unpacking leaves them with the fewest
/// instructions: the queries are laid out the same way (`column_of_query`), and O is stored accordingly
/// (`column_of_output`). O^T has queries across: eight of them fill the tensor core, where O would need sixteen.

#include <cstdint>

#include "kernels/attention/kv_cache/paged/problem.hpp"
#include "kernels/base/simt/packed.hpp"

namespace tilestep::kv_cache::paged::SIMT_BACKEND {

// ---- numbers ----------------------------------------------------------------------------------------

struct Bf16 {
  __device__ static unsigned pack(float low, float high) { return simt::pack_bf16(low, high); }
  __device__ static float number(unsigned bits) { return simt::unpack_bf16(bits, 0); }
  __device__ static void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    simt::mma_m16n8k16_bf16(d, a, b0, b1);
  }
};
struct Fp16 {
  __device__ static unsigned pack(float low, float high) { return simt::pack_fp16(low, high); }
  __device__ static float number(unsigned bits) { return simt::unpack_fp16(bits, 0); }
  __device__ static void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    simt::mma_m16n8k16_fp16(d, a, b0, b1);
  }
};

// ---- formats of the cache ---------------------------------------------------------------------------

template <int kStepsOfPair>
using Fragments = unsigned[kStepsOfPair][2][2];

/// What a format leaves to the accumulators. An operand is `unit(reg)` · (number + kOffset), whichever is cheapest to
/// make of the bits: queries absorb the difference between the units, scores start at minus the offset's excess
/// (paged.cu, `offset_of`), and a row of ones under V^T sums up O's excess (`output_of`).
struct AsItIs {
  static constexpr int kOffset = 0;
  static constexpr float kScoreUnit = 1;  ///< of scores as they are summed up
  __device__ static constexpr float query_factor(int) { return 1; }
  __device__ static constexpr float per_unit(int) {
    return 1;
  }  ///< 1 / unit of register `reg` of a fragment
};

/// Numbers of 16 bits, multiplied as they are.
template <class N>
struct Plain : AsItIs {
  using Number = N;
  static constexpr int kBits = 16, kSteps = 1;  ///< of two chunks
  static constexpr bool kScales = false;
  static constexpr float kGain = 1;

  __device__ __forceinline__ static void expand(Fragments<1>& f, const unsigned (&r)[4]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      f[0][h][0] = r[h];
      f[0][h][1] = r[2 + h];
    }
  }
  /// Of number `half` in register `reg` of B's fragment, of a lane whose number in its group of four is `place`.
  __device__ static constexpr int column_of_query(int step, int reg, int half, int place) {
    return step * 16 + reg * 8 + place * 2 + half;
  }
  /// Of the row of O^T that is `group` of a step's first eight, or of its last.
  __device__ static constexpr int column_of_output(int step, int last, int group) {
    return step * 16 + last * 8 + group;
  }
};

/// Numbers of a byte. Bytes 0 and 2 of a register form a pair, and 1 and 3: transposed, these are two tokens' numbers
/// of one column. Unpack::kGain: weights are multiplied by a token's scale before they become FP16, and by this
/// power of two, which keeps small ones away from FP16's smallest.
template <class Unpack>
struct Bytes : Unpack {
  using Number = Fp16;
  static constexpr int kBits = 8, kSteps = 2;
  static constexpr bool kScales = true;

  __device__ __forceinline__ static void expand(Fragments<2>& f, const unsigned (&r)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) Unpack::unpack(f[i / 2][i % 2], r[i]);
  }
  __device__ static constexpr int column_of_query(int step, int reg, int half, int place) {
    return step * 16 + place * 4 + half * 2 + reg;
  }
  __device__ static constexpr int column_of_output(int step, int last, int group) {
    return step * 16 + group * 2 + last;
  }
};
struct UnpackE4m3 : AsItIs {
  static constexpr float kGain = 256;

  __device__ __forceinline__ static void unpack(unsigned (&two)[2], unsigned four) {
    const unsigned sorted = simt::permute_bytes(four, 0, 0x3120);
    two[0] = simt::unpack_e4m3x2(sorted);
    two[1] = simt::unpack_e4m3x2(sorted >> 16);
  }
};
/// An integer n in FP16's lowest bits is n · 2^-24, a subnormal number, which tensor cores multiply like any other:
/// unpacking is masking. With the sign bit flipped it is 0 … 255 for −128 … 127.
struct UnpackInt8 {
  static constexpr int kOffset = 128;
  static constexpr float kGain = 128, kScoreUnit = 0x1p-24f;
  __device__ static constexpr float query_factor(int) { return 1; }
  __device__ static constexpr float per_unit(int) { return 0x1p24f; }

  __device__ __forceinline__ static void unpack(unsigned (&two)[2], unsigned four) {
    two[0] = simt::mask_and_turn(four, 0x00FF00FFu, 0x00800080u);
    two[1] = simt::mask_and_turn(four >> 8, 0x00FF00FFu, 0x00800080u);
  }
};

/// Numbers of half a byte. Those 16 bits apart form a pair; the same trick as with INT8, but the numbers of a
/// fragment's second register are four bits higher and so count sixteen times as much.
struct Int4 {
  using Number = Fp16;
  static constexpr int kBits = 4, kSteps = 4, kOffset = 8;
  static constexpr bool kScales = true;
  static constexpr float kGain = 8, kScoreUnit = 0x1p-24f;
  __device__ static constexpr float query_factor(int reg) { return reg == 0 ? 1 : 0x1p-4f; }
  __device__ static constexpr float per_unit(int reg) { return reg == 0 ? 0x1p24f : 0x1p20f; }

  __device__ __forceinline__ static void expand(Fragments<4>& f, const unsigned (&r)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      unpack(f[i / 2 * 2][i % 2], r[i]);
      unpack(f[i / 2 * 2 + 1][i % 2], r[i] >> 8);
    }
  }
  __device__ static constexpr int column_of_query(int step, int reg, int half, int place) {
    return step / 2 * 32 + place * 8 + half * 4 + step % 2 * 2 + reg;
  }
  __device__ static constexpr int column_of_output(int step, int last, int group) {
    return step / 2 * 32 + group * 4 + step % 2 * 2 + last;
  }

 private:
  __device__ __forceinline__ static void unpack(unsigned (&two)[2], unsigned bits) {
    two[0] = simt::mask_and_turn(bits, 0x000F000Fu, 0x00080008u);
    two[1] = simt::mask_and_turn(bits, 0x00F000F0u, 0x00800080u);
  }
};

using E4m3 = Bytes<UnpackE4m3>;
using Int8 = Bytes<UnpackInt8>;

}  // namespace tilestep::kv_cache::paged::SIMT_BACKEND
