#pragma once

/// \file
/// Sums over a warp, and over all warps of a block or of a cluster of blocks:
///
///     simt::over_warp(x, add)        of all lanes, by a function of two numbers; all lanes get the same
///     simt::up_to_lane(x)            the sum of this lane's number and those of lower lanes
///     simt::Rounds<T> rounds(all, own, cluster, at = 0, first = 0)
///                                    for what `all` warps tell each other, of which this is number `own`; from byte
///                                    `at` of dynamic shared memory on, Rounds<T>::bytes(warps of a block, cluster).
///                                    A block's warps may be in several groups, which begin at warp `first`
///     rounds.tell(x)                 x, the same in all lanes, to all other warps; a barrier of all
///     rounds[i]                      what warp i has told, until the next but one tell()
///     rounds.part(sum, add)          a sum that begins with `sum`, of this lane's part of what was told
///
/// In a cluster, a barrier comes before the first tell(): no block may be told anything before it runs. None need come
/// after the last.

#include "kernels/base/simt/hopper.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::simt {

template <class T, class Add>
__device__ __forceinline__ T over_warp(T mine, Add add) {
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) {
    mine = add(mine, __shfl_xor_sync(0xFFFFFFFFu, mine, apart));
  }
  return mine;
}
template <class T>
__device__ __forceinline__ T up_to_lane(T mine) {
#pragma unroll
  for (int apart = 1; apart < 32; apart *= 2) {
    const T below = __shfl_up_sync(0xFFFFFFFFu, mine, static_cast<unsigned>(apart));
    if (static_cast<int>(threadIdx.x % 32) >= apart) mine += below;
  }
  return mine;
}

/// T has 8 or 16 bytes.
template <class T>
class Rounds {
 public:
  __host__ __device__ static constexpr int bytes(int warps, int cluster) {
    return 2 * static_cast<int>(sizeof(T)) * warps * cluster;
  }

  __device__ Rounds(int all, int own, int cluster, std::size_t at = 0, int first = 0)
      : all_(all), own_(own), cluster_(cluster), first_(first) {
    const auto warps = static_cast<int>(blockDim.x * blockDim.y * blockDim.z / 32);
    places_ = warps * cluster;
    address_ = shared_address(dynamic_shared<T>(static_cast<std::size_t>(2 * places_), at));
  }
  __device__ int all() const { return all_; }
  __device__ int own() const { return own_; }

  __device__ void tell(const T& mine) {
    turn_ ^= 1;  // what was told last may still be read
    const unsigned lane = threadIdx.x % 32;
    const auto count = static_cast<std::size_t>(2 * places_);
    if (cluster_ == 1) {
      if (lane == 0) hopper::staged<T>(address_, count, "what warps tell")[place(own_)] = mine;
      __syncthreads();  // each warp must have told before any warp reads
    } else {
      if (lane < static_cast<unsigned>(cluster_)) {
        hopper::remote<T>(address_, lane, count, "what warps tell")[place(own_)] = mine;
      }
      hopper::cluster_barrier();  // the same of all blocks' warps
    }
  }
  __device__ T operator[](int i) const {
    return hopper::staged<T>(address_, static_cast<std::size_t>(2 * places_),
                             "what warps tell")[place(i)];
  }
  /// Over this lane's part of what was told, in order: a warp has it all.
  template <class Sum, class Add>
  __device__ Sum part(Sum sum, Add add) const {
    for (int i = static_cast<int>(threadIdx.x % 32); i < all_; i += 32) sum = add(sum, (*this)[i]);
    return sum;
  }

 private:
  __device__ int place(int i) const { return turn_ * places_ + first_ + i; }

  unsigned address_;
  int all_, own_, cluster_, first_, places_, turn_ = 0;
};

}  // namespace tilestep::simt
