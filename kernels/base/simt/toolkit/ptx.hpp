#pragma once

/// \file
/// What the instructions of inline PTX become that workbench/cuda_words.cpp reads, for whole
/// programs under emulation (PTX ISA 8.5). Included by host.hpp.

#include <cstdint>

#include "kernels/base/simt/emulator/shared_address.hpp"
#include "kernels/base/simt/packed.hpp"

/// "Address Space Conversion Functions". The shared address has 32 bits, as PTX takes it, and leads
/// to shared memory alone.
__forceinline__ std::size_t __cvta_generic_to_shared(const volatile void* memory) {
  return tilestep::simt::emulated::shared_address_of(const_cast<const void*>(memory));
}
__forceinline__ void* __cvta_shared_to_generic(std::size_t address) {
  return tilestep::simt::emulated::shared_memory_at(static_cast<std::uint32_t>(address), 0, 1);
}
/// An address of global memory is a pointer, on a GPU too.
__forceinline__ std::size_t __cvta_generic_to_global(const volatile void* memory) {
  return reinterpret_cast<std::size_t>(memory);
}

namespace tilestep::simt::ptx {

// ---- special registers -------------------------------------------------------------------------

inline unsigned thread_in_block() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
inline unsigned laneid() {
  return static_cast<unsigned>(emulated::lane());
}
inline unsigned warpid() {
  return thread_in_block() / 32;
}
/// Blocks go to the 132 multiprocessors of an H100 in turn.
inline unsigned smid() {
  return ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) % 132;
}
inline unsigned nsmid() {
  return 132;
}
inline unsigned lanemask_eq() {
  return 1u << laneid();
}
inline unsigned lanemask_lt() {
  return lanemask_eq() - 1;
}
inline unsigned lanemask_le() {
  return lanemask_lt() | lanemask_eq();
}
inline unsigned lanemask_gt() {
  return ~lanemask_le();
}
inline unsigned lanemask_ge() {
  return ~lanemask_lt();
}
template <class Pointer>
__forceinline__ std::uint64_t shared_address(Pointer pointer) {
  return emulated::shared_address_of((const void*)pointer);
}

// ---- copies ------------------------------------------------------------------------------------

/// `bytes` of shared memory, of which the first `given` come from `from` and the rest are zeros.
/// `second_level`: past the first-level cache, which PTX has for 16 bytes alone.
__forceinline__ void cp_async(std::uint64_t to, std::uint64_t from, int bytes, int given,
                              bool second_level, Location at) {
  if (bytes != 16 && (second_level || (bytes != 4 && bytes != 8)))
    emulated::refused_here(second_level
                               ? "copies by cp.async.cg another number of bytes than 16"
                               : "copies by cp.async another number of bytes than 4, 8 or 16");
  if (given < 0 || given > bytes)
    emulated::refused_here("asks cp.async to read fewer bytes than 0 or more than it copies");
  const auto size = static_cast<std::size_t>(bytes);
  auto* shared =
      static_cast<char*>(emulated::shared_memory_at(static_cast<std::uint32_t>(to), size, size));
  if (given > 0 && from % size != 0)
    emulated::refused_here("copies by cp.async from an address that is no multiple of its bytes");
  if (given > 0) emulated::start_copy(shared, reinterpret_cast<const void*>(from), given, at);
  if (given < bytes) emulated::start_copy(shared + given, nullptr, bytes - given, at);
}
inline void cp_async_wait(int pending) {
  emulated::wait_copies(pending);
}
inline void cp_async_wait_all() {
  emulated::commit_copies();
  emulated::wait_copies(0);
}

// ---- matrices ----------------------------------------------------------------------------------

/// Lanes 8i … 8i+7 read the rows of matrix i, 16 bytes each, and show them to the others.
template <int kMatrices, bool kTransposed>
__forceinline__ void ldmatrix(std::uint32_t (&r)[kMatrices], std::uint64_t address, Location at) {
  const int lane = emulated::lane();
  emulated::WarpBoard& board = emulated::warp_board();
  if (lane < 8 * kMatrices) {
    const auto* row = static_cast<const uint4*>(
        emulated::shared_memory_at(static_cast<std::uint32_t>(address), 16, 16));
    emulated::expect_unwritten(true);  // a loop that reads a step ahead reads one too many
    const uint4 all = *row;
    emulated::expect_unwritten(false);
    unsigned(&shown)[4] = board.a[lane];
    shown[0] = all.x;
    shown[1] = all.y;
    shown[2] = all.z;
    shown[3] = all.w;
  }
  emulated::warp_collective(emulated::WarpOp::matrix, ~0u, 0, 0, at);
  const auto number = [&](int matrix, int row, int column) -> unsigned {
    return board.a[matrix * 8 + row][column / 2] >> column % 2 * 16 & 0xFFFFu;
  };
  const int group = lane / 4, pair = lane % 4 * 2;
  for (int i = 0; i < kMatrices; ++i) {
    r[i] = kTransposed ? number(i, pair, group) | number(i, pair + 1, group) << 16
                       : number(i, group, pair) | number(i, group, pair + 1) << 16;
  }
  emulated::warp_collective(emulated::WarpOp::matrix, ~0u, 0, 0, at);
}
/// D and C in FP16: sums in FP32, rounded once.
inline void mma_fp16_in_fp16(std::uint32_t (&d)[2], const std::uint32_t (&a)[4], std::uint32_t b0,
                             std::uint32_t b1) {
  float sums[4] = {unpack_fp16(d[0], 0), unpack_fp16(d[0], 1), unpack_fp16(d[1], 0),
                   unpack_fp16(d[1], 1)};
  mma_m16n8k16_fp16(sums, a, b0, b1);
  d[0] = pack_fp16(sums[0], sums[1]);
  d[1] = pack_fp16(sums[2], sums[3]);
}

// ---- numbers -----------------------------------------------------------------------------------

inline float flushed(float x) {
  return ::fabsf(x) < 0x1p-126f ? ::copysignf(0, x) : x;
}
inline float ex2_ftz(float x) {
  return flushed(::exp2f(flushed(x)));
}
inline float ex2(float x) {
  return ::exp2f(x);
}

}  // namespace tilestep::simt::ptx
