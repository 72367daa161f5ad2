#pragma once

/// \file
/// Who uses the shared memory of a block of an edited kernel, whether its barriers keep them apart, and whether somebody
/// wrote what is read. Edited sources are compiled with the calls that g++ and clang++ make for ThreadSanitizer (`-fsanitize=thread`), and those
/// calls come here (tsan_words.cpp) and not to its runtime, which knows nothing of CUDA's threads.
///
/// How it knows: of every 4 bytes the last accesses are kept, each with its thread and with what that thread's clock
/// showed. Two accesses of different threads, of which one writes, are a race unless a barrier of the block lay
/// between (then they are of different epochs), or a __syncwarp of both lanes (then the later one knows the clock
/// of the earlier one, as in Lamport's "happened before"). Shuffles and votes order no memory, says the CUDA C++
/// Programming Guide.
///
/// Watched are dynamic shared memory, our own arrays, and every `__shared__` variable of the edited source, by the table
/// of symbols of its module (shared_variables.hpp). Not watched: a block's shared memory from its first word of Hopper's on
/// (async_engine.hpp watches that), and blocks of clusters. Global memory is global_watch.hpp's.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/simt/emulator/access_listener.hpp"
#include "kernels/base/simt/emulator/fault_guard.hpp"
#include "kernels/base/simt/emulator/shared_variables.hpp"

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

  /// Memory behind and before a block's dynamic shared memory that nobody has: who gets there is told.
  static constexpr std::size_t kFence = 4096;

  void begin_block(int threads, Region dynamic);
  /// Also where what comes in this block is not watched any more, and where one fault was told: that is enough.
  void end_block();
  void block_met() { next_epoch(); }
  void lanes_met(int first_thread, unsigned mask);

  /// `frame` is that of the function which the kernel called (__builtin_frame_address).
  void access(std::uintptr_t address, std::size_t bytes, SharedUse use, void** frame);
  void copy_awaited(const void* memory, std::size_t bytes);

  bool watching() const { return watching_; }
  /// Of the current thread, as long as the block is watched: what orders accesses to global memory in a block.
  std::uint32_t epoch() const { return epoch_; }
  std::uint16_t clock();
  /// Whether the current thread knows what `thread` did at this clock, in this epoch.
  bool in_order(int thread, std::uint16_t clock);

 private:
  static constexpr std::size_t kCell = 4, kKept = 4, kLanes = 32;
  static constexpr std::uint16_t kLastClock = 0xFFFF;

  struct Record {
    std::uint32_t site = 0;
    std::uint32_t epoch = 0;  ///< 0: none
    std::uint16_t clock = 0;  ///< of its thread
    std::uint16_t thread : 10 = 0, bytes : 4 = 0, use : 2 = 0;
  };
  struct Cell {
    std::array<Record, kKept> records;
    std::uint32_t written_in = 0;  ///< the first epoch of the block whose threads wrote …
    std::uint8_t written = 0;      ///< … these bytes
  };
  struct Variable {
    SharedVariable place;
    bool used = false;  ///< by a kernel that has run on this OS thread
    std::vector<Cell> cells;
    Region region() const { return {place.begin, place.bytes}; }
  };
  struct Warp {
    std::uint32_t epoch = 0;
    /// What each lane knows of the clocks of all; its own clock is what it knows of itself.
    std::array<std::array<std::uint16_t, kLanes>, kLanes> known;
  };

  void next_epoch();
  void learn_variables();
  Variable* variable_at(std::uintptr_t address);
  Cell* cells_of(std::uintptr_t address);
  /// "byte 4 of tile"
  std::string name_of(std::uintptr_t address);
  void use_cell(Cell& cell, std::uintptr_t address, unsigned bytes, SharedUse use, void** frame);
  Warp& warp_of(int thread);
  void report(const Record& earlier, std::uintptr_t address, SharedUse use);
  void keep_unwritten(std::uintptr_t address, SharedUse use);
  void report_outside(std::uintptr_t address, std::size_t bytes, SharedUse use);

  BlockRunner& runner_;
  bool watching_ = false;
  std::uint32_t epoch_ = 0;
  std::uint32_t first_epoch_ = 0;  ///< of the block
  std::uint32_t turn_ = 0;
  Region dynamic_;
  std::optional<MemoryFault>
      unwritten_;  ///< told when the block ends: perhaps it is half of a race
  std::vector<Cell> dynamic_cells_;
  std::uint64_t known_ = 0;  ///< which module the variables are of
  std::vector<Variable> variables_;
  std::vector<Warp> warps_;
};

class GlobalView;

/// Where the calling OS thread's watched memory lies, for a quick answer to most accesses; empty where nobody watches.
struct WatchWindow {
  SharedRaces::Region dynamic;  ///< with the fences beside it
  SharedRaces::Region statics;  ///< from the first to the last
  SharedRaces* races = nullptr;
  SharedRaces::Region global;  ///< all of it (global_watch.hpp), and what lies between: stacks
  SharedRaces::Region nobody;  ///< a part of it without an array: most accesses are to locals
  GlobalView* view = nullptr;
  bool may_be_unwritten = false;       ///< what is read of shared memory
  AccessListener* listener = nullptr;  ///< who is told of all of them
};
extern constinit thread_local WatchWindow watch_window;

const char* present(SharedUse use);
const char* past(SharedUse use);
/// Whether two threads may do this to the same memory at a time.
bool may_meet(SharedUse a, SharedUse b);

}  // namespace tilestep::simt::emulated
