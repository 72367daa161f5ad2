#include "kernels/base/simt/async_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/base/simt/block_runner.hpp"

namespace tilestep::simt::emulated {

AsyncEngine& async() {
  return BlockRunner::current().async();
}

AsyncEngine::AsyncEngine(BlockRunner& runner, const EmulationOptions& options)
    : runner_(runner),
      completion_(options.completion),
      report_(options.report_unsafe),
      log_(options.log) {}

void AsyncEngine::begin_block(int threads, unsigned char* shared, std::size_t shared_bytes,
                              std::uint64_t seed) {
  active_ = true;
  ++block_;
  random_state_ = seed;
  threads_ = threads;
  stride_ = depth_component() + 1;
  shared_ = shared;
  shared_bytes_ = shared_bytes;
  known_.assign(stride_ * static_cast<std::size_t>(threads), 0);
  for (int thread = 0; thread < threads; ++thread) known(thread)[thread] = 1;
  granules_.resize(std::max(granules_.size(), shared_bytes / kGranule + 1));
  labels_.clear();
  barriers_.clear();
  named_.fill({});
  watches_.clear();
  sleeping_.assign(static_cast<std::size_t>(threads), {});
  copies_.clear();
  stores_.clear();
  pending_copies_.clear();
  storers_.clear();
  groups_.clear();
  groups_.resize(static_cast<std::size_t>((threads + kWarpgroup - 1) / kWarpgroup));
}

int AsyncEngine::me() const {
  return runner_.current_thread();
}

// ---- knowledge ----------------------------------------------------------------------------------

void AsyncEngine::join(Clock* into, const Clock* from) const {
  for (std::size_t i = 0; i < stride_; ++i) into[i] = std::max(into[i], from[i]);
}

void AsyncEngine::block_met() {
  Knowledge all(stride_);
  for (int thread = 0; thread < threads_; ++thread) join(all.data(), known(thread));
  for (int thread = 0; thread < threads_; ++thread) {
    std::copy(all.begin(), all.end(), known(thread));
    tick(thread);
  }
}

void AsyncEngine::lanes_met(int first_thread, unsigned mask) {
  Knowledge all(stride_);
  const auto for_all = [&](auto act) {
    for (int lane = 0; lane < 32; ++lane) {
      if ((mask >> lane & 1u) != 0) act(first_thread + lane);
    }
  };
  for_all([&](int thread) { join(all.data(), known(thread)); });
  for_all([&](int thread) {
    std::copy(all.begin(), all.end(), known(thread));
    tick(thread);
  });
}

bool AsyncEngine::knows(int thread, const Access& access) const {
  return access.thread == thread || known(thread)[access.thread] >= access.clock;
}

bool AsyncEngine::knows_fenced(int thread, const Access& access) const {
  return known(thread)[fence_of(access.thread)] >= access.clock;
}

void AsyncEngine::fence() {
  const int thread = me();
  step();
  known(thread)[fence_of(thread)] = known(thread)[thread];
  tick(thread);  // what this thread writes from now on is not fenced
  for (Barrier& barrier : barriers_) barrier.published |= barrier.owner == thread;
  nudge();
}

// ---- reports ------------------------------------------------------------------------------------

void AsyncEngine::unsafe(const std::string& what) const {
  if (report_) runner_.fail(what);
}

unsigned AsyncEngine::address_of(const void* memory) const {
  const auto* byte = static_cast<const unsigned char*>(memory);
  if (byte < shared_ || byte > shared_ + shared_bytes_) {
    runner_.fail("asks for the shared address of what is not in dynamic shared memory");
  }
  return kSharedBase + static_cast<unsigned>(byte - shared_);
}

void AsyncEngine::within(unsigned address, int bytes, const char* does, Location at) const {
  if (address >= kSharedBase && address - kSharedBase <= shared_bytes_ &&
      static_cast<std::size_t>(bytes) <= shared_bytes_ - (address - kSharedBase)) {
    return;
  }
  runner_.fail(
      fmt::format("{} {} bytes of shared memory from address {} on in {}, but the block has "
                  "{} bytes (addresses {}–{})",
                  does, bytes, address, line_of(at), shared_bytes_, kSharedBase,
                  kSharedBase + shared_bytes_ - 1));
}

void* AsyncEngine::at(unsigned address, std::size_t bytes, std::size_t alignment,
                      const char* name) {
  if (address < kSharedBase || address - kSharedBase > shared_bytes_ ||
      bytes > shared_bytes_ - (address - kSharedBase)) {
    runner_.fail(fmt::format(
        "takes {} bytes as {} from shared address {} on, but the block has {} "
        "bytes (addresses {}–{})",
        bytes, name, address, shared_bytes_, kSharedBase, kSharedBase + shared_bytes_ - 1));
  }
  if (address % alignment != 0) {
    runner_.fail(fmt::format("takes {} from shared address {} on, which is no multiple of {}", name,
                             address, alignment));
  }
  return shared_ + (address - kSharedBase);
}

void AsyncEngine::name(unsigned address, int bytes, const char* name, int number) {
  const unsigned end = address + static_cast<unsigned>(bytes);
  for (const Label& label : labels_) {
    if (label.begin == address && label.end == end) return;
  }
  labels_.push_back({address, end, name, number});
}

/// "stage 2, byte 48", or the byte of shared memory where nobody has named it.
std::string AsyncEngine::place(unsigned address) const {
  for (const Label& label : labels_) {
    if (address < label.begin || address >= label.end) continue;
    return fmt::format("{} {}, byte {}", label.name, label.number, address - label.begin);
  }
  return fmt::format("byte {} of shared memory", address - kSharedBase);
}

std::string AsyncEngine::barrier_name(const Barrier& barrier) const {
  for (const Label& label : labels_) {
    if (label.begin == barrier.address)
      return fmt::format("mbarrier {} {}", label.name, label.number);
  }
  return fmt::format("the mbarrier at byte {} of shared memory", barrier.address - kSharedBase);
}

// ---- mbarriers ----------------------------------------------------------------------------------

void AsyncEngine::barrier_init(unsigned address, int arrivals, Location at) {
  within(address, 8, "makes an mbarrier of", at);
  if (address % 8 != 0) {
    runner_.fail(
        fmt::format("makes an mbarrier at shared address {} in {}; allowed: multiples of 8",
                    address, line_of(at)));
  }
  if (arrivals < 1 || arrivals >= 1 << 20) {
    runner_.fail(fmt::format("makes an mbarrier of {} arrivals in {} (allowed: 1–1048575)",
                             arrivals, line_of(at)));
  }
  auto found = std::find_if(barriers_.begin(), barriers_.end(),
                            [&](const Barrier& b) { return b.address == address; });
  if (found == barriers_.end()) {
    if (barriers_.size() == kMostBarriers) {
      runner_.fail(fmt::format("makes more mbarriers than the {} that the emulation has",
                               static_cast<int>(kMostBarriers)));
    }
    found = barriers_.insert(barriers_.end(), Barrier{});
  }
  step();
  const Clock phase = found->phase;  // one that is made anew goes on counting
  std::vector<Clock> depths = std::move(found->depths);
  depths.resize(phase + phase % 2, known(me())[depth_component()]);
  *found = {.address = address,
            .arrivals = arrivals,
            .pending = arrivals,
            .phase = phase + phase % 2,
            .owner = me(),
            .since = known(me())[me()],
            .gathering = Knowledge(stride_),
            .done = Knowledge(stride_),
            .depths = std::move(depths)};
  tick(me());
}

void AsyncEngine::publish_barriers() {
  step();
  for (Barrier& barrier : barriers_) barrier.published |= barrier.owner == me();
}

// The barrier at an address, which the calling thread must know to be there.
int AsyncEngine::used(unsigned address, Location at) {
  for (std::size_t i = 0; i < barriers_.size(); ++i) {
    const Barrier& barrier = barriers_[i];
    if (barrier.address != address) continue;
    if (!knows(me(), {barrier.owner, barrier.since, at})) {
      unsafe(
          fmt::format("uses {} in {}, but nothing between that and its barrier_init lets this "
                      "thread know of it: __syncthreads() is missing",
                      barrier_name(barrier), line_of(at)));
    }
    return static_cast<int>(i);
  }
  runner_.fail(
      fmt::format("uses an mbarrier at shared address {} in {}, where barrier_init has made "
                  "none yet",
                  address, line_of(at)));
}

void AsyncEngine::arrive(unsigned address, int expected_bytes, Location at) {
  step();
  const int index = used(address, at);
  Barrier& barrier = barriers_[static_cast<std::size_t>(index)];
  // The copies of a phase come at the latest before somebody arrives for the next one.
  for (std::size_t i = 0; barrier.pending == 0 && i < pending_copies_.size();) {
    const std::size_t before = pending_copies_.size();
    const bool mine = copies_[static_cast<std::size_t>(pending_copies_[i])].barrier == index;
    if (mine) land_pending(i);
    if (pending_copies_.size() == before) ++i;
  }
  if (barrier.pending == 0) {
    runner_.fail(
        fmt::format("arrives at {} in {}, all of whose {} arrivals of the phase have come; "
                    "the phase waits for {} bytes",
                    barrier_name(barrier), line_of(at), barrier.arrivals, barrier.bytes));
  }
  barrier.bytes += expected_bytes;
  join(barrier.gathering.data(), known(me()));
  tick(me());
  --barrier.pending;
  end_phase(index);
  nudge();
}

void AsyncEngine::expect(unsigned address, int bytes, Location at) {
  step();
  barriers_[static_cast<std::size_t>(used(address, at))].bytes += bytes;
}

// Ends the phase if nothing is left to come. Whether it did.
bool AsyncEngine::end_phase(int index) {
  Barrier& barrier = barriers_[static_cast<std::size_t>(index)];
  if (barrier.pending > 0 || barrier.bytes != 0) return false;
  join(barrier.done.data(), barrier.gathering.data());
  barrier.depths.push_back(barrier.done[depth_component()]);
  if (log_ != nullptr) log_phase(barrier);
  ++barrier.phase;
  barrier.done[barrier_of(index)] = barrier.phase;
  std::fill(barrier.gathering.begin(), barrier.gathering.end(), 0);
  barrier.pending = barrier.arrivals;
  wake(barrier.sleepers);
  wake(barrier.watchers);
  return true;
}

void AsyncEngine::name_in(AsyncEvent& event, const Barrier& barrier) const {
  event.block = runner_.block();
  event.barrier_address = barrier.address;
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

void AsyncEngine::wait(unsigned address, unsigned parity, Location at) {
  nudge();
  step();
  const auto index = static_cast<std::size_t>(used(address, at));
  while (barriers_[index].phase % 2 == parity) {
    barriers_[index].sleepers.push_back(me());
    sleep(Sleep::barrier, static_cast<int>(index), parity, at);
  }
  join(known(me()), barriers_[index].done.data());
}

// How many phases this thread has seen of the barrier by watching.
AsyncEngine::Watch& AsyncEngine::watch_of(int thread, int barrier) {
  const auto found = std::find_if(watches_.begin(), watches_.end(), [&](const Watch& watch) {
    return watch.thread == thread && watch.barrier == barrier;
  });
  return found != watches_.end() ? *found : watches_.emplace_back(Watch{thread, barrier, 0});
}

// Phase after phase, however late the thread comes: one that polls on a GPU comes in time.
bool AsyncEngine::watch(unsigned address, unsigned parity, Location at) {
  const int index = used(address, at);
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
  return any;
}

void AsyncEngine::named_barrier(int id, int threads, bool waits, Location at) {
  if (id < 1 || id > 15 || threads < 32 || threads % 32 != 0 || threads > threads_) {
    runner_.fail(
        fmt::format("comes to named barrier {} of {} threads in {} (allowed: 1–15, and "
                    "multiples of 32 up to the block's {})",
                    id, threads, line_of(at), threads_));
  }
  NamedBarrier& barrier = named_[static_cast<std::size_t>(id)];
  if (barrier.arrived > 0 && barrier.threads != threads) {
    runner_.fail(
        fmt::format("comes to named barrier {} of {} threads in {}, but others came to it "
                    "as one of {}",
                    id, threads, line_of(at), barrier.threads));
  }
  step();
  barrier.threads = threads;
  if (barrier.gathering.empty()) barrier.gathering.resize(stride_);
  join(barrier.gathering.data(), known(me()));
  tick(me());
  const bool last = ++barrier.arrived == threads;
  if (last) {
    if (waits) join(known(me()), barrier.gathering.data());
    for (const int sleeper : barrier.sleepers) join(known(sleeper), barrier.gathering.data());
    barrier.arrived = 0;
    std::fill(barrier.gathering.begin(), barrier.gathering.end(), 0);
    wake(barrier.sleepers);
  } else if (waits) {
    barrier.sleepers.push_back(me());
    sleep(Sleep::named, id, 0, at);
  }
  nudge();
}

// ---- who waits ----------------------------------------------------------------------------------

void AsyncEngine::sleep(Sleep kind, int index, unsigned parity, Location at) {
  const auto thread = static_cast<std::size_t>(me());
  sleeping_[thread] = {kind, index, parity};
  runner_.sleep(at);
  sleeping_[thread].kind = Sleep::none;
}

void AsyncEngine::wake(std::vector<int>& sleepers) {
  if (sleepers.empty()) return;
  runner_.wake(sleepers);
  sleepers.clear();
}

// Nothing else can run: so what somebody waits for has to happen now. One thing at a time, since those
// who wake may make another impossible.
bool AsyncEngine::advance() {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    Warpgroup& group = groups_[i];
    if (group.sleepers.empty()) continue;
    Clock wanted = 0;
    for (const int thread : group.sleepers) {
      wanted =
          std::max(wanted, group.threads[static_cast<std::size_t>(thread % kWarpgroup)].awaited);
    }
    const Clock before = group.done;
    run_products(static_cast<int>(i), wanted);
    if (group.done != before) return true;
  }
  for (Storer& storer : storers_) {
    if (!storer.asleep || storer.done >= storer.awaited) continue;
    finish_stores(storer, storer.awaited);
    return true;
  }
  for (std::size_t i = 0; i < pending_copies_.size(); ++i) {
    const Copy& copy = copies_[static_cast<std::size_t>(pending_copies_[i])];
    if (barriers_[static_cast<std::size_t>(copy.barrier)].sleepers.empty()) continue;
    land_pending(i);
    return true;
  }
  return false;
}

// With `seeded`: perhaps the hardware gets on with something just now.
void AsyncEngine::nudge() {
  if (completion_ != Completion::seeded || random() % 2 == 0) return;
  const std::uint64_t choice = random() % 3;
  if (choice == 0) {
    const auto i = static_cast<std::size_t>(random() % groups_.size());
    run_products(static_cast<int>(i), groups_[i].done + 1);
  } else if (choice == 1 && !storers_.empty()) {
    Storer& storer = storers_[random() % storers_.size()];
    if (storer.done < storer.started) finish_stores(storer, storer.done + 1);
  } else if (!pending_copies_.empty()) {
    land_pending(random() % pending_copies_.size());
  }
}

std::uint64_t AsyncEngine::random() {
  return split_mix(random_state_);
}

std::string AsyncEngine::why_asleep(int thread) const {
  const Sleeper& sleeper = sleeping_[static_cast<std::size_t>(thread)];
  const auto index = static_cast<std::size_t>(sleeper.index);
  switch (sleeper.kind) {
    case Sleep::barrier: {
      const Barrier& barrier = barriers_[index];
      return fmt::format(
          "{} (phase {}, parity {}), but the phase waits for {} of {} arrivals and {} "
          "bytes, and no copy to it is under way",
          barrier_name(barrier), barrier.phase, sleeper.parity, barrier.pending, barrier.arrivals,
          barrier.bytes);
    }
    case Sleep::named:
      return fmt::format("named barrier {}, but {} of its {} threads have come", sleeper.index,
                         named_[index].arrived, named_[index].threads);
    case Sleep::products:
      return "wgmma_wait, but not all 128 threads of its warpgroup have come to that wgmma";
    default:
      return "store_wait";
  }
}

std::string AsyncEngine::unfinished() const {
  for (const Copy& copy : copies_) {
    Clock seen = 0;
    for (int thread = 0; thread < threads_; ++thread) {
      seen = std::max(seen, known(thread)[barrier_of(copy.barrier)]);
    }
    const bool landed = copy.landed_rows == copy.map.box_rows;
    if (landed && *std::max_element(copy.row_phase.begin(), copy.row_phase.end()) <= seen) continue;
    return fmt::format(
        "ends while the copy to {} of {} may still be under way: no thread has waited "
        "for {} since",
        place(copy.to), line_of(copy.at),
        barrier_name(barriers_[static_cast<std::size_t>(copy.barrier)]));
  }
  return "";
}

}  // namespace tilestep::simt::emulated
