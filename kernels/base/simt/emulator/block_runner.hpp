#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/simt/backends.hpp"
#include "kernels/base/simt/emulator/async_engine.hpp"
#include "kernels/base/simt/emulator/emulated_threads.hpp"
#include "kernels/base/simt/emulator/emulator.hpp"
#include "kernels/base/simt/emulator/fault_guard.hpp"
#include "kernels/base/simt/emulator/fault_signal.hpp"
#include "kernels/base/simt/emulator/fiber.hpp"
#include "kernels/base/simt/emulator/global_watch.hpp"
#include "kernels/base/simt/emulator/shared_races.hpp"
#include "kernels/base/simt/emulator/thread_copies.hpp"
#include "kernels/base/simt/emulator/watched.hpp"

namespace tilestep::simt::emulated {

/// What all OS threads that work at a launch share.
struct LaunchJob {
  const Launch* launch = nullptr;
  ThreadFunction thread = nullptr;
  void* data = nullptr;
  std::uint64_t blocks = 0;  ///< or clusters, which are run as blocks are
  WatchedValues* watched = nullptr;
  std::atomic<std::uint64_t> next_block{0};
  /// Blocks (or clusters, where a launch has them) from here on need not run any more: an earlier one
  /// failed, or the run was cancelled.
  std::atomic<std::uint64_t> end_block{0};
};

/// "line 12 of kernel.cu"
std::string line_of(const Location& at);
inline bool same_place(const Location& a, const Location& b) {
  if (std::memcmp(&a, &b, sizeof a) == 0) return true;  // nearly always: one pointer
  return a.line() == b.line() && a.column() == b.column() &&
         std::strcmp(a.file_name(), b.file_name()) == 0;
}

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
inline std::uint64_t split_mix(std::uint64_t& state) {
  std::uint64_t z = state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// Runs the threads of one block at a time, each as a fiber, on the OS thread that owns it.
///
/// Scheduling: in each phase (from one block barrier to the next) the threads run in `order_`, each
/// until it waits or ends; lanes whose warp collective completed come first. A thread that ends
/// without having waited leaves its fiber to the next one, so that a kernel without barriers never
/// switches. The blocks of a cluster run together: there the threads of a block that has met come after all
/// that can run already. When nothing can run though threads wait, the kernel is wrong, and the report says
/// why.
class BlockRunner {
 public:
  explicit BlockRunner(const EmulationOptions& options);
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  /// Prepares for the blocks of a launch.
  void begin(const LaunchJob& job);
  /// Runs block (or cluster) `linear`, x fastest. Throws Error. A block that the job no longer needs may return
  /// early.
  void run(std::uint64_t linear);

  /// The runner of the calling OS thread. Throws Error outside a kernel.
  static BlockRunner& current();
  static bool inside_kernel();

  Pause arrive_at_barrier(bool predicate, Location at);
  int leave_barrier() const {
    resume();
    return blocks_ > 1 ? members_[rank_of(current_)].vote_result : vote_result_;
  }
  std::uint64_t warp_collective(WarpOp op, unsigned mask, std::uint64_t value, int source,
                                Location at);
  unsigned coalesced_lanes(Location at);
  void* dynamic_shared_memory(std::size_t bytes, std::size_t byte_offset, std::size_t alignment);
  int lane() const { return current_ % kWarp; }
  int current_thread() const { return current_; }
  /// The linear number of a block of the running cluster.
  std::uint64_t block(int rank) const {
    return block_ * static_cast<unsigned>(blocks_) + static_cast<unsigned>(rank);
  }
  /// How many threads of it have ended.
  int ended(int rank) const {
    return blocks_ > 1 ? members_[static_cast<std::size_t>(rank)].ended : ended_;
  }
  /// Blocks of the cluster.
  int blocks() const { return blocks_; }
  /// "<kernel>: block (…)"
  std::string block_position(int rank) const;
  /// What happens beside the block's threads; begins to watch the block when first asked for.
  AsyncEngine& async();
  /// The same where a block is watched already; else null.
  AsyncEngine* watching() { return async_ && async_->active() ? async_.get() : nullptr; }
  ThreadCopies& copies() { return copies_; }
  /// Who watches the block's shared memory, if somebody does.
  SharedRaces* races() { return races_.get(); }
  /// Tells that the current thread leaves an array of the type "'float [16]'".
  void outside_array(const char* type, std::uintptr_t index);
  /// What the current thread does wrong, without saying what.
  MemoryFault memory_fault(const char* check) const;
  const char* kernel_name() const { return job_->launch->name; }
  /// "thread (…)"
  std::string thread_name(int thread) const;
  /// "block (…)", by its linear number.
  std::string block_name(std::uint64_t linear) const;
  /// Of the current thread; null where it is not known.
  const void* top_of_stack() const;
  /// Keeps a value of the current thread, if the launch keeps them.
  void watch(const char* name, double value, Location at) const;
  /// The current thread waits until somebody wakes it.
  void sleep(Location at);
  /// Lets sleeping threads go on, each once.
  void wake(std::span<int> threads);
  /// "<kernel>: thread (…) of block (…)"
  std::string position(int thread) const;
  /// Throws KernelFault: "<kernel>: thread (…) of block (…) <what>".
  [[noreturn]] void fail(const std::string& what) const;
  /// In a signal handler: ends the block that the calling OS thread runs, with a KernelFault. False if it is in
  /// no kernel, or was stopped before.
  static bool stop_current(int number, const siginfo_t& info, void* context,
                           bool time_is_up) noexcept;

 private:
  static constexpr int kWarp = 32;
  static constexpr int kNone = -1;
  static constexpr std::size_t kCacheLine = 64;

  /// Who runs has the state that it had when it waited last.
  enum class State : std::uint8_t { unstarted, started, at_barrier, at_warp, asleep, ended };

  struct alignas(kCacheLine) Thread {
    uint3 index{};  ///< its threadIdx
    State state = State::unstarted;
    Context* context = nullptr;  ///< where it runs or is suspended
    Location place;              ///< what it waits at, or waited at last
  };

  /// Lanes that wait for each other. Each mask and operation of a warp meets by itself, under the lowest lane of its
  /// mask where that is free.
  struct Meeting {
    unsigned mask = 0;
    unsigned arrived = 0;
    WarpOp op = WarpOp::sync;
  };
  struct Warp {
    std::array<Meeting, kWarp> meetings;
    std::array<std::uint64_t, kWarp> values;
    std::array<std::uint64_t, kWarp> results;
    std::array<int, kWarp> sources;
    std::array<unsigned, kWarp> masks;
    std::array<WarpOp, kWarp> ops;
  };

  /// A block of a cluster of several.
  struct Member {
    uint3 index{};  ///< its blockIdx
    int arrived = 0, ended = 0, votes = 0, vote_result = 0;
    bool mismatch = false;
    Location barrier_at{};
  };

  std::size_t rank_of(int thread) const {
    return static_cast<std::size_t>(thread / block_threads_);
  }
  void enter(int thread) {
    current_ = thread;
    threadIdx = threads_[static_cast<std::size_t>(thread)].index;
    if (blocks_ > 1) [[unlikely]]
      blockIdx = members_[rank_of(thread)].index;
  }
  void place_blocks();
  void fill_shared();
  void watch_memory();
  void check_static_shared() const;
  Pause meet_in_cluster(bool predicate, Location at);
  void fiber_body(Context& self);
  void run_thread(int thread);
  std::exception_ptr error_of(int thread) const noexcept;
  int pick_next();
  int pick_unusual();
  void begin_phase();
  Pause meet(Location at);
  Pause pause();
  /// The current thread goes on, or unwinds if the block was given up meanwhile.
  void resume() const {
    if (abandoned_) [[unlikely]]
      unwind();
  }
  [[noreturn]] static void unwind();
  Pause go_to(Thread& next);
  Context& start(int thread);
  void complete(Warp& warp, int first_thread, Meeting& meeting);
  void reset_warps();
  bool advance();
  bool coalesce();
  int stalled_thread() const;
  std::string stall_report() const;
  bool stop(int number, const siginfo_t& info, void* context, bool time_is_up) noexcept;
  static void leave_stopped(void* self);
  std::string warp_stall(int thread) const;
  std::string barrier_stall(int thread) const;
  int missing_lane(int thread) const;
  std::uint64_t random();

  EmulationOptions options_;
  const LaunchJob* job_ = nullptr;
  std::uint64_t block_ = 0;
  int count_ = 0;  ///< threads of a block, or of a cluster
  int blocks_ = 1;
  int block_threads_ = 0;
  Fibers fibers_;
  std::vector<Context*> idle_;
  std::size_t contexts_ = 0;  ///< that were made
  bool quit_ = false;

  int current_ = 0;   ///< who runs, or is to run after the switch that comes next
  int starting_ = 0;  ///< thread that an idle context shall begin with
  int cursor_ = 0;    ///< into order_
  int arrived_ = 0;
  int ended_ = 0;
  int votes_ = 0;
  int vote_result_ = 0;
  bool mismatch_ = false;   ///< threads wait at barriers in different lines
  bool abandoned_ = false;  ///< what is suspended is to unwind
  bool warps_used_ = false;
  int coalescing_ = 0;  ///< lanes that wait in coalesced_lanes
  Location barrier_at_;
  std::exception_ptr error_;
  StoppedThread stopped_;  ///< after that nothing runs here any more
  Context stopped_at_;     ///< where, and nobody comes back
  bool leaves_stopped_ = false;
  const char* main_frame_ = nullptr;
  std::uint64_t random_state_ = 0;

  std::vector<int> order_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<Member> members_;  ///< the blocks
  std::vector<int> ready_;       ///< lanes released by a collective, a ring
  int ready_head_ = 0;
  int ready_size_ = 0;

  struct FreeAligned {
    void operator()(unsigned char* memory) const;
  };
  ThreadCopies copies_;
  std::unique_ptr<AsyncEngine> async_;  ///< null until a kernel needs it
  std::unique_ptr<SharedRaces> races_;  ///< null unless an edited kernel runs
  GlobalView global_{*this};
  bool told_outside_ = false;  ///< of the block
  std::unique_ptr<unsigned char, FreeAligned> shared_memory_;
  unsigned char* shared_ = nullptr;  ///< in it, between two fences
  std::size_t shared_capacity_ = 0;
  std::size_t shared_stride_ = 0;  ///< from block to block
};

}  // namespace tilestep::simt::emulated
