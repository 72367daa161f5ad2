#include "kernels/base/simt/block_pool.hpp"

#include <algorithm>
#include <chrono>

namespace tilestep::simt::emulated {
namespace {

// How long a launch goes on at most after its caller gave it up (between two blocks or barriers).
constexpr std::chrono::milliseconds kAskInterval{2};

}  // namespace

BlockPool::BlockPool(const EmulationOptions& options)
    : options_(options),
      os_threads_(options.os_threads > 0
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
                    const std::function<bool()>& stop) {
  if (stop && stop()) throw Cancelled();
  LaunchJob job;
  job.launch = &launch;
  job.thread = thread;
  job.data = data;
  job.blocks = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  job.end_block = job.blocks;
  {
    const std::lock_guard lock(mutex_);
    wanted_ = static_cast<int>(std::min<std::uint64_t>(job.blocks, os_threads_));
    busy_ = wanted_;
    job_ = &job;
    error_ = nullptr;
    ++generation_;
    // Threads are started when a launch first needs them: most kernels of a lesson are small.
    while (static_cast<int>(threads_.size()) < wanted_) {
      threads_.emplace_back([this, worker = static_cast<int>(threads_.size())] { work(worker); });
    }
  }
  work_there_.notify_all();
  bool cancelled = false;
  wait(job, stop, cancelled);
  if (cancelled) throw Cancelled();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void BlockPool::wait(LaunchJob& job, const std::function<bool()>& stop, bool& cancelled) {
  std::unique_lock lock(mutex_);
  const auto done = [this] { return busy_ == 0; };
  while (!work_done_.wait_for(lock, kAskInterval, done)) {
    if (cancelled || !stop) continue;
    lock.unlock();
    cancelled = stop();
    lock.lock();
    if (cancelled) job.end_block = 0;
  }
}

void BlockPool::work(int worker) {
  BlockRunner runner(options_);
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

void BlockPool::run_blocks(BlockRunner& runner, LaunchJob& job) {
  std::uint64_t block = 0;
  try {
    runner.begin(job);
    while (true) {
      block = job.next_block.fetch_add(1, std::memory_order_relaxed);
      if (block >= job.end_block.load(std::memory_order_relaxed)) return;
      runner.run(block);
    }
  } catch (...) {
    // Blocks are handed out in order, so every block before this one runs or has run: the lowest
    // that fails is the same every time.
    const std::lock_guard lock(mutex_);
    if (error_ == nullptr || block < error_block_) {
      error_ = std::current_exception();
      error_block_ = block;
    }
    job.end_block = std::min(job.end_block.load(), error_block_);
  }
}

}  // namespace tilestep::simt::emulated
