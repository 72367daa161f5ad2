#include "kernels/base/simt/emulator/async_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/base/simt/emulator/block_runner.hpp"

namespace tilestep::simt::emulated {

AsyncEngine& async() {
  return BlockRunner::current().async();
}

AsyncEngine::AsyncEngine(BlockRunner& runner, const int& current, const EmulationOptions& options)
    : runner_(runner),
      current_(current),
      completion_(options.completion),
      report_(options.report_unsafe),
      log_(options.log) {}

void AsyncEngine::begin_block(const AsyncShape& shape) {
  active_ = true;
  ++block_;
  random_state_ = shape.seed;
  block_threads_ = shape.threads;
  blocks_ = shape.blocks;
  threads_ = shape.threads * shape.blocks;
  block_groups_ = (shape.threads + kWarpgroup - 1) / kWarpgroup;
  stride_ = depth_component() + 1;
  shared_ = shape.shared;
  shared_bytes_ = shape.shared_bytes;
  shared_stride_ = shape.shared_stride;
  const auto threads = static_cast<std::size_t>(threads_);
  const auto blocks = static_cast<std::size_t>(blocks_);
  known_.assign(stride_ * threads, 0);
  for (int thread = 0; thread < threads_; ++thread) known(thread)[thread] = 1;
  block_granules_ = shared_bytes_ / kGranule + 1;
  granules_.resize(std::max(granules_.size(), block_granules_ * blocks));
  labels_.clear();
  barriers_.clear();
  named_.assign(16 * blocks, {});
  cluster_ = {.gathering = Knowledge(stride_)};
  visits_.assign(blocks, {});
  watches_.clear();
  sleeping_.assign(threads, {});
  copies_.clear();
  free_copies_.clear();
  stores_.clear();
  done_stores_ = 0;
  pending_copies_.clear();
  storers_.clear();
  groups_.clear();
  groups_.resize(static_cast<std::size_t>(block_groups_) * blocks);
}

// ---- knowledge ----------------------------------------------------------------------------------

// Unchecked: with a check at each number this is a fifth of an emulated GEMM.
__attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined"))) void
AsyncEngine::join(Clock* into, const Clock* from) const {
  for (std::size_t i = 0; i < stride_; ++i) into[i] = from[i] > into[i] ? from[i] : into[i];
}

void AsyncEngine::block_met(int rank) {
  Knowledge all(stride_);
  const int first = rank * block_threads_;
  for (int i = 0; i < block_threads_; ++i) join(all.data(), known(first + i));
  for (int thread = first; thread < first + block_threads_; ++thread) {
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

void AsyncEngine::report(const std::string& what) const {
  runner_.fail(what);
}

unsigned AsyncEngine::address_of(const void* memory) const {
  const auto* byte = static_cast<const unsigned char*>(memory);
  const unsigned char* mine = shared_ + static_cast<std::size_t>(rank()) * shared_stride_;
  if (byte < mine || byte > mine + shared_bytes_) {
    runner_.fail("takes the shared address of something outside its dynamic shared memory");
  }
  return kSharedBase + static_cast<unsigned>(byte - mine);
}

// Of what lies in the shared memory of any block of the cluster.
unsigned AsyncEngine::window_address(const void* memory) const {
  const auto offset = static_cast<std::size_t>(static_cast<const unsigned char*>(memory) - shared_);
  if (blocks_ == 1) return kSharedBase + static_cast<unsigned>(offset);
  return in_block(kSharedBase + static_cast<unsigned>(offset % shared_stride_),
                  static_cast<int>(offset / shared_stride_));
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
    runner_.fail(fmt::format("takes {} from shared address {} on, which is not a multiple of {}",
                             name, address, alignment));
  }
  return memory(here(address));
}

void AsyncEngine::name(unsigned local, int bytes, const char* name, int number) {
  const unsigned address = here(local);
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
    return fmt::format("{} {}, byte {}{}", label.name, label.number, address - label.begin,
                       of_block(rank_at(address)));
  }
  return fmt::format("byte {} of shared memory{}", address % kBlockSpan - kSharedBase,
                     of_block(rank_at(address)));
}

/// " of block 1 of the cluster"; nothing where a block is alone.
std::string AsyncEngine::of_block(int rank) const {
  return blocks_ == 1 ? "" : fmt::format(" of block {} of the cluster", rank);
}

std::string AsyncEngine::who(int thread) const {
  return fmt::format("thread {}{}", thread % block_threads_, of_block(rank_of(thread)));
}

std::string AsyncEngine::barrier_name(const Barrier& barrier) const {
  for (const Label& label : labels_) {
    if (label.begin == barrier.address)
      return fmt::format("mbarrier {} {}{}", label.name, label.number,
                         of_block(rank_at(barrier.address)));
  }
  return fmt::format("the mbarrier at byte {} of shared memory{}",
                     barrier.address % kBlockSpan - kSharedBase,
                     of_block(rank_at(barrier.address)));
}

// ---- mbarriers ----------------------------------------------------------------------------------

void AsyncEngine::barrier_init(unsigned local, int arrivals, Location at) {
  within(local, 8, "makes an mbarrier of", at);
  if (local % 8 != 0) {
    runner_.fail(
        fmt::format("makes an mbarrier at shared address {} in {}; allowed: multiples of 8", local,
                    line_of(at)));
  }
  const unsigned address = here(local);
  if (arrivals < 1 || arrivals >= 1 << 20) {
    runner_.fail(fmt::format("makes an mbarrier of {} arrivals in {} (allowed: 1–1048575)",
                             arrivals, line_of(at)));
  }
  auto found = std::find_if(barriers_.begin(), barriers_.end(),
                            [&](const Barrier& b) { return b.address == address; });
  if (found == barriers_.end()) {
    if (barriers_.size() == static_cast<std::size_t>(kMostBarriers * blocks_)) {
      runner_.fail(fmt::format("makes more mbarriers than the {} that the emulation has of a block",
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
      unsafe([&] {
        return fmt::format(
            "uses {} in {}, but nothing after its barrier_init makes it visible to this thread: {} "
            "is missing",
            barrier_name(barrier), line_of(at),
            rank_at(address) == rank() ? "__syncthreads()" : "cluster_barrier()");
      });
    }
    if (rank_at(address) != rank() && !barrier.published) {
      unsafe([&] {
        return fmt::format(
            "uses {} in {}, which the cluster was not told of: publish_barriers() after "
            "its barrier_init is missing",
            barrier_name(barrier), line_of(at));
      });
    }
    return static_cast<int>(i);
  }
  runner_.fail(
      fmt::format("uses an mbarrier at shared address {}{} in {}, where barrier_init has made "
                  "none yet",
                  address % kBlockSpan, of_block(rank_at(address)), line_of(at)));
}

void AsyncEngine::arrive(unsigned address, int expected_bytes, Location at) {
  step();
  arrive_there(used(here(address), at), expected_bytes, at);
}

void AsyncEngine::arrive_there(int index, int expected_bytes, Location at) {
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
        fmt::format("arrives at {} in {}, though all {} arrivals of the phase are in; "
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
  barriers_[static_cast<std::size_t>(used(here(address), at))].bytes += bytes;
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
  // Who waits is told of this end, whatever phases end before it runs on.
  for (const int sleeper : barrier.sleepers) join(known(sleeper), barrier.done.data());
  wake(barrier.sleepers);
  wake(barrier.watchers);
  return true;
}

void AsyncEngine::wait(unsigned address, unsigned parity, Location at) {
  nudge();
  step();
  const auto index = static_cast<std::size_t>(used(here(address), at));
  if (barriers_[index].phase % 2 != parity) {
    join(known(me()), barriers_[index].done.data());
  } else {
    barriers_[index].sleepers.push_back(me());
    sleep(Sleep::barrier, static_cast<int>(index), parity, at);
  }
}

void AsyncEngine::named_barrier(int id, int threads, bool waits, Location at) {
  if (id < 1 || id > 15 || threads < 32 || threads % 32 != 0 || threads > block_threads_) {
    runner_.fail(
        fmt::format("reaches named barrier {} of {} threads in {} (allowed: 1–15, and "
                    "multiples of 32 up to the block's {})",
                    id, threads, line_of(at), block_threads_));
  }
  const int index = rank() * 16 + id;
  NamedBarrier& barrier = named_[static_cast<std::size_t>(index)];
  if (barrier.arrived > 0 && barrier.threads != threads) {
    runner_.fail(fmt::format(
        "reaches named barrier {} of {} threads in {}, but others reached it as one of {}", id,
        threads, line_of(at), barrier.threads));
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
    sleep(Sleep::named, index, 0, at);
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
          std::max(wanted, group.threads[static_cast<std::size_t>(place_in_group(thread))].awaited);
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
    case Sleep::patient:
    case Sleep::barrier: {
      const Barrier& barrier = barriers_[index];
      return fmt::format(
          "{} (phase {}, parity {}), but the phase waits for {} of {} arrivals and {} "
          "bytes, and no copy to it is under way",
          barrier_name(barrier), barrier.phase, sleeper.parity, barrier.pending, barrier.arrivals,
          barrier.bytes);
    }
    case Sleep::named:
      return fmt::format("named barrier {}, but {} of its {} threads have arrived", index % 16,
                         named_[index].arrived, named_[index].threads);
    case Sleep::cluster:
      return fmt::format("cluster_barrier(), but {} of the cluster's {} threads have arrived",
                         cluster_.arrived, threads_);
    case Sleep::products:
      return "wgmma_wait, but not all 128 threads of its warpgroup have reached that wgmma";
    default:
      return "store_wait";
  }
}

}  // namespace tilestep::simt::emulated
