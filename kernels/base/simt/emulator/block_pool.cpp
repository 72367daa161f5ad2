#include "kernels/base/simt/emulator/block_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <system_error>

#include "kernels/base/simt/emulator/fault_guard.hpp"

namespace tilestep::simt::emulated {
namespace {

// How long a launch goes on at most after its caller gave it up (between two blocks or barriers).
constexpr std::chrono::milliseconds kAskInterval{2};

KernelFault too_long(const Launch& launch) {
  return {fmt::format("{} was ended: the run has taken {:g} seconds; choose smaller values, or do "
                      "less work",
                      launch.name, std::chrono::duration<double>(FaultGuard::deadline()).count()),
          {}};
}

}  // namespace

BlockPool::BlockPool(const EmulationOptions& options)
    : options_(options),
      os_threads_(options.log != nullptr ? 1  // one writer
                  : options.os_threads > 0
                      ? options.os_threads
                      : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))) {}

BlockPool::~BlockPool() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  work_there_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void BlockPool::run(const Launch& launch, ThreadFunction thread, void* data,
                    const std::function<bool()>& stop, WatchedValues* watched) {
  if (end_) std::rethrow_exception(end_);
  if (stop && stop()) throw Cancelled();
  if (FaultGuard::overdue()) throw too_long(launch);
  LaunchJob job;
  job.launch = &launch;
  job.thread = thread;
  job.data = data;
  job.watched = watched;
  job.blocks = std::uint64_t{launch.grid.x / launch.cluster} * launch.grid.y * launch.grid.z;
  job.end_block = job.blocks;
  // Before there is a job: a thread that has begun one could not be called back.
  const int threads = start_threads(
      static_cast<int>(std::min<std::uint64_t>(job.blocks, static_cast<unsigned>(os_threads_))));
  {
    const std::lock_guard lock(mutex_);
    wanted_ = busy_ = threads;
    job_ = &job;
    error_ = nullptr;
    ++generation_;
  }
  work_there_.notify_all();
  bool cancelled = false;
  const std::exception_ptr asking = wait(job, stop, cancelled);
  if (asking) std::rethrow_exception(asking);
  if (cancelled && !end_) throw Cancelled();
  if (end_) error_ = end_;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  if (std::exchange(interrupted_, false)) throw too_long(launch);
}

/// Threads are started when a launch first needs them: most kernels of a lesson are small. Returns how many
/// of `wanted` there are; a system that gives fewer makes a launch slower, no more.
int BlockPool::start_threads(int wanted) {
  threads_.reserve(static_cast<std::size_t>(wanted));
  while (static_cast<int>(threads_.size()) < wanted) {
    try {
      threads_.emplace_back([this, worker = static_cast<int>(threads_.size())] { work(worker); });
    } catch (const std::system_error& error) {
      if (!threads_.empty()) break;
      throw Error(fmt::format("no thread can be started for the kernels to run on: {}; close other "
                              "programs, or raise the limit (`ulimit -u`)",
                              error.code().message()),
                  ExitCode::unavailable);
    }
  }
  return std::min(wanted, static_cast<int>(threads_.size()));
}

/// Returns what `stop` threw: the launch is given up then, and nothing works on it any more.
std::exception_ptr BlockPool::wait(LaunchJob& job, const std::function<bool()>& stop,
                                   bool& cancelled) {
  std::exception_ptr asking;
  std::unique_lock lock(mutex_);
  const auto done = [this] { return busy_ == 0; };
  while (!work_done_.wait_for(lock, kAskInterval, done)) {
    if (FaultGuard::overdue()) interrupt_threads(job);
    if (cancelled || !stop) continue;
    lock.unlock();
    try {
      cancelled = stop();
    } catch (...) {
      asking = std::current_exception();
      cancelled = true;
    }
    lock.lock();
    if (cancelled) job.end_block = 0;
  }
  return asking;
}

/// Those that meet at barriers could be given up there; but where a loop is endless is seen in its middle. Called
/// again and again: a thread between two blocks does not stop.
void BlockPool::interrupt_threads(LaunchJob& job) {
  if (interrupted_) job.end_block = 0;
  interrupted_ = true;
  for (int i = 0; i < wanted_; ++i) {
    interrupt(threads_[static_cast<std::size_t>(i)].native_handle());
  }
}

void BlockPool::work(int worker) {
  const AlternateStack stack;
  std::optional<BlockRunner> runner;  // made for the first job, whose failure can be told
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    work_there_.wait(lock, [&] { return quit_ || (generation_ != seen && worker < wanted_); });
    if (quit_) return;
    seen = generation_;
    LaunchJob& job = *job_;
    lock.unlock();
    run_blocks(runner, job);
    lock.lock();
    if (--busy_ == 0) work_done_.notify_one();
  }
}

void BlockPool::run_blocks(std::optional<BlockRunner>& runner, LaunchJob& job) {
  std::uint64_t block = 0;
  try {
    if (!runner) runner.emplace(options_);
    runner->begin(job);
    while (true) {
      block = job.next_block.fetch_add(1, std::memory_order_relaxed);
      if (block >= job.end_block.load(std::memory_order_relaxed)) return;
      runner->run(block);
    }
  } catch (const KernelFault& fault) {
    keep_error(job, block, fault.ends_process());
  } catch (...) {
    keep_error(job, block, false);
  }
}

/// Keeps the exception that is being handled.
void BlockPool::keep_error(LaunchJob& job, std::uint64_t block, bool ends) {
  // Blocks are handed out in order, so every block before this one runs or has run: the lowest
  // that fails is the same every time.
  const std::lock_guard lock(mutex_);
  if (error_ == nullptr || block < error_block_) {
    error_ = std::current_exception();
    error_block_ = block;
  }
  if (ends && (end_ == nullptr || block < end_block_)) {
    end_ = std::current_exception();
    end_block_ = block;
  }
  job.end_block = std::min(job.end_block.load(), error_block_);
}

}  // namespace tilestep::simt::emulated
