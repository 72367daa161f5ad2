#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "kernels/base/inspect/requests.hpp"

namespace tilestep::inspect {

/// A place in the compiled program: the return address of a hook.
using Code = const void*;

/// A basic block of a kernel, over a launch.
struct Block {
  std::uint64_t threads = 0;  ///< executions by threads
  std::uint64_t warps = 0;    ///< executions by warps
};

/// A branch whose threads took both ways, over a launch.
struct Branch {
  std::uint64_t warps = 0;              ///< executions by warps
  std::uint64_t split = 0;              ///< those in which the lanes diverged
  Code one = nullptr, other = nullptr;  ///< its successors
};

/// Executions of a basic block by a warp, and by each of its lanes.
struct LaneTimes {
  std::uint32_t warp = 0;
  std::array<std::uint32_t, kLanes> lane{};
  /// Slots of lanes that idled while others executed it.
  std::uint64_t idle() const;
};

struct WarpPath {
  std::uint32_t block = 0, warp = 0;
  std::uint64_t splits = 0;
  std::map<Code, LaneTimes> times;
};

struct LaunchTrace {
  std::map<std::uint32_t, Traffic> traffic;  ///< by call site
  std::unordered_map<Code, Block> blocks;
  std::map<Code, Branch> branches;
  WarpPath warp;               ///< the most divergent one
  std::uint64_t left_out = 0;  ///< executions and accesses beyond kMostOpen
};

/// Reassembles warps from threads that the emulator ran one after the other. Between two barriers it records the basic blocks
/// and accesses of each thread; then it runs the 32 lanes of a warp in lockstep: in each step the lanes at the deepest call, and
/// there at the lowest address, go on together. g++ lays out structured code so that diverged lanes meet again behind
/// the branch: a loop's condition below its body. The compilers call a hook at each basic block and before each comparison (GCC manual, "-fsanitize-coverage").
class Lockstep {
 public:
  /// Most recorded blocks, and accesses, of a warp.
  static constexpr std::size_t kMostOpen = 4'000'000;

  void begin_block(std::uint32_t block, int threads);
  /// `frame`: address of the stack frame that the basic block belongs to.
  void step(int thread, Code code, std::uintptr_t frame);
  /// The last comparison in a basic block decides its branch.
  void compare(int thread, Code code);
  void access(int thread, std::uint32_t site, Space space, Use use, std::uintptr_t address,
              std::uint32_t bytes);
  /// At a barrier.
  void close();
  void end_block();

  LaunchTrace take();

 private:
  struct Place {
    Code code;
    std::uint32_t depth;
  };
  struct Visit {
    std::uint32_t place = 0;
    std::uint32_t accesses = 0;  ///< index of its first one
    Code compared = nullptr;     ///< null: nothing
    bool continued = false;      ///< begun before a barrier
  };
  struct Access {
    std::uintptr_t address;
    std::uint32_t site, bytes;
    Space space;
    Use use;
  };
  struct Lane {
    std::vector<Visit> visits;
    std::vector<Access> accesses;
    std::uintptr_t base = 0;  ///< its first frame
    std::uint32_t place = 0;
    bool inside = false;  ///< in a basic block
  };

  std::uint32_t place_of(Code code, std::uint32_t depth);
  bool has_room(int thread);
  void run(std::size_t warp);
  void execute(std::size_t warp, std::uint32_t lanes, std::array<std::size_t, kLanes>& next);
  void request(std::size_t warp, std::uint32_t lanes, const std::array<std::size_t, kLanes>& next);
  void decide(std::size_t warp, std::uint32_t lanes, const std::array<std::size_t, kLanes>& next);

  std::uint32_t block_ = 0;
  std::size_t open_ = 0;
  std::vector<Lane> lanes_;
  std::vector<Place> places_;
  std::unordered_map<std::uint64_t, std::uint32_t> number_of_place_;
  std::vector<std::uint64_t> splits_;                       ///< by warp
  std::unordered_map<Code, std::vector<LaneTimes>> times_;  ///< by warp
  std::unordered_map<Code, Branch> ways_;
  Requests requests_;
  LaunchTrace trace_;
};

}  // namespace tilestep::inspect
