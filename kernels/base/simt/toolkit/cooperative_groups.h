#pragma once

/// \file
/// CUDA's header of this name, for edited sources under emulation: the block, tiles of a warp, coalesced threads and the grid
/// without its barrier ("Cooperative Groups"). Places are those of the calling thread.

#include <type_traits>

#include "kernels/base/simt/emulated_threads.hpp"

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

/// The lanes that run together here: the calling one alone, which is all that CUDA promises of them.
class coalesced_group {
 public:
  static constexpr unsigned thread_rank() { return 0; }
  static constexpr unsigned num_threads() { return 1; }
  static constexpr unsigned size() { return 1; }
  static constexpr unsigned meta_group_rank() { return 0; }
  static constexpr unsigned meta_group_size() { return 1; }
  static void sync(Location = {}) {}
  template <class T>
  static T shfl(T value, int, Location = {}) {
    return value;
  }
  template <class T>
  static T shfl_up(T value, int, Location = {}) {
    return value;
  }
  template <class T>
  static T shfl_down(T value, int, Location = {}) {
    return value;
  }
  template <class T>
  static T shfl_xor(T value, int, Location = {}) {
    return value;
  }
  static int any(int predicate, Location = {}) { return predicate != 0; }
  static int all(int predicate, Location = {}) { return predicate != 0; }
  static unsigned ballot(int predicate, Location = {}) { return predicate != 0; }
};
inline coalesced_group coalesced_threads() {
  return {};
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
