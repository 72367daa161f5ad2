// What passes between the blocks of a cluster, and what must be over when a block ends.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernels/base/simt/emulator/async_engine.hpp"
#include "kernels/base/simt/emulator/block_runner.hpp"

namespace tilestep::simt::emulated {

// The rank that a word names, which must be of the cluster.
int AsyncEngine::block_of(unsigned block, const char* does, Location at) const {
  if (block < static_cast<unsigned>(blocks_)) return static_cast<int>(block);
  runner_.fail(fmt::format(
      "{} in {} at block {} of its cluster, which has {} (allowed: 0–{}; Launch::cluster "
      "says how many)",
      does, line_of(at), block, blocks_, blocks_ - 1));
}

// A thread comes to the shared memory of another block, which must not have ended before or meanwhile.
void AsyncEngine::visit(int rank, const char* does, Location at) {
  if (runner_.ended(rank) == block_threads_) {
    unsafe([&] {
      return fmt::format(
          "{} in {} at block {} of its cluster, which has ended: a block must not end while others "
          "access its shared memory; cluster_barrier() before its end is missing",
          does, line_of(at), rank);
    });
  }
  std::vector<Visit>& visits = visits_[static_cast<std::size_t>(rank)];
  const Visit mine{{me(), known(me())[me()], at}, does};
  const auto known = std::find_if(visits.begin(), visits.end(),
                                  [&](const Visit& visit) { return visit.access.thread == me(); });
  if (known == visits.end()) {
    visits.push_back(mine);
  } else {
    *known = mine;
  }
}

void* AsyncEngine::remote(unsigned address, unsigned block, std::size_t bytes,
                          std::size_t alignment, const char* name, Location at) {
  (void)this->at(address, bytes, alignment, name);  // the blocks have memory of one size
  return memory(in_block(address, block_of(block, "looks", at)));
}

void AsyncEngine::arrive_at(unsigned address, unsigned block, Location at) {
  step();
  const int there = block_of(block, "arrives", at);
  if (there != rank()) visit(there, "arrives", at);
  arrive_there(used(in_block(address, there), at), 0, at);
}

// The bytes land at once: the phase that they count for may still end late. Who waits for it learns of all that
// this thread did before, which is more than the hardware promises.
void AsyncEngine::store_at(unsigned address, unsigned barrier, unsigned block, const void* value,
                           Location at) {
  step();
  constexpr int kBytes = 8;
  void* there = remote(address, block, kBytes, kBytes, "a number of 8 bytes", at);
  writes(there, kBytes, at);
  std::memcpy(there, value, kBytes);
  const int index = used(in_block(barrier, block_of(block, "stores", at)), at);
  Barrier& counts = barriers_[static_cast<std::size_t>(index)];
  counts.bytes -= kBytes;
  join(counts.gathering.data(), known(me()));
  tick(me());
  end_phase(index);
  nudge();
}

void AsyncEngine::cluster_barrier(Location at) {
  step();
  join(cluster_.gathering.data(), known(me()));
  tick(me());
  ++cluster_.arrived;
  cluster_.sleepers.push_back(me());
  if (!end_cluster_barrier(0)) sleep(Sleep::cluster, 0, 0, at);
  nudge();
}

// Ends it when all have come that have not ended, of whom `leaving` are about to. Whether it did.
bool AsyncEngine::end_cluster_barrier(int leaving) {
  int ended = leaving;
  for (int rank = 0; rank < blocks_; ++rank) ended += runner_.ended(rank);
  if (cluster_.arrived == 0 || cluster_.arrived + ended < threads_) return false;
  std::vector<int> sleepers;
  for (const int thread : cluster_.sleepers) {
    join(known(thread), cluster_.gathering.data());
    if (thread != me()) sleepers.push_back(thread);
  }
  cluster_.arrived = 0;
  cluster_.sleepers.clear();
  std::fill(cluster_.gathering.begin(), cluster_.gathering.end(), 0);
  wake(sleepers);
  return true;
}

// The block's last thread ends: copies to it must have been waited for, and what threads of other blocks
// did there must be known to one of its own.
void AsyncEngine::block_ended(int rank) const {
  const int first = rank * block_threads_;
  const auto most_known = [&](std::size_t component) {
    Clock most = 0;
    for (int i = 0; i < block_threads_; ++i) most = std::max(most, known(first + i)[component]);
    return most;
  };
  const auto report = [&](const std::string& what) {
    if (!report_) return;
    throw KernelFault(fmt::format("{} {}", runner_.block_position(rank), what), {});
  };
  for (const Copy& copy : copies_) {
    if (rank_at(copy.to) != rank || (copy.granules == 0 && copy.landed())) continue;
    if (copy.landed() && *std::max_element(copy.row_phase.begin(), copy.row_phase.end()) <=
                             most_known(barrier_of(copy.barrier))) {
      continue;
    }
    report(
        fmt::format("ends while the copy to {} of {} may still be under way: no thread has waited "
                    "for {} since",
                    place(copy.to), line_of(copy.at),
                    barrier_name(barriers_[static_cast<std::size_t>(copy.barrier)])));
  }
  for (const Visit& visit : visits_[static_cast<std::size_t>(rank)]) {
    const auto thread = static_cast<std::size_t>(visit.access.thread);
    if (most_known(thread) >= visit.access.clock) continue;
    report(
        fmt::format("ends, and {} {} in {} at its shared memory: a block must not end while others "
                    "access it; cluster_barrier() before its end is missing",
                    who(visit.access.thread), visit.does, line_of(visit.access.at)));
  }
}

}  // namespace tilestep::simt::emulated
