#include "kernels/base/simt/emulator/shared_races.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/base/simt/emulator/block_runner.hpp"
#include "kernels/base/simt/emulator/call_sites.hpp"
#include "kernels/base/simt/emulator/fault_guard.hpp"

namespace tilestep::simt::emulated {

constinit thread_local WatchWindow watch_window{};

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

void SharedRaces::begin_block(int threads, Region dynamic) {
  next_epoch();
  first_epoch_ = epoch_;
  warps_.resize((static_cast<std::size_t>(threads) + kLanes - 1) / kLanes);
  dynamic_ = dynamic;
  const std::size_t cells = (dynamic.bytes + kCell - 1) / kCell;
  if (cells > dynamic_cells_.size()) dynamic_cells_.resize(cells);
  watching_ = true;
  learn_variables();
  // As our own arrays: what no thread wrote is NaN.
  for (const Variable& each : variables_) {
    if (each.used) std::memset(reinterpret_cast<void*>(each.place.begin), 0xFF, each.place.bytes);
  }
  watch_window.dynamic = {dynamic.begin - kFence, dynamic.bytes + 2 * kFence};
  watch_window.statics = {};
  if (!variables_.empty()) {
    const std::uintptr_t begin = variables_.front().place.begin;
    const SharedVariable& last = variables_.back().place;
    watch_window.statics = {begin, last.begin + last.bytes - begin};
  }
  watch_window.races = this;
}

void SharedRaces::learn_variables() {
  std::vector<SharedVariable> found;
  if (!shared_variables(known_, found)) return;
  variables_.clear();
  for (SharedVariable& each : found) {
    const std::size_t cells = (each.begin % kCell + each.bytes + kCell - 1) / kCell;
    variables_.push_back({std::move(each), false, std::vector<Cell>(cells)});
  }
}

void SharedRaces::end_block() {
  if (unwritten_) FaultGuard::note(std::move(*unwritten_));
  unwritten_.reset();
  watching_ = false;
  watch_window.dynamic = watch_window.statics = {};
  watch_window.races = nullptr;
}

void SharedRaces::next_epoch() {
  if (++epoch_ != 0) return;
  epoch_ = 1;  // after 2^32 of them: old records must not be taken for new ones
  for (Cell& cell : dynamic_cells_) cell = {};
  for (Variable& each : variables_) each.cells.assign(each.cells.size(), {});
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

std::uint16_t SharedRaces::clock() {
  const int me = runner_.current_thread();
  const std::size_t lane = static_cast<std::size_t>(me) % kLanes;
  return warp_of(me).known[lane][lane];
}

bool SharedRaces::in_order(int thread, std::uint16_t clock) {
  const auto me = static_cast<std::size_t>(runner_.current_thread());
  const auto other = static_cast<std::size_t>(thread);
  if (other / kLanes != me / kLanes) return false;
  return warp_of(thread).known[me % kLanes][other % kLanes] >= clock;
}

SharedRaces::Variable* SharedRaces::variable_at(std::uintptr_t address) {
  for (Variable& each : variables_) {
    if (each.region().holds(address)) return &each;
  }
  return nullptr;
}

/// The shadow of the array that holds `address`, at that address; null: none does.
SharedRaces::Cell* SharedRaces::cells_of(std::uintptr_t address) {
  if (dynamic_.holds(address)) return &dynamic_cells_[(address - dynamic_.begin) / kCell];
  Variable* variable = variable_at(address);
  if (variable == nullptr) return nullptr;
  variable->used = true;
  return &variable->cells[address / kCell - variable->place.begin / kCell];
}

std::string SharedRaces::name_of(std::uintptr_t address) {
  if (const Variable* variable = variable_at(address)) {
    const std::size_t byte = address - variable->place.begin;
    return variable->place.bytes <= 8 ? variable->place.name
                                      : fmt::format("byte {} of {}", byte, variable->place.name);
  }
  return fmt::format("byte {} of its dynamic shared memory",
                     static_cast<std::ptrdiff_t>(address - dynamic_.begin));
}

void SharedRaces::access(std::uintptr_t address, std::size_t bytes, SharedUse use, void** frame) {
  if (!watching_ || bytes == 0) return;
  const std::uintptr_t end = address + bytes;
  if (!dynamic_.holds(address) || !dynamic_.holds(end - 1)) {
    const bool dynamic = watch_window.dynamic.holds(address);
    Variable* variable = dynamic ? nullptr : variable_at(address);
    if (variable != nullptr && variable->place.name.empty()) return;  // not the source's
    if (variable == nullptr || !variable->region().holds(end - 1)) {
      return report_outside(address, bytes, use);
    }
  }
  Cell* cell = cells_of(address);
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
  const std::uint16_t clock = this->clock();
  if (cell.written_in != first_epoch_) cell.written_in = first_epoch_, cell.written = 0;
  const bool reads = use == SharedUse::read || use == SharedUse::atomic;
  if (reads && (bytes & ~cell.written) != 0 && !unwritten_ && !watch_window.may_be_unwritten)
    keep_unwritten(address, use);
  if (!reads || use == SharedUse::atomic)
    cell.written = static_cast<std::uint8_t>(cell.written | bytes);
  Record* to = nullptr;
  for (Record& other : cell.records) {
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
    if (may_meet(its_use, use) || in_order(other.thread, other.clock)) continue;
    return report(other, address, use);
  }
  if (to == nullptr) to = &cell.records[turn_++ % kKept];
  to->site = call_site(frame, runner_.top_of_stack());
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
  for (std::size_t i = 0; i < (bytes + kCell - 1) / kCell; ++i, ++cell) {
    for (Record& record : cell->records) {
      if (static_cast<SharedUse>(record.use) != SharedUse::copy || record.thread != me) continue;
      record.use = static_cast<unsigned>(SharedUse::write) & 3u;
      record.epoch = epoch_;
      record.clock = clock();
    }
  }
}

void SharedRaces::report(const Record& earlier, std::uintptr_t address, SharedUse use) {
  const auto its_use = static_cast<SharedUse>(earlier.use);
  MemoryFault fault = runner_.memory_fault("shared_memory");
  fault.does = fmt::format("{} {}", present(use), name_of(address));
  fault.other = earlier.thread == runner_.current_thread()
                    ? std::string("the same thread")
                    : runner_.thread_name(static_cast<int>(earlier.thread));
  fault.did = past(its_use);
  fault.why = its_use == SharedUse::copy ? "no cp_async_wait is between the two"
                                         : "no barrier is between the two";
  fault.there = callers_of(earlier.site);
  FaultGuard::note(std::move(fault));
  unwritten_.reset();
  end_block();
}

void SharedRaces::keep_unwritten(std::uintptr_t address, SharedUse use) {
  MemoryFault& fault = unwritten_.emplace(runner_.memory_fault("shared_memory"));
  fault.does = fmt::format("{} {}", present(use), name_of(address));
  fault.why = ", which no thread of the block has written";
}

void SharedRaces::report_outside(std::uintptr_t address, std::size_t bytes, SharedUse use) {
  MemoryFault fault = runner_.memory_fault("shared_memory");
  if (watch_window.dynamic.holds(address)) {
    fault.does = fmt::format("{} {}", present(use), name_of(address));
    fault.why = fmt::format(", but the launch gave the block {} bytes of it", dynamic_.bytes);
  } else {
    const auto after = std::find_if(variables_.rbegin(), variables_.rend(),
                                    [&](const Variable& v) { return v.place.begin <= address; });
    const SharedVariable& before = after->place;
    fault.does = fmt::format("{} bytes {}–{} of {}", present(use), address - before.begin,
                             address - before.begin + bytes - 1, before.name);
    fault.why = fmt::format(", which has {} bytes", before.bytes);
  }
  FaultGuard::note(std::move(fault));
  end_block();
}

}  // namespace tilestep::simt::emulated
