#pragma once

/// \file
/// Included by mma.hpp for the host compiler. A warp's lanes show each other their registers on a
/// board and meet before and after they read it.

#include <bit>
#include <cstdint>

#include "kernels/base/numeric/small_float.hpp"
#include "kernels/base/simt/emulator/emulated_dialect.hpp"

namespace tilestep::simt {

inline constexpr int kMmaCapability = 80;
inline constexpr bool kHasMma = true;

namespace emulated {

/// What the lanes of one warp show each other. In plain arrays: where nothing is optimized, as in edited kernels, each
/// element of a std::array is two calls.
struct WarpBoard {
  unsigned a[32][4];
  unsigned b[32][2];
  const std::uint16_t* rows[32];
};

/// The board of the calling thread's warp.
inline WarpBoard& warp_board() {
  static_assert(sizeof(WarpBoard) <= kWarpBoard);
  return *static_cast<WarpBoard*>(warp_board_memory());
}

/// The BF16 in the low (0) or high (1) half of a register.
inline float bf16_half(unsigned pair, int half) {
  return std::bit_cast<float>(half == 0 ? pair << 16 : pair & 0xFFFF0000u);
}

/// The same of an FP16. Its bits in the place of a float's are the number times 2^−112, subnormal ones too.
inline float fp16_half(unsigned pair, int half) {
  const unsigned bits = half == 0 ? pair & 0xFFFFu : pair >> 16;
  const unsigned sign = (bits & 0x8000u) << 16;
  const unsigned special = (bits & 0x7C00u) == 0x7C00u ? 0x7F800000u : 0;  // infinity, NaN
  const float magnitude = std::bit_cast<float>((bits & 0x7FFFu) << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<unsigned>(magnitude) | sign | special);
}

template <bool kTransposed>
void ldmatrix_x4(unsigned (&r)[4], Shared<const std::uint16_t> row) {
  WarpBoard& board = warp_board();
  // The check of the whole row's bounds and alignment is what `as` does.
  board.rows[lane()] = reinterpret_cast<const std::uint16_t*>(&simt::as<const uint4>(row)[0]);
  __syncwarp();  // all rows' addresses must be on the board before any lane reads them
  const int group = lane() / 4;
  const int pair = lane() % 4 * 2;
  // A loop that reads a step ahead reads one too many at its end, and nobody uses it.
  expect_unwritten(true);
  for (int matrix = 0; matrix < 4; ++matrix) {
    const auto* rows = &board.rows[matrix * 8];
    const unsigned low = kTransposed ? rows[pair][group] : rows[group][pair];
    const unsigned high = kTransposed ? rows[pair + 1][group] : rows[group][pair + 1];
    r[matrix] = low | high << 16;
  }
  expect_unwritten(false);
  __syncwarp();  // all must have read before a lane goes on and writes to the board again
}

/// `number` gives one of the kInRegister numbers of a register.
template <int kInRegister, class Sum, class Number>
void multiply_by_warp(Sum (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                      Number number) {
  WarpBoard& board = warp_board();
  const int lane = emulated::lane();
  for (int i = 0; i < 4; ++i) board.a[lane][i] = a[i];
  board.b[lane][0] = b0;
  board.b[lane][1] = b1;
  __syncwarp();  // all fragments must be on the board before any lane reads them
  const int group = lane / 4;
  const int column = lane % 4 * 2;
  constexpr int kHalf = 4 * kInRegister;  // of k, that a register of four lanes holds
  for (int k = 0; k < 2 * kHalf; ++k) {
    const int owner = k % kHalf / kInRegister;  // of k's register among the four lanes of a group
    const int part = k % kInRegister;
    const int upper = k / kHalf;
    const unsigned(&rows)[4] = board.a[group * 4 + owner];
    const auto top = number(rows[upper * 2], part);
    const auto bottom = number(rows[upper * 2 + 1], part);
    for (int j = 0; j < 2; ++j) {
      const auto b = number(board.b[(column + j) * 4 + owner][upper], part);
      d[j] += top * b;
      d[2 + j] += bottom * b;
    }
  }
  __syncwarp();  // all must have read before a lane goes on and writes to the board again
}

}  // namespace emulated

inline void mma_m16n8k16_bf16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  emulated::multiply_by_warp<2>(d, a, b0, b1, emulated::bf16_half);
}
inline void mma_m16n8k16_fp16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  emulated::multiply_by_warp<2>(d, a, b0, b1, emulated::fp16_half);
}
inline void mma_m16n8k32_s8(int (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  emulated::multiply_by_warp<4>(d, a, b0, b1, [](unsigned four, int i) {
    return static_cast<int>(static_cast<std::int8_t>(four >> 8 * i));
  });
}

inline unsigned pack_bf16(float low, float high) {
  return numeric::Bf16::bits(low) | static_cast<unsigned>(numeric::Bf16::bits(high)) << 16;
}
inline unsigned pack_fp16(float low, float high) {
  const auto bits = [](float value) {
    return numeric::encode(numeric::kFp16, static_cast<double>(numeric::Fp16::round(value)));
  };
  return bits(low) | bits(high) << 16;
}
inline float unpack_bf16(unsigned pair, int half) {
  return emulated::bf16_half(pair, half);
}
inline float unpack_fp16(unsigned pair, int half) {
  return emulated::fp16_half(pair, half);
}
inline float exp2_approx(float x) {
  return ::exp2f(x);
}

inline void ldmatrix_x4(unsigned (&r)[4], Shared<const std::uint16_t> row) {
  emulated::ldmatrix_x4<false>(r, row);
}
inline void ldmatrix_x4_trans(unsigned (&r)[4], Shared<const std::uint16_t> row) {
  emulated::ldmatrix_x4<true>(r, row);
}

/// Throws Error if one of the two is not aligned to 16 bytes, or ends before them. The bytes come when
/// EmulationOptions::completion says (thread_copies.hpp).
template <class T>
void cp_async16(Shared<T> to, Global<const T> from, bool inside,
                Location at = Location::current()) {
  const uint4* source = inside ? &*simt::as<const uint4>(from) : nullptr;
  emulated::start_copy(&*simt::as<uint4>(to), source, 16, at);
}
template <class T>
void cp_async16(Shared<T> to, Global<const T> from, Location at = Location::current()) {
  cp_async16(to, from, true, at);
}
template <class T>
void cp_async4(Shared<T> to, Global<const T> from, bool inside, Location at = Location::current()) {
  static_assert(sizeof(T) == 4);
  emulated::start_copy(&*to, inside ? &*from : nullptr, 4, at);
}
/// The same to an array that is taken as a pointer.
template <class T, class From>
void cp_async16(T* to, const From& from, bool inside = true, Location at = Location::current()) {
  cp_async16(Shared<T>(to), Global<const T>(from), inside, at);
}
template <class T, class From>
void cp_async4(T* to, const From& from, bool inside, Location at = Location::current()) {
  cp_async4(Shared<T>(to), Global<const T>(from), inside, at);
}
inline void cp_async_commit() {
  emulated::commit_copies();
}
template <int kPending>
void cp_async_wait() {
  emulated::wait_copies(kPending);
}

}  // namespace tilestep::simt
