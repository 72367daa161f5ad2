#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "kernels/base/simt/backends.hpp"
#include "kernels/base/simt/emulator/block_runner.hpp"

namespace tilestep::simt::emulated {

/// The OS threads that blocks run on. They live as long as the pool, because the fibers of a runner
/// must stay on the OS thread that made them. Used by one thread at a time.
class BlockPool {
 public:
  explicit BlockPool(const EmulationOptions& options);
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  int os_threads() const { return os_threads_; }

  /// Runs all blocks of a launch and waits. `stop` (may be empty) is asked on the calling thread
  /// before and during the launch. Throws what the first failing block (in block order) threw,
  /// Cancelled, or Error where not one thread can be started; with fewer than wanted it runs on those. Under a
  /// FaultGuard it also throws KernelFault when that guard's time is up.
  /// What is watched goes to `watched`.
  void run(const Launch& launch, ThreadFunction thread, void* data,
           const std::function<bool()>& stop, WatchedValues* watched = nullptr);

 private:
  void work(int worker);
  int start_threads(int wanted);
  void run_blocks(std::optional<BlockRunner>& runner, LaunchJob& job);
  std::exception_ptr wait(LaunchJob& job, const std::function<bool()>& stop, bool& cancelled);
  void interrupt_threads(LaunchJob& job);
  void keep_error(LaunchJob& job, std::uint64_t block, bool ends);

  EmulationOptions options_;
  int os_threads_;
  std::vector<std::thread> threads_;

  std::mutex mutex_;
  std::condition_variable work_there_;
  std::condition_variable work_done_;
  std::uint64_t generation_ = 0;  ///< counts launches
  int wanted_ = 0;                ///< OS threads that take part in the launch
  int busy_ = 0;                  ///< those of them that have not finished
  bool quit_ = false;
  LaunchJob* job_ = nullptr;
  std::exception_ptr error_;
  std::uint64_t error_block_ = 0;
  std::exception_ptr end_;  ///< a fault after which nothing runs any more
  std::uint64_t end_block_ = 0;
  bool interrupted_ = false;  ///< threads whose time was up
};

}  // namespace tilestep::simt::emulated
