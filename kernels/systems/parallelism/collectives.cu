#pragma once

// What ranks do together, by kernels that store into each other's memory.
//
// A rank pushes numbers into a peer's `room` or `out` and then raises the peer's flag; the peer waits for the flag. Each
// block has its own part of every chunk, and its own flags: blocks wait for blocks of the same number alone. Flags only
// grow, and a launch goes on where the one before ended, so that they need no clearing.

#include "kernels/base/numeric/float_format.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/systems/parallelism/kernels.hpp"

namespace tilestep::parallelism::SIMT_BACKEND {

/// Flag values of a launch: 1 says that the rank is there, the others count what it has sent.
constexpr unsigned kFlagsOfCall = 64;
constexpr int kInFlight = 4;  ///< packs that a thread loads before it stores

/// The arrays of a launch, in packs.
struct Peers {
  simt::Global<const float4> in;
  simt::Global<float4> room[kMostRanks], out[kMostRanks];
  simt::Global<unsigned> flags[kMostRanks];
  simt::Global<unsigned> epochs;
};

__device__ inline float4 operator+(const float4& a, const float4& b) {
  return float4{a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

/// The sums of two packs of eight BF16 numbers, each rounded once.
__device__ inline float sum_of_pair(float a, float b) {
  const unsigned left = __float_as_uint(a), right = __float_as_uint(b);
  const float low = __uint_as_float(left << 16) + __uint_as_float(right << 16);
  const float high = __uint_as_float(left & 0xFFFF0000u) + __uint_as_float(right & 0xFFFF0000u);
  return __uint_as_float(static_cast<unsigned>(numeric::Bf16::bits(high)) << 16 |
                         numeric::Bf16::bits(low));
}
template <bool kBf16>
__device__ float4 sum_of(const float4& a, const float4& b) {
  if constexpr (!kBf16) return a + b;
  return float4{sum_of_pair(a.x, b.x), sum_of_pair(a.y, b.y), sum_of_pair(a.z, b.z),
                sum_of_pair(a.w, b.w)};
}

/// A rank's end of the wires: where its numbers go, and what it waits for.
template <class Tape>
struct Wire {
  const Peers& peers;
  const CallShape& job;
  const simt::World& world;
  const Tape& tape;
  unsigned epoch, base;
  int events = 0;

  __device__ Wire(const Peers& all, const CallShape& shape, const simt::World& ranks,
                  const Tape& its_tape)
      : peers(all), job(shape), world(ranks), tape(its_tape), epoch(all.epochs[blockIdx.x]) {
    base = epoch * kFlagsOfCall;
  }
  __device__ auto in() const { return tape.traced(peers.in, kIn); }
  __device__ auto room(int rank) const { return tape.traced(peers.room[rank], kRoom + rank); }
  __device__ auto out(int rank) const { return tape.traced(peers.out[rank], kOut + rank); }
  __device__ int begin_of(int chunk) const {
    return part_begin(job.units, job.ranks, chunk) * job.unit;
  }

  /// Tells a rank that this block has stored `count` things there, or with 1 that it is there; or it and others behind it,
  /// by a thread each: a fence takes as long as a store and its answer.
  __device__ void tell(int to, unsigned count, int ranks = 1) const {
    __syncthreads();  // all of the block's stores are before the flags
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < ranks)
      simt::signal(peers.flags[(to + thread) % job.ranks], blockIdx.x * job.ranks + job.rank,
                   base + count);    // [step: tell]
    if (ranks > 1) __syncthreads();  // all threads have told theirs before one waits
  }
  __device__ bool await(int from, unsigned count, int ranks = 1) const {
    bool there = true;
    const int thread = static_cast<int>(threadIdx.x), its = (from + thread) % job.ranks;
    if (thread < ranks) {
      there = simt::await_flag(world, peers.flags[job.rank],  // [step: await]
                               blockIdx.x * job.ranks + its, base + count, its);
    }
    return __syncthreads_and(there);
  }
  /// Calls move(i) for the block's packs from `begin` to `end`. Several are in flight: load(i) comes before store(i, …).
  template <class Load, class Store>
  __device__ void move(int begin, int end, Load load, Store store) const {
    const int blocks = gridDim.x, all = end - begin;
    const int from = begin + static_cast<int>(std::int64_t{all} * blockIdx.x / blocks);
    const int to = begin + static_cast<int>(std::int64_t{all} * (blockIdx.x + 1) / blocks);
    const int threads = blockDim.x;
    for (int i = from + threadIdx.x; i < to; i += kInFlight * threads) {
      float4 held[kInFlight];
#pragma unroll
      for (int j = 0; j < kInFlight; ++j) {
        if (i + j * threads < to) held[j] = load(i + j * threads);
      }
#pragma unroll
      for (int j = 0; j < kInFlight; ++j) {
        if (i + j * threads < to) store(i + j * threads, held[j]);
      }
    }
  }
  /// By thread 0, whose first pack is the first of the chunk.
  __device__ void note(bool sent, int beat, int chunk, int peer, float value) {
    if constexpr (Tape::kRecords) {
      if (threadIdx.x != 0 || blockIdx.x != 0) return;
      tape.note(kEvent, events++,
                Event{static_cast<std::int16_t>(beat), static_cast<std::int8_t>(sent ? 1 : 0),
                      static_cast<std::int8_t>(chunk), peer, value, 0.0f});
    }
  }
  /// What the mistake adds to rank 0's numbers.
  __device__ bool adds_twice() const {
    return Tape::kRecords && job.broken == Break::sum_twice && job.rank == 0;
  }
  __device__ bool hurries() const {
    return Tape::kRecords && job.broken == Break::stale_gather;
  }
  __device__ void end() const {
    __syncthreads();  // all threads have read the epoch
    if (threadIdx.x == 0) peers.epochs[blockIdx.x] = epoch + 1;
  }
};

/// Chunks go round: each rank adds its own to what comes and sends it on; then the sums go round.
template <bool kReduces, bool kGathers, bool kBf16, class Tape>
__device__ bool go_round(Wire<Tape>& wire) {
  const int n = wire.job.ranks, rank = wire.job.rank;
  const int next = (rank + 1) % n, before = (rank + n - 1) % n;
  const auto in = wire.in();
  const auto room = wire.room(rank), room_there = wire.room(next);
  const auto out = wire.out(rank), out_there = wire.out(next);
  unsigned told = 1, heard = 1;
  int beat = 0;
  float first = 0;
  if (kReduces) {
    // Without a gather nothing else says that the neighbour has read what an earlier call left in its room.
    if (!kGathers && n > 1) {
      wire.tell(before, 1);
      if (!wire.await(next, 1)) return false;
    }
    for (int hop = 0; hop < n; ++hop) {
      const int chunk = (rank + n - 1 - hop + n) % n;
      if (hop > 0 && !wire.await(before, ++heard)) return false;
      const bool mine = hop == n - 1;
      const int begin = wire.begin_of(chunk);
      wire.move(
          begin, wire.begin_of(chunk + 1),
          [&](int i) -> float4 {
            const float4 own = in[i];
            float4 sum = own;
            if (hop > 0) sum = sum_of<kBf16>(static_cast<float4>(room[i]), own);  // [step: add]
            if (mine && wire.adds_twice()) sum = sum + own;
            return sum;
          },
          [&](int i, const float4& sum) {
            if (!mine) room_there[i] = sum;  // [step: send]
            if (mine) out[i] = sum;
            if (mine && kGathers && n > 1) out_there[i] = sum;
            if (i == begin) first = sum.x;
          });
      if (hop > 0) wire.note(false, beat - 1, chunk, before, first);
      if (n == 1 || (mine && !kGathers)) continue;
      wire.note(true, beat++, chunk, next, first);
      wire.tell(next, ++told);
    }
  } else {
    const int begin = wire.begin_of(rank);
    if (n > 1) wire.tell(before, 1);  // what stood in `out` may be replaced
    if (n > 1 && !wire.await(next, 1)) return false;
    wire.move(
        begin, wire.begin_of(rank + 1), [&](int i) -> float4 { return in[i - begin]; },
        [&](int i, const float4& own) {
          out[i] = own;
          if (n > 1) out_there[i] = own;
        });
    if (n > 1) wire.tell(next, ++told);
  }
  if constexpr (kGathers) {
    for (int hop = 1; hop < n; ++hop) {
      const int chunk = (rank - hop + n) % n, begin = wire.begin_of(chunk);
      if (!wire.hurries() && !wire.await(before, ++heard)) return false;
      if (Tape::kRecords && kReduces && threadIdx.x == 0)
        wire.note(false, n - 2 + hop, chunk, before, static_cast<float4>(out[begin]).x);
      if (hop == n - 1) break;
      wire.move(
          begin, wire.begin_of(chunk + 1), [&](int i) -> float4 { return out[i]; },
          [&](int i, const float4& sum) {
            out_there[i] = sum;  // [step: gather]
            if (i == begin) first = sum.x;
          });
      if (kReduces) wire.note(true, beat++, chunk, next, first);
      wire.tell(next, ++told);
    }
  }
  return true;
}

/// Sums go up from rank to rank, halving those that are left, and down again.
template <class Tape>
__device__ bool go_through_tree(Wire<Tape>& wire) {
  const int n = wire.job.ranks, rank = wire.job.rank, packs = wire.job.units * wire.job.unit;
  const int levels = levels_of(n);
  const auto in = wire.in();
  const auto room = wire.room(rank), out = wire.out(rank);
  float first = 0;
  bool has = false;  // sums of others are in `out`
  int level = 0;
  const auto held = [&](int i) -> float4 {
    if (has) return out[i];
    return in[i];
  };
  for (; level < levels; ++level) {
    const int other = 1 << level;
    if ((rank & other) != 0) {
      const auto there = wire.room(rank - other);
      wire.move(0, packs, held, [&](int i, const float4& sum) {
        there[level * packs + i] = sum;
        if (i == 0) first = sum.x;
      });
      wire.note(true, level, -1, rank - other, first);
      wire.tell(rank - other, 2);
      break;
    }
    if (rank + other >= n) continue;
    if (!wire.await(rank + other, 2)) return false;
    wire.move(
        0, packs,
        [&](int i) -> float4 { return held(i) + static_cast<float4>(room[level * packs + i]); },
        [&](int i, const float4& sum) {
          const bool again = wire.adds_twice() && 2 * other >= n;
          const float4 all = again ? sum + static_cast<float4>(in[i]) : sum;
          out[i] = all;
          if (i == 0) first = all.x;
        });
    has = true;
    wire.note(false, level, -1, rank + other, first);
  }
  if (n == 1) {
    wire.move(0, packs, held, [&](int i, const float4& own) { out[i] = own; });
    return true;
  }
  if (rank != 0) {
    if (!wire.hurries() && !wire.await(rank - (1 << level), 3)) return false;
    if (Tape::kRecords && threadIdx.x == 0)
      wire.note(false, 2 * levels - 1 - level, -1, rank - (1 << level),
                static_cast<float4>(out[0]).x);
  }
  for (int below = level - 1; below >= 0; --below) {
    const int other = rank + (1 << below);
    if (other >= n) continue;
    const auto there = wire.out(other);
    wire.move(
        0, packs, [&](int i) -> float4 { return out[i]; },
        [&](int i, const float4& sum) {
          there[i] = sum;
          if (i == 0) first = sum.x;
        });
    wire.note(true, 2 * levels - 1 - below, -1, other, first);
    wire.tell(other, 3);
  }
  return true;
}

/// Each rank sends all it has to each other one, and adds up what it got, in the order of ranks.
template <class Tape>
__device__ bool go_at_once(Wire<Tape>& wire) {
  const int n = wire.job.ranks, rank = wire.job.rank, packs = wire.job.units * wire.job.unit;
  const auto in = wire.in();
  const auto room = wire.room(rank), out = wire.out(rank);
  // Two rooms take turns: a rank that is ahead by a call writes where no rank reads any more.
  const int half = static_cast<int>(wire.epoch % 2) * n;
  float first = 0;
  wire.move(
      0, packs, [&](int i) -> float4 { return in[i]; },
      [&](int i, const float4& own) {
        for (int hop = 1; hop < n; ++hop)
          wire.room((rank + hop) % n)[(half + rank) * packs + i] = own;
        if (i == 0) first = own.x;
      });
  for (int hop = 1; hop < n; ++hop) wire.note(true, 0, -1, (rank + hop) % n, first);
  wire.tell(rank + 1, 2, n - 1);
  if (!wire.hurries() && !wire.await(rank + 1, 2, n - 1)) return false;
  wire.move(
      0, packs,
      [&](int i) -> float4 {
        float4 sum{};
        for (int from = 0; from < n; ++from) {
          const float4 its = from == rank ? static_cast<float4>(in[i])
                                          : static_cast<float4>(room[(half + from) * packs + i]);
          sum = from == 0 ? its : sum + its;
          if (from == rank && wire.adds_twice()) sum = sum + its;
        }
        return sum;
      },
      [&](int i, const float4& sum) {
        out[i] = sum;
        if (i == 0) first = sum.x;
      });
  wire.note(false, 0, -1, -1, first);
  return true;
}

/// Each rank sends its part to each other one.
template <class Tape>
__device__ bool gather_at_once(Wire<Tape>& wire) {
  const int n = wire.job.ranks, rank = wire.job.rank;
  const int begin = wire.begin_of(rank), end = wire.begin_of(rank + 1);
  const auto in = wire.in();
  wire.tell(rank + 1, 1, n - 1);
  if (!wire.await(rank + 1, 1, n - 1)) return false;
  wire.move(
      begin, end, [&](int i) -> float4 { return in[i - begin]; },
      [&](int i, const float4& own) {
        for (int hop = 0; hop < n; ++hop) wire.out((rank + hop) % n)[i] = own;
      });
  wire.tell(rank + 1, 2, n - 1);
  return wire.await(rank + 1, 2, n - 1);
}

/// Each rank has a block for every rank: tokens for its experts, and later what those made of them.
template <class Tape>
__device__ bool go_to_all(Wire<Tape>& wire) {
  const int n = wire.job.ranks, rank = wire.job.rank;
  const int slot = wire.job.slot * wire.job.unit;
  const auto in = wire.in();
  wire.tell(rank + 1, 1, n - 1);
  for (int hop = 0; hop < n; ++hop) {
    const int to = (rank + hop) % n;
    if (hop > 0 && !wire.await(to, 1)) return false;
    const auto there = wire.out(to);
    wire.move(
        0,
        wire.job.counts[static_cast<std::size_t>(rank)][static_cast<std::size_t>(to)] *
            wire.job.unit,
        [&](int i) -> float4 { return in[to * slot + i]; },
        [&](int i, const float4& own) { there[rank * slot + i] = own; });
    if (hop > 0) wire.tell(to, 2);
  }
  return wire.await(rank + 1, 2, n - 1);
}

/// From rank to rank: activations to the next stage, keys and values to the next of a ring.
template <class Tape>
__device__ bool go_on(Wire<Tape>& wire) {
  const int to = wire.job.to, from = wire.job.from, packs = wire.job.units * wire.job.unit;
  const auto in = wire.in();
  if (from >= 0 && !wire.job.eager) wire.tell(from, 1);
  if (to >= 0) {
    if (!wire.job.eager && !wire.await(to, 1)) return false;
    const auto there = wire.out(to);
    wire.move(
        0, packs, [&](int i) -> float4 { return in[i]; },
        [&](int i, const float4& own) { there[i] = own; });
    wire.tell(to, 2);
  }
  return from < 0 || wire.await(from, 2);
}

template <Op kOp, Algorithm kAlgorithm, class Tape>
__global__ void __launch_bounds__(512)
    collective(Peers peers, CallShape job, simt::World world, Tape tape) {
  Wire<Tape> wire(peers, job, world, tape);
  bool done = false;
  if constexpr (kOp == Op::all_to_all) {
    done = go_to_all(wire);
  } else if constexpr (kOp == Op::pass) {
    done = go_on(wire);
  } else if constexpr (kOp == Op::all_gather && kAlgorithm == Algorithm::one_shot) {
    done = gather_at_once(wire);
  } else if constexpr (kAlgorithm == Algorithm::tree) {
    done = go_through_tree(wire);
  } else if constexpr (kAlgorithm == Algorithm::one_shot) {
    done = go_at_once(wire);
  } else {
    done = go_round<kOp != Op::all_gather, kOp != Op::reduce_scatter, false>(wire);
  }
  if (done) wire.end();
}

/// A ring that adds BF16.
template <Op kOp>
__global__ void __launch_bounds__(512)
    collective_bf16(Peers peers, CallShape job, simt::World world) {
  const simt::NoTape tape;
  Wire<simt::NoTape> wire(peers, job, world, tape);
  if (go_round<true, kOp != Op::reduce_scatter, true>(wire)) wire.end();
}

}  // namespace tilestep::parallelism::SIMT_BACKEND
