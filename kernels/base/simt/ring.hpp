#pragma once

/// \file
/// A ring of stages in shared memory between a thread that copies by TMA and warps that multiply, with two mbarriers per
/// stage. `full`: the stage's copies have landed. `empty`: all its readers are done. Both sides count the items that
/// went through: the count gives an item's stage, and the parity of that stage's phase. Operations have the names of
/// CUTLASS's pipelines. Only Hopper has what it needs (hopper.hpp).

#include <type_traits>

#include "kernels/base/simt/hopper.hpp"

// Under emulation a report names the kernel's line, not one of this file.
#if defined(__CUDACC__)
#define SIMT_CALLER
#define SIMT_AT_CALLER
#else
#define SIMT_CALLER , ::tilestep::simt::Location at = ::tilestep::simt::Location::current()
#define SIMT_AT_CALLER , at
#endif

namespace tilestep::simt::hopper {

/// A number of stages that the compiler knows.
template <int kCount>
using Count = std::integral_constant<int, kCount>;

/// Items of a ring so far: the number of the next one.
struct Turn {
  int number = 0;
};

/// `Stages` is a Count, or int where the number is an argument. Of a stage's `full` barriers there is one for each of
/// kParts parts that a reader may wait for apart.
template <class Stages, int kParts = 1>
struct Ring {
  unsigned barriers;  ///< address of the first: 8 · barriers_of(stages) bytes
  Stages stages = {};

  static constexpr int barriers_of(int stages) { return stages * (kParts + 1); }

  __device__ __forceinline__ int stage(Turn turn) const {
    return static_cast<int>(static_cast<unsigned>(turn.number) % static_cast<unsigned>(+stages));
  }
  __device__ __forceinline__ unsigned parity(Turn turn) const {
    return static_cast<unsigned>(turn.number) / static_cast<unsigned>(+stages) % 2;
  }
  __device__ __forceinline__ unsigned full(int stage, int part = 0) const {
    return barriers + static_cast<unsigned>((stage * kParts + part) * 8);
  }
  __device__ __forceinline__ unsigned empty(int stage) const {
    return barriers + static_cast<unsigned>((stages * kParts + stage) * 8);
  }

  /// By one thread, before publish_barriers(). `readers`: how many arrivals empty a stage.
  __device__ __forceinline__ void init(int readers SIMT_CALLER) const {
    for (int stage = 0; stage < stages; ++stage) {
      for (int part = 0; part < kParts; ++part) barrier_init(full(stage, part), 1 SIMT_AT_CALLER);
      barrier_init(empty(stage), readers SIMT_AT_CALLER);
    }
  }
  /// Names the barriers in findings.
  __device__ __forceinline__ void name(const char* full_name, const char* empty_name) const {
    for (int stage = 0; stage < stages; ++stage) {
      for (int part = 0; part < kParts; ++part) {
        name_shared(full(stage, part), 8, full_name, stage * kParts + part);
      }
      name_shared(empty(stage), 8, empty_name, stage);
    }
  }

  /// Waits until the item's stage is empty: at once for the first round.
  __device__ __forceinline__ void producer_acquire(Turn turn SIMT_CALLER) const {
    wait_for(empty(stage(turn)), parity(turn) ^ 1 SIMT_AT_CALLER);
  }
  /// Waits until the item, or one part of it, is in its stage.
  __device__ __forceinline__ void consumer_wait(Turn turn, int part = 0 SIMT_CALLER) const {
    wait_for(full(stage(turn), part), parity(turn) SIMT_AT_CALLER);
  }
  /// This warp is done with a stage: of init's `readers`, one is its warp.
  __device__ __forceinline__ void consumer_release(int stage SIMT_CALLER) const {
    if (threadIdx.x % 32 == 0) arrive(empty(stage) SIMT_AT_CALLER);
  }
};

/// consumer_release where kBlocks of a cluster share a stage, since their copies write to all of them: in each block.
template <int kBlocks, class R>
__device__ __forceinline__ void release(const R& ring, int stage SIMT_CALLER) {
  if constexpr (kBlocks == 1) {
    ring.consumer_release(stage SIMT_AT_CALLER);
  } else {
    const unsigned lane = threadIdx.x % 32;
    if (lane < kBlocks) arrive_at(ring.empty(stage), lane SIMT_AT_CALLER);
  }
}

/// Records the multiprocessor's clock as event `number` of a site, by the first of each kThreads threads of the tape's
/// block. A timed kernel does not read the clock.
template <int kThreads = 128, class Tape>
__device__ __forceinline__ void clock([[maybe_unused]] const Tape& tape, [[maybe_unused]] int site,
                                      [[maybe_unused]] int number) {
  if constexpr (Tape::kRecords) {
    if (tape.in_its_block() && threadIdx.x % kThreads == 0) tape.tick(site, number, cycles());
  }
}

}  // namespace tilestep::simt::hopper
