// The shadow of shared memory: who may use 16 bytes of it, and who must have waited for what first.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernels/base/simt/emulator/async_engine.hpp"
#include "kernels/base/simt/emulator/block_runner.hpp"

namespace tilestep::simt::emulated {

AsyncEngine::Granule& AsyncEngine::granule(unsigned address) {
  Granule& g = granules_[address / kBlockSpan * block_granules_ +
                         (address % kBlockSpan - kSharedBase) / kGranule];
  if (g.block != block_) {
    g.block = block_;
    g.copy = g.store = kNone;
    g.stale_kept = false;
    g.products.fill(0);
    g.writers.clear();
    g.readers.clear();
  }
  return g;
}

bool AsyncEngine::knows_row(int thread, const Copy& copy, int row) const {
  return row < copy.landed_rows &&
         known(thread)[barrier_of(copy.barrier)] >= copy.row_phase[static_cast<std::size_t>(row)];
}

bool AsyncEngine::knows_products(int thread, int group, Clock number) const {
  const int warps = (threads_ + 31) / 32;
  const int first = first_thread(group) / 32;
  for (int warp = first; warp < std::min(first + 4, warps); ++warp) {
    if (known(thread)[warp_of(warp)] < number) return false;
  }
  return true;
}

bool AsyncEngine::knows_store(int thread, const Store& store) const {
  return known(thread)[storer_of(store.storer)] >= store.number;
}

// The copy that brought these bytes must be known to have ended.
void AsyncEngine::check_copied(const Granule& g, unsigned address, const char* does,
                               Location at) const {
  if (g.copy == kNone) return;
  const Copy& copy = copies_[static_cast<std::size_t>(g.copy)];
  if (knows_row(me(), copy, g.copy_row)) return;
  const Barrier& barrier = barriers_[static_cast<std::size_t>(copy.barrier)];
  unsafe([&] {
    return fmt::format(
        "{} {} in {}, where the copy of {} may still be under way: this thread does not know that "
        "the phase of {} with those bytes has ended",
        does, place(address), line_of(at), line_of(copy.at), barrier_name(barrier));
  });
}

// Products and stores that read these bytes must be known to have done so.
void AsyncEngine::check_released(const Granule& g, unsigned address, const char* does,
                                 Location at) const {
  for (int in_block = 0; in_block < block_groups_; ++in_block) {
    const Clock number = g.products[static_cast<std::size_t>(in_block)];
    const int group = rank_at(address) * block_groups_ + in_block;
    if (number == 0 || knows_products(me(), group, number)) continue;
    const Warpgroup& reader = groups_[static_cast<std::size_t>(group)];
    const Location reads = number <= reader.done ? reader.past[number - 1].at
                                                 : reader.operations[number - 1 - reader.done].at;
    unsafe([&] {
      return fmt::format(
          "{} {} in {}, which the wgmma of {} by warpgroup {} may still read: its wait, or a "
          "signal of it to this thread, is missing",
          does, place(address), line_of(at), line_of(reads), in_block);
    });
  }
  if (g.store == kNone) return;
  const Store& store = stores_[static_cast<std::size_t>(g.store)];
  if (knows_store(me(), store)) return;
  unsafe([&] {
    return fmt::format(
        "{} {} in {}, which the store of {} may still read: its store_wait, or a signal of it to "
        "this thread, is missing",
        does, place(address), line_of(at), line_of(store.at));
  });
}

// What was written by ordinary stores must be fenced before the async proxy comes.
void AsyncEngine::check_fenced(const Granule& g, unsigned address, const char* does,
                               Location at) const {
  for (const Access& writer : g.writers) {
    if (knows_fenced(me(), writer)) continue;
    unsafe([&] {
      return fmt::format(
          "{} {} in {}, which {} has written in {} by {}: {}", does, place(address), line_of(at),
          who(writer.thread), line_of(writer.at), writer.copies ? "cp_async" : "an ordinary store",
          writer.clock == kUnderWay ? "its cp_async_wait, and publish_to_async_proxy() "
                                      "after that, are missing"
          : knows(me(), writer)     ? "its publish_to_async_proxy() after that is missing"
                                    : "nothing tells this thread that it is fenced");
    });
  }
}

AsyncEngine::Access AsyncEngine::access_to(unsigned address, int bytes, Location at) const {
  return {.thread = me(),
          .clock = known(me())[me()],
          .at = at,
          .bytes = ((1u << bytes) - 1) << (address - kSharedBase) % kGranule};
}

// The newest access of a thread to the same bytes stands for all of them. Where nobody asks which bytes,
// to the same granule.
void AsyncEngine::keep(std::vector<Access>& accesses, Access access) const {
  if (blocks_ == 1 && !access.copies) access.bytes = 0xFFFF;
  for (Access& other : accesses) {
    if (other.thread != access.thread || other.bytes != access.bytes) continue;
    other = access;
    return;
  }
  accesses.push_back(access);
}

// Ordinary accesses of threads of different blocks must be known to each other.
void AsyncEngine::check_others(const std::vector<Access>& others, const Access& mine,
                               unsigned address, const char* does, const char* did) const {
  for (const Access& other : others) {
    if (rank_of(other.thread) == rank() || (other.bytes & mine.bytes) == 0) continue;
    if (knows(me(), other)) continue;
    unsafe([&] {
      return fmt::format(
          "{} {} in {}, which {} {} in {}: nothing tells this thread that it is done; "
          "cluster_barrier(), or a wait for its arrive_at, is missing",
          does, place(address), line_of(mine.at), who(other.thread), did, line_of(other.at));
    });
  }
}

void AsyncEngine::reads(const void* memory, int bytes, Location at) {
  nudge();
  const unsigned address = window_address(memory);
  if (rank_at(address) != rank()) visit(rank_at(address), "reads", at);
  Granule& g = granule(address);
  check_copied(g, address, "reads", at);
  const Access access = access_to(address, bytes, at);
  check_copies(g, access, address, "reads");
  if (blocks_ > 1) check_others(g.writers, access, address, "reads", "writes");
  keep(g.readers, access);
}

void AsyncEngine::writes(const void* memory, int bytes, Location at) {
  nudge();
  const unsigned address = window_address(memory);
  if (rank_at(address) != rank()) visit(rank_at(address), "writes", at);
  Granule& g = granule(address);
  check_copied(g, address, "writes", at);
  check_released(g, address, "writes", at);
  const Access access = access_to(address, bytes, at);
  check_copies(g, access, address, "writes");
  if (blocks_ > 1) {
    check_others(g.writers, access, address, "writes", "writes");
    check_others(g.readers, access, address, "writes", "reads");
  }
  keep_stale(g, address);
  keep(g.writers, access);
}

void AsyncEngine::keep_stale(Granule& g, unsigned address) const {
  if (stale(g)) return;
  std::memcpy(g.stale.data(), memory(address - (address - kSharedBase) % kGranule), g.stale.size());
  g.stale_kept = true;
}

// ---- cp.async -----------------------------------------------------------------------------------

bool AsyncEngine::in_shared(const void* memory) const {
  const auto* byte = static_cast<const unsigned char*>(memory);
  return byte >= shared_ && byte < shared_ + shared_stride_ * static_cast<std::size_t>(blocks_);
}

// A copy to the same bytes must be known to be done: the thread that started it has waited, and so does
// this thread know.
void AsyncEngine::check_copies(const Granule& g, const Access& mine, unsigned address,
                               const char* does) const {
  for (const Access& copy : g.writers) {
    if (!copy.copies || (copy.bytes & mine.bytes) == 0) continue;
    if (copy.clock != kUnderWay && knows(me(), copy)) continue;
    unsafe([&] {
      return fmt::format("{} {} in {}, where the cp_async of {} by {} may still be under way: {}",
                         does, place(address), line_of(mine.at), line_of(copy.at), who(copy.thread),
                         copy.clock == kUnderWay
                             ? "no cp_async_wait of that thread covers it"
                             : "nothing after that thread's cp_async_wait tells this one of it, as "
                               "__syncthreads() would");
    });
  }
}

void AsyncEngine::copy_started(const void* memory, int bytes, Location at) {
  if (!in_shared(memory)) return;
  const unsigned address = window_address(memory);
  Granule& g = granule(address);
  check_copied(g, address, "writes", at);
  check_released(g, address, "writes", at);
  Access access = access_to(address, bytes, at);
  check_copies(g, access, address, "writes");
  access.clock = kUnderWay;
  access.copies = true;
  keep_stale(g, address);
  keep(g.writers, access);
}

void AsyncEngine::copy_awaited(const void* memory, int bytes) {
  if (!in_shared(memory)) return;
  const unsigned address = window_address(memory);
  const Access mine = access_to(address, bytes, {});
  for (Access& copy : granule(address).writers) {
    const bool this_one = copy.copies && copy.thread == mine.thread && copy.bytes == mine.bytes;
    if (this_one && copy.clock == kUnderWay) copy.clock = mine.clock;
  }
}

// Whether ordinary stores to these bytes lack their fence: the async proxy may see what was before.
bool AsyncEngine::stale(const Granule& g) const {
  return g.stale_kept && std::any_of(g.writers.begin(), g.writers.end(), [&](const Access& writer) {
           return known(writer.thread)[fence_of(writer.thread)] < writer.clock;
         });
}

// 16 bytes as TMA and wgmma see them.
void AsyncEngine::async_read(unsigned address, unsigned char* to) {
  const Granule& g = granule(address);
  const bool late = completion_ != Completion::earliest;
  std::memcpy(to, late && stale(g) ? g.stale.data() : memory(address), kGranule);
}

}  // namespace tilestep::simt::emulated
