#pragma once

/// \file
/// Who uses the global memory of an edited kernel: whether two blocks of a launch, or two threads of one, use the same
/// bytes and nothing orders them, and whether an access lies inside its array. Told by the same calls as shared memory
/// (shared_races.hpp).
///
/// Of every 4 bytes the last write and two reads are kept. Two accesses of a launch, of which one writes, are a
/// race unless
///  - both are atomics (a volatile access counts as one: PTX ISA, "Volatile Operation"), or
///  - they are of one thread, or a barrier or __syncwarp of their block lies between, or
///  - both are the same store of one warp, of which one wins (CUDA C++ Programming Guide, "SIMT Architecture"), or
///  - the later one's block has learnt of the earlier one by an atomic on the same address, which the earlier one's
///    block came to after a __threadfence (CUDA C++ Programming Guide, "Memory Fence Functions").
/// Launches are in order. Blocks with words of Hopper's order their own threads in ways that are not followed here: those
/// are watched against other blocks alone, and a cluster counts as one block.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/base/simt/emulator/shared_races.hpp"

namespace tilestep::simt::emulated {

/// What a block knows of another: all that it did before `epoch`, and what `thread` did in it (several threads: what all
/// did).
struct KnownBlock {
  std::uint32_t epoch = 0;
  int thread = 0;
};
using KnownBlocks = std::map<std::uint32_t, KnownBlock>;

class GlobalWatch {
 public:
  using Region = SharedRaces::Region;

  /// A range of addresses in which arrays will lie; several, where there are several devices.
  void begin(const void* range, std::size_t bytes);
  void end(const void* range);
  /// `fenced`: what follows it is nobody's, and who gets there is told.
  void add(const void* memory, std::size_t bytes, bool fenced);
  void remove(const void* memory);
  /// What the launch calls the array that begins there; `element` is the size of one in bytes, 0 where
  /// that is not known.
  void name(const void* memory, std::size_t element, const char* name);
  void begin_launch();
  /// From the first range to the last.
  Region ranges() const { return ranges_; }

 private:
  friend class GlobalView;

  static constexpr std::size_t kCell = 4, kKept = 3, kCellsOfPart = 1024, kLocks = 64;

  struct Record {
    std::uint32_t launch = 0;  ///< 0: none
    std::uint32_t block = 0, epoch = 0, site = 0;
    std::uint16_t clock = 0;
    std::uint16_t thread : 10 = 0, bytes : 4 = 0, use : 2 = 0;
  };
  /// The first is the last that wrote; the others read.
  using Cell = std::array<Record, kKept>;
  using Part = std::array<Cell, kCellsOfPart>;
  struct Array {
    Region region;
    bool fenced = false;
    std::size_t element = 0;
    std::string name;
    std::vector<std::unique_ptr<Part>> parts;
  };

  void span_ranges();
  /// The array that holds `address`, or a fenced one that ends nearest before it. Null: none, as of all of `nobody`.
  Array* at(std::uintptr_t address, Region& nobody);

  std::vector<Region> all_ranges_;
  Region ranges_;
  std::map<std::uintptr_t, Array> arrays_;  ///< changes between launches alone
  std::uint32_t launch_ = 0;
  std::array<std::mutex, kLocks> locks_;  ///< of cells, by their part
  std::mutex released_mutex_;
  std::unordered_map<std::uintptr_t, KnownBlocks>
      released_;  ///< by what was fenced before an atomic
};

/// The one of this process.
GlobalWatch& global_watch();

/// The global memory as the block sees it that an OS thread runs.
class GlobalView {
 public:
  explicit GlobalView(BlockRunner& runner) : runner_(runner) {}

  void begin_block(std::uint32_t block);
  /// `frame` as for SharedRaces::access.
  void access(std::uintptr_t address, std::size_t bytes, SharedUse use, void** frame);
  void fence() { fenced_ = true; }
  /// After an atomic: the block learns what others let go before theirs.
  void acquire(std::uintptr_t address);
  /// A volatile read comes.
  void poll(std::uintptr_t address) {
    if (std::find(polled_.begin(), polled_.end(), address) == polled_.end()) {
      polled_.push_back(address);
    }
  }

 private:
  using Record = GlobalWatch::Record;
  using Cell = GlobalWatch::Cell;

  bool inside(GlobalWatch::Array* array, std::uintptr_t address, std::size_t bytes, SharedUse use);
  /// Before an atomic: what the block knows and did before its fence goes to those who come later.
  void release(std::uintptr_t address);
  bool learns_by_polling();
  bool ordered(const Record& earlier, const Record& mine) const;
  static void keep(Cell& cell, const Record& mine);
  void report(const Record& earlier, const GlobalWatch::Array& array, std::uintptr_t address,
              SharedUse use);
  std::string name_of(const GlobalWatch::Array& array, std::uintptr_t address) const;

  BlockRunner& runner_;
  std::uint32_t block_ = 0;
  bool fenced_ = false, told_ = false;
  KnownBlocks known_;
  std::vector<std::uintptr_t> polled_;
  GlobalWatch::Array* array_at(std::uintptr_t address);

  std::array<GlobalWatch::Array*, 4> recent_{};  ///< a kernel goes from one to the other and back
  std::size_t oldest_ = 0;
};

/// What stands before each access of an edited kernel, whatever memory it is to. `frame` is that of the function which the
/// kernel called.
[[gnu::always_inline]] inline void watch_access(const volatile void* memory, std::size_t bytes,
                                                SharedUse use, void* frame) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const WatchWindow& window = watch_window;
  if (window.listener != nullptr) [[unlikely]] {
    window.listener->access(address, bytes, use, static_cast<void**>(frame));
  }
  if (window.dynamic.holds(address) || window.statics.holds(address)) [[unlikely]] {
    window.races->access(address, bytes, use, static_cast<void**>(frame));
  } else if (window.global.holds(address) && !window.nobody.holds(address)) {
    window.view->access(address, bytes, use, static_cast<void**>(frame));
  }
}

/// What stands behind an atomic.
inline void watch_atomic_done(const volatile void* memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  if (watch_window.global.holds(address)) watch_window.view->acquire(address);
}

}  // namespace tilestep::simt::emulated
