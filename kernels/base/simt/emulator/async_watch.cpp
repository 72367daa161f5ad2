// Who looks on: threads that watch barriers, and the log.

#include <algorithm>
#include <utility>

#include "kernels/base/simt/emulator/async_engine.hpp"
#include "kernels/base/simt/emulator/block_runner.hpp"

namespace tilestep::simt::emulated {

// How many phases this thread has seen of the barrier by watching.
AsyncEngine::Watch& AsyncEngine::watch_of(int thread, int barrier) {
  const auto found = std::find_if(watches_.begin(), watches_.end(), [&](const Watch& watch) {
    return watch.thread == thread && watch.barrier == barrier;
  });
  return found != watches_.end() ? *found : watches_.emplace_back(Watch{thread, barrier, 0});
}

// Phase after phase, however late the thread comes: one that polls on a GPU comes in time.
bool AsyncEngine::watch(unsigned address, unsigned parity, Location at) {
  const int index = used(here(address), at);
  Barrier& barrier = barriers_[static_cast<std::size_t>(index)];
  const Clock seen = watch_of(me(), index).seen;
  if (seen % 2 == parity) {
    if (barrier.phase == seen) {
      barrier.watchers.push_back(me());
      sleep(Sleep::watch, index, parity, at);
    }
    if (barriers_[static_cast<std::size_t>(index)].phase == seen) return false;
    watch_of(me(), index).seen = seen + 1;
    deepen(me(), barriers_[static_cast<std::size_t>(index)].depths[seen]);
  }
  return true;
}

bool AsyncEngine::end_watches() {
  bool any = false;
  for (Barrier& barrier : barriers_) {
    any |= !barrier.watchers.empty();
    wake(barrier.watchers);
  }
  return any || end_patience();
}

bool AsyncEngine::wait_at_most(unsigned address, unsigned parity, Location at) {
  if (report_) {
    wait(address, parity, at);
    return true;
  }
  nudge();
  step();
  const auto index = static_cast<std::size_t>(used(here(address), at));
  if (barriers_[index].phase % 2 != parity) {
    join(known(me()), barriers_[index].done.data());
    return true;
  }
  barriers_[index].sleepers.push_back(me());
  sleep(Sleep::patient, static_cast<int>(index), parity, at);
  return !sleeping_[static_cast<std::size_t>(me())].gave_up;
}

bool AsyncEngine::end_patience() {
  bool any = false;
  for (Barrier& barrier : barriers_) {
    std::vector<int> patient;
    for (const int thread : barrier.sleepers) {
      Sleeper& sleeper = sleeping_[static_cast<std::size_t>(thread)];
      if (sleeper.kind != Sleep::patient) continue;
      sleeper.gave_up = true;
      patient.push_back(thread);
    }
    std::erase_if(barrier.sleepers, [this](int thread) {
      return sleeping_[static_cast<std::size_t>(thread)].kind == Sleep::patient;
    });
    any |= !patient.empty();
    wake(patient);
  }
  return any;
}

// ---- the log ------------------------------------------------------------------------------------

void AsyncEngine::name_in(AsyncEvent& event, const Barrier& barrier) const {
  event.block = runner_.block(rank_at(barrier.address));
  event.barrier_address = barrier.address % kBlockSpan;
  event.phase = barrier.phase;
  for (const Label& label : labels_) {
    if (label.begin != barrier.address) continue;
    event.barrier = label.name;
    event.number = label.number;
    return;
  }
}

void AsyncEngine::log_phase(const Barrier& barrier) const {
  AsyncEvent event{.kind = AsyncEvent::Kind::phase_ended, .depth = barrier.depths.back()};
  name_in(event, barrier);
  log_->push_back(std::move(event));
}

void AsyncEngine::log_landed(const Copy& copy, unsigned address, int bytes) const {
  const Barrier& barrier = barriers_[static_cast<std::size_t>(copy.barrier)];
  AsyncEvent event{.kind = AsyncEvent::Kind::landed,
                   .depth = copy.depth + 1,
                   .source_block = runner_.block(rank_of(copy.thread)),
                   .thread = copy.thread % block_threads_,
                   .address = address % kBlockSpan,
                   .bytes = bytes,
                   .pending_bytes = barrier.bytes,
                   .pending_arrivals = barrier.pending};
  name_in(event, barrier);
  log_->push_back(std::move(event));
}

void AsyncEngine::log_product(int group, const Operation& operation) const {
  const std::uint64_t block = runner_.block(group / block_groups_);
  log_->push_back({.kind = AsyncEvent::Kind::product_done,
                   .block = block,
                   .depth = operation.depth + 1,
                   .source_block = block,
                   .thread = group % block_groups_ * kWarpgroup,
                   .n = operation.product.n,
                   .product = groups_[static_cast<std::size_t>(group)].done - 1});
}

}  // namespace tilestep::simt::emulated
