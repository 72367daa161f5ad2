#pragma once

/// \file
/// Who uses the shared memory of a block of an edited kernel, and whether its barriers keep them apart. Edited sources
/// are compiled with the calls that g++ and clang++ make for ThreadSanitizer (`-fsanitize=thread`), and those
/// calls come here (tsan_words.cpp) and not to its runtime, which knows nothing of CUDA's threads.
///
/// How it knows: of every 4 bytes the last accesses are kept, each with its thread and with what that thread's clock
/// showed. Two accesses of different threads, of which one writes, are a race unless a barrier of the block lay
/// between (then they are of different epochs), or a __syncwarp of both lanes (then the later one knows the clock
/// of the earlier one, as in Lamport's "happened before"). Shuffles and votes order no memory, says the CUDA C++
/// Programming Guide.
///
/// Not watched: a block's shared memory from its first word of Hopper's on (async_engine.hpp watches that),
/// blocks of clusters, and global memory.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/simt/fault_place.hpp"

namespace tilestep::simt::emulated {

class BlockRunner;

enum class SharedUse : std::uint8_t {
  read,
  write,
  atomic,
  copy,  ///< a cp.async that nobody has waited for
};

class SharedRaces {
 public:
  explicit SharedRaces(BlockRunner& runner) : runner_(runner) {}

  struct Region {
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    bool holds(std::uintptr_t address) const { return address - begin < bytes; }
  };

  /// `statics` are the arrays that have been registered so far.
  void begin_block(int threads, Region dynamic, const std::vector<Region>& statics);
  /// An array that a thread comes by for the first time.
  void add_static(Region array);
  /// Also where what comes in this block is not watched any more.
  void end_block();
  void block_met() { next_epoch(); }
  void lanes_met(int first_thread, unsigned mask);

  /// `frame` is that of the function which the kernel called (__builtin_frame_address).
  void access(std::uintptr_t address, std::size_t bytes, SharedUse use, void** frame);
  void copy_awaited(const void* memory, std::size_t bytes);

 private:
  static constexpr std::size_t kCell = 4, kKept = 4, kLanes = 32, kFrames = 6;
  static constexpr std::uint16_t kLastClock = 0xFFFF;

  struct Record {
    std::uint32_t site = 0;
    std::uint32_t epoch = 0;  ///< 0: none
    std::uint16_t clock = 0;  ///< of its thread
    std::uint16_t thread : 10 = 0, bytes : 4 = 0, use : 2 = 0;
  };
  using Cell = std::array<Record, kKept>;
  /// Where code was called from, innermost first.
  using Site = std::array<const void*, kFrames>;
  struct Warp {
    std::uint32_t epoch = 0;
    /// What each lane knows of the clocks of all; its own clock is what it knows of itself.
    std::array<std::array<std::uint16_t, kLanes>, kLanes> known;
  };

  void next_epoch();
  Cell* cells_of(std::uintptr_t address);
  void use_cell(Cell& cell, std::uintptr_t address, unsigned bytes, SharedUse use, void** frame);
  bool in_order(const Record& earlier, int thread);
  Warp& warp_of(int thread);
  std::uint32_t site_of(void** frame);
  void report(const Record& earlier, std::uintptr_t address, SharedUse use);

  BlockRunner& runner_;
  bool watching_ = false;
  std::uint32_t epoch_ = 0;
  std::uint32_t first_epoch_ = 0;  ///< of the block
  std::uint32_t turn_ = 0;
  Region dynamic_;
  std::vector<Region> statics_;
  std::vector<Cell> dynamic_cells_;
  std::vector<std::vector<Cell>> static_cells_;
  std::vector<Warp> warps_;
  std::vector<Site> sites_;
  std::vector<std::uint32_t> site_table_;
};

/// Where the calling OS thread's shared memory lies, for a quick answer to most accesses; empty where nobody watches.
struct SharedWindow {
  SharedRaces::Region dynamic;
  SharedRaces::Region statics;  ///< from the first to the last
  SharedRaces* races = nullptr;
};
extern constinit thread_local SharedWindow shared_window;

}  // namespace tilestep::simt::emulated
