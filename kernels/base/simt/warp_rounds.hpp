#pragma once

/// \file
/// Sums over a warp, over all warps of a block, and over those of a cluster of blocks:
///
///     simt::over_warp(x, add)        of all lanes, by a function of two numbers; all lanes get the same
///     simt::up_to_lane(x)            the sum of this lane's number and those of lower lanes
///     simt::Rounds<T> rounds(all, own, at)
///                                    for what a block's warps tell each other, of which this is number `own` of `all`;
///                                    from byte `at` of dynamic shared memory on, Rounds<T>::bytes(all)
///     rounds.tell(x)                 x, the same in all lanes, to all other warps; a barrier of the block
///     rounds[i]                      what warp i has told, until the next but one tell()
///     rounds.part(sum, add)          a sum that begins with `sum`, of this lane's part of what was told
///     simt::Exchange<T> mail(all, own, cluster, at)
///                                    the same over a cluster, in two halves, between which a warp can do other work: no
///                                    barrier of all threads. A block has a group of warps for each threadIdx.y
///     mail.begin()                   by all threads, once
///     mail.send(x, note)             x, the same in all lanes, to all warps; of warp 0 the note too. What was sent before
///                                    must have been received
///     mail.receive(sum, add, note)   waits for what all warps have sent; part() of it, and the note

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
  __host__ __device__ static constexpr int bytes(int warps) {
    return 2 * static_cast<int>(sizeof(T)) * warps;
  }

  __device__ Rounds(int all, int own, std::size_t at)
      : told_(dynamic_shared<T>(static_cast<std::size_t>(2 * all), at)), all_(all), own_(own) {}
  __device__ int own() const { return own_; }

  __device__ void tell(const T& mine) {
    turn_ ^= 1;  // what was told last may still be read
    if (threadIdx.x % 32 == 0) told_[turn_ * all_ + own_] = mine;
    __syncthreads();  // each warp must have told before any warp reads
  }
  __device__ T operator[](int i) const { return told_[turn_ * all_ + i]; }
  /// Over this lane's part of what was told, in order: a warp has it all.
  template <class Sum, class Add>
  __device__ Sum part(Sum sum, Add add) const {
    for (int i = static_cast<int>(threadIdx.x % 32); i < all_; i += 32) sum = add(sum, (*this)[i]);
    return sum;
  }

 private:
  Shared<T> told_;
  int all_, own_, turn_ = 0;
};

/// T has 8 bytes. Two buffers, and a barrier for each, take turns: a block that is a round ahead of another must not be
/// counted in the round before.
template <class T>
class Exchange {
 public:
  /// A multiple of 16.
  __host__ __device__ static constexpr int bytes(int warps, int cluster, int groups) {
    return 32 * groups + 2 * kBytes * warps * cluster;
  }

  __device__ Exchange(int all, int own, int cluster, std::size_t at)
      : all_(all),
        own_(own),
        cluster_(cluster),
        leads_(threadIdx.x == 0),
        address_(shared_address(dynamic_shared<std::uint64_t>(
            static_cast<std::size_t>(2 * (all + 2) * static_cast<int>(blockDim.y)), at))) {
    barriers_ = address_ + 16 * threadIdx.y;
    slots_ =
        address_ + 16 * blockDim.y + static_cast<unsigned>(2 * kBytes * (all + 1)) * threadIdx.y;
  }
  __device__ void begin() const {
    for (unsigned turn = 0; leads_ && turn < 2; ++turn) {
      hopper::barrier_init(barriers_ + 8 * turn, cluster_ == 1 ? all_ : 1);
      expect(barriers_ + 8 * turn);
    }
    hopper::publish_barriers();
    if (cluster_ == 1) {
      __syncthreads();  // the barriers are there
    } else {
      hopper::cluster_barrier();  // no block may be sent a number before it expects one
    }
  }
  __device__ void send(const T& mine, const T& note) const {
    const unsigned lane = threadIdx.x % 32;
    __syncwarp();  // a block that gets this may overwrite what the lanes have read
    if (cluster_ > 1) {
      if (lane >= static_cast<unsigned>(cluster_)) return;
      hopper::store_at(slot(own_), barrier(), lane, mine);
      if (own_ == 0) hopper::store_at(slot(all_), barrier(), lane, note);
    } else if (lane == 0) {  // a block that is no cluster's has no asynchronous stores
      hopper::staged<T>(slot(own_), 1, "what warps send")[0] = mine;
      if (own_ == 0) hopper::staged<T>(slot(all_), 1, "a note")[0] = note;
      hopper::arrive(barrier());
    }
  }
  template <class Sum, class Add>
  __device__ Sum receive(Sum sum, Add add, T& note) {
    hopper::wait_for(barrier(), round_ / 2 % 2);
    const auto sent =
        hopper::staged<T>(slot(0), static_cast<std::size_t>(all_ + 1), "what warps send");
    for (int i = static_cast<int>(threadIdx.x % 32); i < all_; i += 32) sum = add(sum, sent[i]);
    note = sent[all_];
    if (leads_) expect(barrier());  // the next round but one
    ++round_;
    return sum;
  }

 private:
  static constexpr int kBytes = 8;
  static_assert(sizeof(T) == kBytes);

  __device__ void expect(unsigned barrier) const {
    if (cluster_ > 1) hopper::arrive_expecting(barrier, kBytes * (all_ + 1));
  }
  __device__ unsigned barrier() const { return barriers_ + 8 * (round_ % 2); }
  __device__ unsigned slot(int i) const {
    return slots_ + static_cast<unsigned>(kBytes * (static_cast<int>(round_ % 2) * (all_ + 1) + i));
  }

  int all_, own_, cluster_;
  bool leads_;  ///< its group
  unsigned address_, barriers_ = 0, slots_ = 0, round_ = 0;
};

}  // namespace tilestep::simt
