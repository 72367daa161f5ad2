#pragma once

#include <cstddef>
#include <vector>

#include "kernels/base/simt/backends.hpp"
#include "kernels/base/simt/location.hpp"

namespace tilestep::simt::emulated {

class AsyncEngine;
class SharedRaces;

/// The copies from global to shared memory that the threads of a block start by cp.async, and when they are
/// done under emulation: as Completion says, which is at the thread's wait for their group at the latest, or
/// never where it does not wait.
class ThreadCopies {
 public:
  explicit ThreadCopies(const EmulationOptions& options) : completion_(options.completion) {}

  void begin_block(int threads, std::uint64_t seed);
  /// `from` null: zeros. `engine`, null where there is none, is told what to watch.
  void start(int thread, void* to, const void* from, int bytes, AsyncEngine* engine, Location at);
  void commit(int thread);
  /// Until at most `pending` of the thread's newest groups are under way. `races` is told, too, if it is not null.
  void wait(int thread, int pending, AsyncEngine* engine, SharedRaces* races);

 private:
  struct Copy {
    unsigned char* to;
    const unsigned char* from;
    int bytes;
  };
  struct Queue {
    std::vector<Copy> copies;         ///< that the thread has not waited for, the oldest first
    std::size_t landed = 0;           ///< of those
    std::vector<std::size_t> groups;  ///< how many of `copies` each reaches to, the oldest first
  };

  Queue& queue(int thread);
  static void land(Queue& queue, std::size_t upto);
  void nudge(Queue& queue);

  Completion completion_;
  int threads_ = 0;
  bool used_ = false;  ///< since the block began
  std::uint64_t random_state_ = 0;
  std::vector<Queue> queues_;
};

}  // namespace tilestep::simt::emulated
