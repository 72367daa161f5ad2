#pragma once

/// \file
/// How numbers of a paged cache become operands of the tensor core (mma.m16n8k16, simt/mma.hpp).
///
/// A warp takes 16 tokens and two chunks of 16 bytes of their rows at a time: ldmatrix gives register r[2c + h], which
/// has four bytes of chunk c of one of the tokens 8h … 8h + 7; transposed, of two tokens a unit of 16 bits each. A
/// chunk has 8, 16 or 32 numbers of 16, 8 or 4 bits, so these are one, two or four steps of 16 columns.
/// `expand` makes of them fragments[step][h][2]:
///
///     K      fragments[step][h] is B's fragment of tokens 8h … and 16 columns: S += Q·K^T
///     V      the four registers of a step are A's fragment, V^T: 16 columns down, 16 tokens across: O^T += V^T·P^T
///
/// Which columns a step has, and in which order, follows from where unpacking leaves them with the fewest
/// instructions: the queries are laid out likewise (`column_of_query`), and O is stored accordingly
/// (`column_of_output`). O^T has queries across: eight of them fill the tensor core, where O would need sixteen.

#include <cstdint>

#include "kernels/attention/decode/paged_problem.hpp"
#include "kernels/base/simt/packed.hpp"

namespace tilestep::decode::paged::SIMT_BACKEND {

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

/// Numbers of 16 bits, multiplied as they are.
template <class N>
struct Plain {
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

/// Numbers of a byte. Bytes 0 and 2 of a register go together, and 1 and 3: transposed, these are two tokens' numbers
/// of one column.
template <class Unpack>
struct Bytes {
  using Number = Fp16;
  static constexpr int kBits = 8, kSteps = 2;
  static constexpr bool kScales = true;
  /// Weights are multiplied with a token's scale before they become FP16, and with this power of two, so that small
  /// ones do not come too close to FP16's smallest.
  static constexpr float kGain = Unpack::kGain;

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
struct UnpackE4m3 {
  static constexpr float kGain = 256;

  __device__ __forceinline__ static void unpack(unsigned (&two)[2], unsigned four) {
    const unsigned sorted = simt::permute_bytes(four, 0, 0x3120);
    two[0] = simt::unpack_e4m3x2(sorted);
    two[1] = simt::unpack_e4m3x2(sorted >> 16);
  }
};
/// FP16 1024 … 2047 has whole numbers in its low bits: with the byte there, moved to 0 … 255, one subtraction is left.
/// Kim et al., "Who Says Elephants Can't Run: Bringing Large Scale MoE Models into Cloud Scale Production", 2022
/// (arXiv:2211.10017).
struct UnpackInt8 {
  static constexpr float kGain = 128;

  __device__ __forceinline__ static void unpack(unsigned (&two)[2], unsigned four) {
    constexpr unsigned kMinus1152 = 0xE480E480u;
    const unsigned moved = four ^ 0x80808080u;
    two[0] = simt::add_fp16x2(simt::permute_bytes(moved, 0x64646464u, 0x4240), kMinus1152);
    two[1] = simt::add_fp16x2(simt::permute_bytes(moved, 0x64646464u, 0x4341), kMinus1152);
  }
};

/// Numbers of half a byte. Those 16 bits apart go together; the same trick as with INT8, where the number of the second
/// and the fourth step stands four bits higher and is divided by 16 as it is moved back.
struct Halfbytes {
  using Number = Fp16;
  static constexpr int kBits = 4, kSteps = 4;
  static constexpr bool kScales = true;
  static constexpr float kGain = 8;

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
    constexpr unsigned kMinus1032 = 0xE408E408u, kSixteenth = 0x2C002C00u, kMinus72 = 0xD480D480u;
    // The sign's bit is turned round: 0 … 15 for −8 … 7.
    two[0] = simt::add_fp16x2((bits & 0x000F000Fu) ^ 0x64086408u, kMinus1032);
    two[1] = simt::fma_fp16x2((bits & 0x00F000F0u) ^ 0x64806480u, kSixteenth, kMinus72);
  }
};

using E4m3 = Bytes<UnpackE4m3>;
using Int8 = Bytes<UnpackInt8>;
using Int4 = Halfbytes;

}  // namespace tilestep::decode::paged::SIMT_BACKEND
