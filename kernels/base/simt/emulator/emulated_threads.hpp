#pragma once

/// \file
/// CUDA's words about threads, for the host compiler: qualifiers, built-in variables, barriers,
/// warp shuffles, votes and reductions. Meaning and argument order are those of the CUDA C++
/// Programming Guide ("C++ Language Extensions"). The source location at the end of each is filled
/// in by the compiler and appears in error texts. Included by simt.hpp.

#include <bit>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <cstring>

#include "kernels/base/simt/emulator/emulated_types.hpp"
#include "kernels/base/simt/emulator/emulator.hpp"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
// A block runs on one OS thread, and no other block runs there meanwhile: so what the threads of a
// block share is what that OS thread keeps.
#define __shared__ static thread_local

extern constinit thread_local uint3 threadIdx;
extern constinit thread_local uint3 blockIdx;
extern constinit thread_local dim3 blockDim;
extern constinit thread_local dim3 gridDim;
inline constexpr int warpSize = 32;

__forceinline__ void __syncthreads(
    tilestep::simt::Location at = tilestep::simt::Location::current()) {
  tilestep::simt::emulated::block_barrier(false, at);
}
__forceinline__ int __syncthreads_count(
    int predicate, tilestep::simt::Location at = tilestep::simt::Location::current()) {
  return tilestep::simt::emulated::block_barrier(predicate != 0, at);
}
__forceinline__ int __syncthreads_or(
    int predicate, tilestep::simt::Location at = tilestep::simt::Location::current()) {
  return tilestep::simt::emulated::block_barrier(predicate != 0, at) != 0;
}
__forceinline__ int __syncthreads_and(
    int predicate, tilestep::simt::Location at = tilestep::simt::Location::current()) {
  return tilestep::simt::emulated::block_barrier(predicate == 0, at) == 0;
}

inline void __syncwarp(unsigned mask = 0xFFFFFFFFu,
                       tilestep::simt::Location at = tilestep::simt::Location::current()) {
  tilestep::simt::emulated::warp_collective(tilestep::simt::emulated::WarpOp::sync, mask, 0, 0, at);
}

namespace tilestep::simt::emulated {

/// What CUDA's shuffles take: 4 or 8 bytes of number.
template <class T>
concept Shuffled = std::is_arithmetic_v<T> &&(sizeof(T) == 4 || sizeof(T) == 8);

template <Shuffled T>
T shuffle(unsigned mask, T value, int source, tilestep::simt::Location at) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = warp_collective(WarpOp::shuffle, mask, bits, source, at);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

/// First lane of the calling lane's segment of `width` lanes. Throws Error for a width that is no
/// power of two up to 32.
inline int segment_begin(int width) {
  if (width < 1 || width > warpSize || !std::has_single_bit(static_cast<unsigned>(width))) {
    bad_shuffle_width(width);
  }
  return lane() & ~(width - 1);
}

}  // namespace tilestep::simt::emulated

template <tilestep::simt::emulated::Shuffled T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize,
              tilestep::simt::Location at = tilestep::simt::Location::current()) {
  namespace emulated = tilestep::simt::emulated;
  return emulated::shuffle(mask, value, emulated::segment_begin(width) + (source & (width - 1)),
                           at);
}
template <tilestep::simt::emulated::Shuffled T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                 tilestep::simt::Location at = tilestep::simt::Location::current()) {
  namespace emulated = tilestep::simt::emulated;
  const std::int64_t source = std::int64_t{emulated::lane()} - delta;
  const bool inside = source >= emulated::segment_begin(width);
  return emulated::shuffle(mask, value, inside ? static_cast<int>(source) : emulated::lane(), at);
}
template <tilestep::simt::emulated::Shuffled T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                   tilestep::simt::Location at = tilestep::simt::Location::current()) {
  namespace emulated = tilestep::simt::emulated;
  const std::int64_t source = std::int64_t{emulated::lane()} + delta;
  const bool inside = source < emulated::segment_begin(width) + width;
  return emulated::shuffle(mask, value, inside ? static_cast<int>(source) : emulated::lane(), at);
}
/// A lane may read from its own segment and from earlier ones; from later ones it gets its own
/// value.
template <tilestep::simt::emulated::Shuffled T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize,
                  tilestep::simt::Location at = tilestep::simt::Location::current()) {
  namespace emulated = tilestep::simt::emulated;
  const int source = emulated::lane() ^ (lane_mask & (warpSize - 1));
  const bool inside = source < emulated::segment_begin(width) + width;
  return emulated::shuffle(mask, value, inside ? source : emulated::lane(), at);
}

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              tilestep::simt::Location at = tilestep::simt::Location::current()) {
  namespace emulated = tilestep::simt::emulated;
  return static_cast<unsigned>(
      emulated::warp_collective(emulated::WarpOp::ballot, mask, predicate != 0, 0, at));
}
inline int __any_sync(unsigned mask, int predicate,
                      tilestep::simt::Location at = tilestep::simt::Location::current()) {
  return __ballot_sync(mask, predicate, at) != 0;
}
inline int __all_sync(unsigned mask, int predicate,
                      tilestep::simt::Location at = tilestep::simt::Location::current()) {
  return __ballot_sync(mask, predicate, at) == mask;
}
/// The calling lane alone: all that CUDA promises, since lanes need not run together.
inline unsigned __activemask() {
  return 1u << tilestep::simt::emulated::lane();
}

#define TILESTEP_WARP_REDUCE(name, type, op)                                               \
  inline type name(unsigned mask, type value,                                              \
                   tilestep::simt::Location at = tilestep::simt::Location::current()) {    \
    return static_cast<type>(tilestep::simt::emulated::warp_collective(                    \
        tilestep::simt::emulated::WarpOp::op, mask, static_cast<unsigned>(value), 0, at)); \
  }
TILESTEP_WARP_REDUCE(__reduce_add_sync, int, add)
TILESTEP_WARP_REDUCE(__reduce_add_sync, unsigned, add)
TILESTEP_WARP_REDUCE(__reduce_min_sync, int, min_signed)
TILESTEP_WARP_REDUCE(__reduce_min_sync, unsigned, min_unsigned)
TILESTEP_WARP_REDUCE(__reduce_max_sync, int, max_signed)
TILESTEP_WARP_REDUCE(__reduce_max_sync, unsigned, max_unsigned)
TILESTEP_WARP_REDUCE(__reduce_and_sync, unsigned, bit_and)
TILESTEP_WARP_REDUCE(__reduce_or_sync, unsigned, bit_or)
TILESTEP_WARP_REDUCE(__reduce_xor_sync, unsigned, bit_xor)
#undef TILESTEP_WARP_REDUCE

/// A clock that ticks in nanoseconds here, in cycles of the multiprocessor on a GPU.
inline long long clock64() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}
