#include "kernels/base/simt/shared_races.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "kernels/base/simt/block_runner.hpp"
#include "kernels/base/simt/fault_guard.hpp"

namespace tilestep::simt::emulated {

constinit thread_local SharedWindow shared_window{};

namespace {

/// Sites that are told apart; a power of two. A kernel has some hundreds.
constexpr std::size_t kSites = 8192;

const char* present(SharedUse use) {
  return use == SharedUse::read     ? "reads"
         : use == SharedUse::atomic ? "changes"
         : use == SharedUse::copy   ? "copies to"
                                    : "writes";
}
const char* past(SharedUse use) {
  switch (use) {
    case SharedUse::read:
      return "has read";
    case SharedUse::write:
      return "has written";
    case SharedUse::atomic:
      return "has changed by an atomic";
    case SharedUse::copy:
      return "still copies to by cp.async";
  }
  return "";
}

bool may_meet(SharedUse a, SharedUse b) {
  return a == b && (a == SharedUse::read || a == SharedUse::atomic);
}

}  // namespace

void SharedRaces::begin_block(int threads, Region dynamic, const std::vector<Region>& statics) {
  next_epoch();
  first_epoch_ = epoch_;
  warps_.resize((static_cast<std::size_t>(threads) + kLanes - 1) / kLanes);
  if (site_table_.empty()) site_table_.resize(kSites), sites_.resize(1);
  dynamic_ = dynamic;
  const std::size_t cells = (dynamic.bytes + kCell - 1) / kCell;
  if (cells > dynamic_cells_.size()) dynamic_cells_.resize(cells);
  watching_ = true;
  shared_window = {dynamic_, {}, this};
  // The arrays of an OS thread are only ever added to.
  for (std::size_t i = statics_.size(); i < statics.size(); ++i) {
    statics_.push_back(statics[i]);
    static_cells_.emplace_back((statics[i].bytes + kCell - 1) / kCell);
  }
  add_static({});
}

void SharedRaces::add_static(Region array) {
  if (array.bytes > 0) {
    statics_.push_back(array);
    static_cells_.emplace_back((array.bytes + kCell - 1) / kCell);
  }
  if (!watching_ || statics_.empty()) return;
  std::uintptr_t begin = ~std::uintptr_t{0}, end = 0;
  for (const Region& each : statics_) {
    begin = std::min(begin, each.begin);
    end = std::max(end, each.begin + each.bytes);
  }
  shared_window.statics = {begin, end - begin};
}

void SharedRaces::end_block() {
  watching_ = false;
  shared_window = {};
}

void SharedRaces::next_epoch() {
  if (++epoch_ != 0) return;
  epoch_ = 1;  // after 2^32 of them: old records must not be taken for new ones
  for (Cell& cell : dynamic_cells_) cell = {};
  for (std::vector<Cell>& cells : static_cells_) cells.assign(cells.size(), {});
}

SharedRaces::Warp& SharedRaces::warp_of(int thread) {
  Warp& warp = warps_[static_cast<std::size_t>(thread) / kLanes];
  if (warp.epoch != epoch_) {
    warp.epoch = epoch_;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      warp.known[lane].fill(0);
      warp.known[lane][lane] = 1;
    }
  }
  return warp;
}

void SharedRaces::lanes_met(int first_thread, unsigned mask) {
  if (!watching_) return;
  Warp& warp = warp_of(first_thread);
  std::array<std::uint16_t, kLanes> all{};
  for (unsigned left = mask; left != 0; left &= left - 1) {
    const auto& lane = warp.known[static_cast<std::size_t>(std::countr_zero(left))];
    for (std::size_t i = 0; i < kLanes; ++i) all[i] = std::max(all[i], lane[i]);
  }
  bool full = false;
  for (unsigned left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    warp.known[lane] = all;
    full = ++warp.known[lane][lane] == kLastClock || full;
  }
  if (full) next_epoch();
}

bool SharedRaces::in_order(const Record& earlier, int thread) {
  const int other = earlier.thread;
  if (static_cast<std::size_t>(other) / kLanes != static_cast<std::size_t>(thread) / kLanes) {
    return false;
  }
  return warp_of(thread).known[static_cast<std::size_t>(thread) % kLanes]
                              [static_cast<std::size_t>(other) % kLanes] >= earlier.clock;
}

/// The shadow of the array that holds `address`, at that address; null: none does.
SharedRaces::Cell* SharedRaces::cells_of(std::uintptr_t address) {
  if (dynamic_.holds(address)) return &dynamic_cells_[(address - dynamic_.begin) / kCell];
  for (std::size_t i = 0; i < statics_.size(); ++i) {
    if (!statics_[i].holds(address)) continue;
    return &static_cells_[i][(address - statics_[i].begin) / kCell];
  }
  return nullptr;  // what the compiler keeps between two arrays
}

