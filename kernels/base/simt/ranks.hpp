#pragma once

/// \file
/// Several devices that work together: ranks, each with memory of its own, whose kernels read and write each other's.
///
///     const auto ranks = simt::make_emulated_ranks(device, 4);       // or CudaRanks (ranks_cuda.hpp)
///     simt::Buffer<float> x(ranks->at(2), n);                        // memory of rank 2
///     ranks->run([&](int rank) {                                     // what the host of each rank does
///       simt::launch_at(*ranks, rank, shape, kernel, …, ranks->world(rank, call));
///     });
///     for (const simt::Stuck& one : ranks->stuck()) …                // who waited in vain, and for whom
///
/// Words of kernels:
///
///     simt::signal(flags, i, value)                   all that this thread, and those behind its last barrier, have
///                                                     stored is visible to whoever sees flags[i] ≥ value
///     simt::await_flag(world, flags, i, value, from)  waits for that; false: given up, and the kernel must end
///
///     see_copied()                                    after such a wait: what has come is visible to TMA too
///
/// On GPUs a rank is a device, or where there are too few a stream of one; a wait polls, and gives up after a while
/// (CUDA C++ Programming Guide, "Peer-to-Peer Memory Access"; PTX, "Memory Consistency Model"). Under emulation each rank
/// is an emulated device; one of them works at a time, until it waits, and a seed chooses who goes on. When nobody can,
/// all waits are given up: a deadlock is found, and never waited for.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/base/simt/backends.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::simt {

inline constexpr int kMostRanks = 8;

/// A rank whose wait was given up.
struct Stuck {
  int rank = 0;
  int call = 0;  ///< that it waited in
  int from = 0;  ///< the rank that it waited for
};

namespace emulated {

/// Lets one rank at a time work. A wait hands its turn on.
class RankTurns {
 public:
  RankTurns(int ranks, std::uint64_t seed);
  ~RankTurns();
  RankTurns(const RankTurns&) = delete;
  RankTurns& operator=(const RankTurns&) = delete;

  /// Runs `program` for each rank on an OS thread of its own. Throws what the lowest rank that failed threw.
  void run(const std::function<void(int rank)>& program);
  bool await(int rank, int call, const unsigned* flag, unsigned value, int from);
  void give_up();  ///< every wait, from now on
  std::vector<Stuck> stuck() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace emulated

#if defined(__CUDACC__)

/// What waits leave in memory that host and devices share.
struct StuckPage {
  int dead;  ///< a wait was given up, and so are all others
  int call[kMostRanks], from[kMostRanks];
};
/// What a kernel knows of the ranks.
struct World {
  StuckPage* page = nullptr;
  int rank = 0, call = 0;
};

__device__ __forceinline__ void signal(unsigned* flags, std::ptrdiff_t i, unsigned value) {
  __threadfence_system();
  asm volatile("st.release.sys.global.u32 [%0], %1;\n" ::"l"(flags + i), "r"(value) : "memory");
}

__device__ __forceinline__ void see_copied() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async;\n" ::: "memory");
#endif
}

__device__ inline bool await_flag(const World& world, unsigned* flags, std::ptrdiff_t i,
                                  unsigned value, int from) {
  constexpr unsigned long long kPatience = 2000000000;  // ns
  unsigned long long since = 0;
  for (unsigned polls = 1;; ++polls) {
    unsigned now = 0;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];\n" : "=r"(now) : "l"(flags + i) : "memory");
    if (static_cast<int>(now - value) >= 0) return true;
    if (polls % 4096 != 0) continue;
    unsigned long long clock = 0;
    asm volatile("mov.u64 %0, %globaltimer;\n" : "=l"(clock));
    if (since == 0) since = clock;
    volatile int* dead = &world.page->dead;
    const bool first = *dead == 0;
    if (first && clock - since < kPatience) continue;
    if (*(volatile int*)&world.page->from[world.rank] < 0) {  // the first wait, not those after it
      world.page->from[world.rank] = from;
      world.page->call[world.rank] = world.call;
      __threadfence_system();
    }
    *dead = 1;
    // What this rank does next could end another's wait before that one knows: it would be named for a later call.
    while (first && clock - since < kPatience + kPatience / 8)
      asm volatile("mov.u64 %0, %globaltimer;\n" : "=l"(clock));
    return false;
  }
}

#else

struct World {
  emulated::RankTurns* turns = nullptr;
  int rank = 0, call = 0;
};
inline void signal(const Global<unsigned>& flags, std::ptrdiff_t i, unsigned value) {
  flags[i] = value;  // ranks take turns: nobody looks on
}
inline void see_copied() {}
inline bool await_flag(const World& world, const Global<unsigned>& flags, std::ptrdiff_t i,
                       unsigned value, int from) {
  return world.turns->await(world.rank, world.call, &flags[i], value, from);
}

#endif

class Ranks {
 public:
  virtual ~Ranks() = default;
  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int count() const { return count_; }
  /// Whether each rank has a device of its own, so that links between them can be timed.
  virtual bool apart() const = 0;
  /// The device for memory and copies of a rank; not while `run` runs, except for its launches.
  virtual Device& at(int rank) = 0;
  /// Runs what the host of each rank does, and waits until all is done. The program must not wait, allocate or copy to
  /// or from the host. Throws as the device does; waits that were given up are in `stuck`.
  virtual void run(const std::function<void(int rank)>& program) = 0;
  virtual World world(int rank, int call) = 0;
  virtual std::vector<Stuck> stuck() const = 0;
  /// From now on all waits are given up: what is left of a rank that has died.
  virtual void give_up() = 0;

  /// Milliseconds per call of `enqueue`, which adds one call to each rank's stream and is repeated `calls` times in a
  /// graph of each rank: a number for each of `samples` rounds. Throws Error unless `apart`.
  virtual std::vector<double> time_ms(const std::function<void()>& enqueue, int calls,
                                      int samples) = 0;
  /// A rank has two streams, 0 and 1. What it is given from here on goes to this one; at first, and at the end of a
  /// program, to 0. Under emulation both are done as they come.
  virtual void use_stream(int /*rank*/, int /*which*/) {}
  /// What a rank gives to `stream` from here on comes after all that it has given to the other one. Before a program
  /// ends, stream 0 must have come after 1.
  virtual void come_after(int /*rank*/, int /*stream*/) {}
  /// A copy into a rank's memory, also from another rank's, that takes no multiprocessor.
  virtual void copy(int rank, void* to, const void* from, std::size_t bytes) = 0;
  /// The CUDA stream in use, and the device of a rank.
  virtual void* stream(int) const { return nullptr; }
  virtual int gpu(int) const { return -1; }

 protected:
  int count_ = 0;
};

/// `count` emulated devices with the kernels of `device`, in whose blocks threads come in this order. `seed` chooses which
/// rank goes on when one waits.
std::unique_ptr<Ranks> make_emulated_ranks(const Device& device, std::span<const KernelEntry> table,
                                           int count, std::uint64_t seed = 1,
                                           ThreadOrder order = ThreadOrder::ascending);

#if !defined(__CUDACC__)
/// A launch by a rank's host.
template <class... Params, class... Args>
void launch_at(Ranks& ranks, int rank, const Launch& shape, void (*kernel)(Params...),
               Args&&... args) {
  launch(ranks.at(rank), shape, kernel, std::forward<Args>(args)...);
}
#endif

}  // namespace tilestep::simt
