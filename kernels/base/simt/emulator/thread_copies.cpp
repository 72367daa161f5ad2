#include "kernels/base/simt/emulator/thread_copies.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/base/simt/emulator/async_engine.hpp"
#include "kernels/base/simt/emulator/block_runner.hpp"

namespace tilestep::simt::emulated {

void ThreadCopies::begin_block(int threads, std::uint64_t seed) {
  threads_ = threads;
  random_state_ = seed;
  used_ = false;
}

ThreadCopies::Queue& ThreadCopies::queue(int thread) {
  if (!used_) [[unlikely]] {
    used_ = true;
    queues_.resize(std::max(queues_.size(), static_cast<std::size_t>(threads_)));
    for (Queue& queue : queues_) {
      queue.copies.clear();
      queue.groups.clear();
      queue.landed = 0;
    }
  }
  return queues_[static_cast<std::size_t>(thread)];
}

void ThreadCopies::start(int thread, void* to, const void* from, int bytes, AsyncEngine* engine,
                         Location at) {
  Queue& mine = queue(thread);
  if (engine != nullptr) engine->copy_started(to, bytes, at);
  mine.copies.push_back(
      {static_cast<unsigned char*>(to), static_cast<const unsigned char*>(from), bytes});
  if (completion_ == Completion::earliest || completion_ == Completion::early_copies) {
    land(mine, mine.copies.size());
  }
  nudge(mine);
}

void ThreadCopies::land(Queue& queue, std::size_t upto) {
  for (; queue.landed < upto; ++queue.landed) {
    const Copy& copy = queue.copies[queue.landed];
    const auto bytes = static_cast<std::size_t>(copy.bytes);
    if (copy.from == nullptr) {
      std::memset(copy.to, 0, bytes);
    } else {
      std::memcpy(copy.to, copy.from, bytes);
    }
  }
}

// With `seeded`: perhaps the oldest copy under way is done just now.
void ThreadCopies::nudge(Queue& queue) {
  if (completion_ != Completion::seeded || split_mix(random_state_) % 2 == 0) return;
  land(queue, std::min(queue.landed + 1, queue.copies.size()));
}

void ThreadCopies::commit(int thread) {
  Queue& mine = queue(thread);
  mine.groups.push_back(mine.copies.size());
  nudge(mine);
}

void ThreadCopies::wait(int thread, int pending, AsyncEngine* engine, SharedRaces* races) {
  Queue& mine = queue(thread);
  nudge(mine);
  const auto kept = std::min(static_cast<std::size_t>(pending), mine.groups.size());
  if (kept == mine.groups.size()) return;
  const auto ended = mine.groups.end() - static_cast<std::ptrdiff_t>(kept);
  const std::size_t upto = *(ended - 1);
  land(mine, upto);
  if (races != nullptr) {
    for (std::size_t i = 0; i < upto; ++i) {
      races->copy_awaited(mine.copies[i].to, static_cast<std::size_t>(mine.copies[i].bytes));
    }
  }
  if (engine != nullptr) {
    for (std::size_t i = 0; i < upto; ++i) {
      engine->copy_awaited(mine.copies[i].to, mine.copies[i].bytes);
    }
    engine->copies_awaited();
  }
  mine.groups.erase(mine.groups.begin(), ended);
  for (std::size_t& group : mine.groups) group -= upto;
  mine.copies.erase(mine.copies.begin(), mine.copies.begin() + static_cast<std::ptrdiff_t>(upto));
  mine.landed -= upto;
}

}  // namespace tilestep::simt::emulated