void SharedRaces::access(std::uintptr_t address, std::size_t bytes, SharedUse use, void** frame) {
  if (!watching_ || bytes == 0) return;
  Cell* cell = cells_of(address);
  if (cell == nullptr) return;
  const std::uintptr_t end = address + bytes;
  for (std::uintptr_t at = address; at < end && watching_; ++cell) {
    const std::uintptr_t next = std::min(end, (at / kCell + 1) * kCell);
    const auto mask = ((1u << (next - at)) - 1) << at % kCell;
    use_cell(*cell, at, mask, use, frame);
    at = next;
  }
}

void SharedRaces::use_cell(Cell& cell, std::uintptr_t address, unsigned bytes, SharedUse use,
                           void** frame) {
  const int me = runner_.current_thread();
  const std::uint16_t clock =
      warp_of(me)
          .known[static_cast<std::size_t>(me) % kLanes][static_cast<std::size_t>(me) % kLanes];
  Record* to = nullptr;
  for (Record& other : cell) {
    const auto its_use = static_cast<SharedUse>(other.use);
    // A barrier does not wait for copies.
    if (other.epoch < (its_use == SharedUse::copy ? first_epoch_ : epoch_)) {
      to = &other;
      continue;
    }
    if ((other.bytes & bytes) == 0) continue;
    if (its_use == SharedUse::copy) return report(other, address, use);
    if (other.thread == me) {
      const bool covers = (other.bytes & bytes) == bytes && other.clock == clock;
      if (covers && (its_use == use || its_use == SharedUse::write)) return;
      if (other.bytes == bytes && (its_use == use || use == SharedUse::write)) to = &other;
      continue;
    }
    if (may_meet(its_use, use) || in_order(other, me)) continue;
    return report(other, address, use);
  }
  if (to == nullptr) to = &cell[turn_++ % kKept];
  to->site = site_of(frame);
  to->epoch = epoch_;
  to->clock = clock;
  to->thread = static_cast<unsigned>(me) & 0x3FFu;
  to->bytes = bytes & 0xFu;
  to->use = static_cast<unsigned>(use) & 3u;
}

// From now on it is as if the thread had written itself.
void SharedRaces::copy_awaited(const void* memory, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  if (!watching_) return;
  Cell* cell = cells_of(address);
  if (cell == nullptr) return;
  const int me = runner_.current_thread();
  const std::size_t lane = static_cast<std::size_t>(me) % kLanes;
  for (std::size_t i = 0; i < (bytes + kCell - 1) / kCell; ++i, ++cell) {
    for (Record& record : *cell) {
      if (static_cast<SharedUse>(record.use) != SharedUse::copy || record.thread != me) continue;
      record.use = static_cast<unsigned>(SharedUse::write) & 3u;
      record.epoch = epoch_;
      record.clock = warp_of(me).known[lane][lane];
    }
  }
}

/// The number of the place that called, with those that called it: an access may stand in a function of simt's, and
/// who called that is meant. Edited sources keep frame pointers, since they are not optimized.
std::uint32_t SharedRaces::site_of(void** frame) {
  Site site{};
  const auto top = reinterpret_cast<std::uintptr_t>(runner_.top_of_stack());
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < kFrames; ++i) {
    site[i] = frame[1];
    hash = (hash ^ reinterpret_cast<std::uintptr_t>(frame[1])) * 0x9E3779B97F4A7C15u;
    const auto next = reinterpret_cast<std::uintptr_t>(frame[0]);
    const auto here = reinterpret_cast<std::uintptr_t>(frame);
    if (next <= here || next + 2 * sizeof(void*) > top || next % sizeof(void*) != 0) break;
    frame = reinterpret_cast<void**>(next);
  }
  for (std::size_t at = hash >> 40, tries = 0; tries < 8; ++at, ++tries) {
    std::uint32_t& number = site_table_[at % kSites];
    if (number == 0) {
      number = static_cast<std::uint32_t>(sites_.size());
      sites_.push_back(site);
      return number;
    }
    if (sites_[number] == site) return number;
  }
  return 0;  // of which nothing is known
}

void SharedRaces::report(const Record& earlier, std::uintptr_t address, SharedUse use) {
  const auto its_use = static_cast<SharedUse>(earlier.use);
  SharedRace race;
  race.kernel = runner_.kernel_name();
  race.block = runner_.block(0);
  race.who = runner_.position(runner_.current_thread());
  race.does = present(use);
  race.what = dynamic_.holds(address)
                  ? fmt::format("byte {} of its dynamic shared memory", address - dynamic_.begin)
                  : "a shared array";
  race.other = earlier.thread == runner_.current_thread()
                   ? std::string("the same thread")
                   : runner_.thread_name(static_cast<int>(earlier.thread));
  race.did = past(its_use);
  race.missing = its_use == SharedUse::copy ? "no cp_async_wait is between the two"
                                            : "no barrier is between the two";
  race.here = place_here().callers;
  for (const void* caller : sites_[earlier.site]) {
    if (caller != nullptr) race.there.push_back(static_cast<const char*>(caller) - 1);
  }
  FaultGuard::note(std::move(race));
  end_block();  // one is enough
}

}  // namespace tilestep::simt::emulated
