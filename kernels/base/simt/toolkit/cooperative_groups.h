#pragma once

/// \file
/// CUDA's header of this name, for edited sources under emulation: the block, tiles of a warp, coalesced threads and the grid
/// without its barrier ("Cooperative Groups"). Places are those of the calling thread.

#include <bit>
#include <type_traits>

#include "kernels/base/simt/emulator/emulated_threads.hpp"

namespace cooperative_groups {
inline namespace tilestep_toolkit {

using Location = tilestep::simt::Location;

class thread_block {
 public:
  static void sync(Location at = Location::current()) { __syncthreads(at); }
  static unsigned thread_rank() {
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  }
  static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
  static unsigned size() { return num_threads(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};
inline thread_block this_thread_block() {
  return {};
}

class grid_group {
 public:
  static unsigned long long block_rank() {
    return (static_cast<unsigned long long>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x +
           blockIdx.x;
  }
  static unsigned long long num_blocks() {
    return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z;
  }
  static unsigned long long thread_rank() {
    return block_rank() * thread_block::size() + thread_block::thread_rank();
  }
  static unsigned long long num_threads() { return num_blocks() * thread_block::size(); }
  static unsigned long long size() { return num_threads(); }
  static dim3 group_dim() { return gridDim; }
  static dim3 dim_blocks() { return gridDim; }
  /// Not here: the lessons' launches, which an edited kernel runs in, are not cooperative.
  template <bool kThere = false>
  static void sync() {
    static_assert(kThere,
                  "the grid's barrier needs a cooperative launch; end the kernel there and "
                  "go on in the next one, which begins when all blocks have ended");
  }
};
inline grid_group this_grid() {
  return {};
}

/// kSize neighbouring threads of a warp, of `Parent`.
template <unsigned kSize, class Parent = void>
class thread_block_tile {
  static_assert(kSize == 1 || kSize == 2 || kSize == 4 || kSize == 8 || kSize == 16 || kSize == 32,
                "a tile has 1, 2, 4, 8, 16 or 32 threads");

 public:
  thread_block_tile(unsigned meta_rank, unsigned meta_size)
      : meta_rank_(meta_rank), meta_size_(meta_size) {}
  template <class Other>
  thread_block_tile(const thread_block_tile<kSize, Other>& same)
      : thread_block_tile(same.meta_group_rank(), same.meta_group_size()) {}

  static unsigned thread_rank() { return lane() % kSize; }
  static constexpr unsigned num_threads() { return kSize; }
  static constexpr unsigned size() { return kSize; }
  unsigned meta_group_rank() const { return meta_rank_; }
  unsigned meta_group_size() const { return meta_size_; }

  static void sync(Location at = Location::current()) { __syncwarp(mask(), at); }
  template <class T>
  static T shfl(T value, int rank, Location at = Location::current()) {
    return __shfl_sync(mask(), value, rank, kSize, at);
  }
  template <class T>
  static T shfl_up(T value, unsigned delta, Location at = Location::current()) {
    return __shfl_up_sync(mask(), value, delta, kSize, at);
  }
  template <class T>
  static T shfl_down(T value, unsigned delta, Location at = Location::current()) {
    return __shfl_down_sync(mask(), value, delta, kSize, at);
  }
  template <class T>
  static T shfl_xor(T value, int lane_mask, Location at = Location::current()) {
    return __shfl_xor_sync(mask(), value, lane_mask, kSize, at);
  }
  static int any(int predicate, Location at = Location::current()) {
    return __any_sync(mask(), predicate, at);
  }
  static int all(int predicate, Location at = Location::current()) {
    return __all_sync(mask(), predicate, at);
  }
  /// Bit i is the thread of rank i.
  static unsigned ballot(int predicate, Location at = Location::current()) {
    return __ballot_sync(mask(), predicate, at) >> first_lane();
  }
  template <class T>
  static unsigned match_any(T value, Location at = Location::current()) {
    return __match_any_sync(mask(), value, at) >> first_lane();
  }
  template <class T>
  static unsigned match_all(T value, int& all_same, Location at = Location::current()) {
    return __match_all_sync(mask(), value, &all_same, at) >> first_lane();
  }

 private:
  static unsigned lane() { return static_cast<unsigned>(tilestep::simt::emulated::lane()); }
  static unsigned first_lane() { return lane() / kSize * kSize; }
  static unsigned mask() { return (kSize == 32 ? ~0u : (1u << kSize) - 1) << first_lane(); }

  unsigned meta_rank_, meta_size_;
};
template <unsigned kSize, class Parent>
thread_block_tile<kSize, Parent> tiled_partition(const Parent& parent) {
  return {parent.thread_rank() / kSize, (parent.size() + kSize - 1) / kSize};
}

/// Some lanes of a warp; ranks count them from the lowest one.
class coalesced_group {
 public:
  explicit coalesced_group(unsigned mask) : mask_(mask) {}

  unsigned num_threads() const { return static_cast<unsigned>(std::popcount(mask_)); }
  unsigned size() const { return num_threads(); }
  unsigned thread_rank() const {
    return static_cast<unsigned>(std::popcount(mask_ & ((1u << lane()) - 1)));
  }
  static constexpr unsigned meta_group_rank() { return 0; }
  static constexpr unsigned meta_group_size() { return 1; }

  void sync(Location at = Location::current()) const { __syncwarp(mask_, at); }
  /// Ranks count modulo the size.
  template <class T>
  T shfl(T value, unsigned rank, Location at = Location::current()) const {
    return __shfl_sync(mask_, value, lane_of(rank % size()), warpSize, at);
  }
  /// Without such a rank a thread gets its own value.
  template <class T>
  T shfl_up(T value, unsigned delta, Location at = Location::current()) const {
    const unsigned rank = thread_rank();
    return __shfl_sync(mask_, value, lane_of(delta > rank ? rank : rank - delta), warpSize, at);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, Location at = Location::current()) const {
    const unsigned rank = thread_rank();
    return __shfl_sync(mask_, value, lane_of(delta >= size() - rank ? rank : rank + delta),
                       warpSize, at);
  }
  int any(int predicate, Location at = Location::current()) const {
    return __any_sync(mask_, predicate, at);
  }
  int all(int predicate, Location at = Location::current()) const {
    return __all_sync(mask_, predicate, at);
  }
  /// Bit i is the thread of rank i.
  unsigned ballot(int predicate, Location at = Location::current()) const {
    return by_rank(__ballot_sync(mask_, predicate, at));
  }
  template <class T>
  unsigned match_any(T value, Location at = Location::current()) const {
    return by_rank(__match_any_sync(mask_, value, at));
  }
  template <class T>
  unsigned match_all(T value, int& all_same, Location at = Location::current()) const {
    return by_rank(__match_all_sync(mask_, value, &all_same, at));
  }

 private:
  static int lane() { return tilestep::simt::emulated::lane(); }
  int lane_of(unsigned rank) const {
    unsigned left = mask_;
    for (; rank > 0; --rank) left &= left - 1;
    return std::countr_zero(left);
  }
  unsigned by_rank(unsigned lanes) const {
    unsigned ranks = 0, rank = 0;
    for (unsigned left = mask_; left != 0; left &= left - 1, ++rank)
      ranks |= (lanes >> std::countr_zero(left) & 1u) << rank;
    return ranks;
  }

  unsigned mask_;
};
/// A GPU returns the lanes that happen to run together. Here they are the lanes that reach this place
/// while all other threads of the block wait or have ended. That is the group of a GPU whose branches
/// reconverge wherever they can, and it is the same in any order of the threads.
inline coalesced_group coalesced_threads(Location at = Location::current()) {
  return coalesced_group(tilestep::simt::emulated::coalesced_lanes(at));
}

template <class Group>
void sync(const Group& group, Location at = Location::current()) {
  group.sync(at);
}
template <class Group>
auto thread_rank(const Group& group) {
  return group.thread_rank();
}
}  // namespace tilestep_toolkit
}  // namespace cooperative_groups
