#include "kernels/base/simt/emulator/global_watch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/simt/emulator/block_runner.hpp"
#include "kernels/base/simt/emulator/call_sites.hpp"
#include "kernels/base/simt/emulator/fault_guard.hpp"

namespace tilestep::simt::emulated {
namespace {

constexpr const char* kCheck = "global_memory";
constexpr int kSeveral = -1;  ///< threads; which, is not kept

std::uintptr_t address_of(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory);
}

}  // namespace

GlobalWatch& global_watch() {
  static GlobalWatch watch;
  return watch;
}

void GlobalWatch::begin(const void* range, std::size_t bytes) {
  all_ranges_.push_back({address_of(range), bytes});
  span_ranges();
}

void GlobalWatch::end(const void* range) {
  const auto found = std::find_if(all_ranges_.begin(), all_ranges_.end(), [&](const Region& each) {
    return each.begin == address_of(range);
  });
  if (found == all_ranges_.end()) return;
  std::erase_if(arrays_, [&](const auto& each) { return found->holds(each.first); });
  all_ranges_.erase(found);
  span_ranges();
}

void GlobalWatch::span_ranges() {
  std::uintptr_t begin = ~std::uintptr_t{0}, end = 0;
  for (const Region& each : all_ranges_) {
    begin = std::min(begin, each.begin);
    end = std::max(end, each.begin + each.bytes);
  }
  ranges_ = all_ranges_.empty() ? Region{} : Region{begin, end - begin};
}

void GlobalWatch::add(const void* memory, std::size_t bytes, bool fenced) {
  Array& array = arrays_[address_of(memory)];
  array.fenced = fenced;
  array.region = {address_of(memory), bytes};
  const std::size_t cells = (bytes + kCell - 1) / kCell;
  array.parts.resize((cells + kCellsOfPart - 1) / kCellsOfPart);
}

void GlobalWatch::remove(const void* memory) {
  arrays_.erase(address_of(memory));
}

void GlobalWatch::name(const void* memory, std::size_t element, const char* name) {
  const auto found = arrays_.find(address_of(memory));
  if (found == arrays_.end()) return;
  found->second.element = element;
  found->second.name = name;
}

void GlobalWatch::begin_launch() {
  ++launch_;
  released_.clear();
}

GlobalWatch::Array* GlobalWatch::at(std::uintptr_t address, Region& nobody) {
  std::uintptr_t from = 0, to = ~std::uintptr_t{0};
  const auto between = [&](const Region& region) {
    const std::uintptr_t end = region.begin + region.bytes;
    if (end <= address) from = std::max(from, end);
    if (region.begin > address) to = std::min(to, region.begin);
  };
  for (const Region& range : all_ranges_) {
    if (!range.holds(address)) {
      between(range);
      continue;
    }
    // What lies in another range says nothing of this one, as of a module's tables that are no variable of a kernel's.
    from = range.begin;
    to = range.begin + range.bytes;
    const auto next = arrays_.upper_bound(address);
    if (next != arrays_.end()) between(next->second.region);
    Array* const array = next == arrays_.begin() ? nullptr : &std::prev(next)->second;
    if (array != nullptr && array->region.begin >= range.begin) {
      if (array->region.holds(address) || array->fenced) return array;
      between(array->region);
    }
    break;
  }
  nobody = {from, to - from};
  return nullptr;
}

void GlobalView::begin_block(std::uint32_t block) {
  block_ = block;
  fenced_ = told_ = false;
  known_.clear();
  polled_.clear();
  recent_ = {};
  watch_window.nobody = {};
}

std::string GlobalView::name_of(const GlobalWatch::Array& array, std::uintptr_t address) const {
  const std::size_t byte = address - array.region.begin;
  if (array.region.bytes <= 8) return array.name;
  if (array.name.empty()) return fmt::format("byte {} of an array in global memory", byte);
  if (array.element == 0 || byte % array.element != 0) {
    return fmt::format("byte {} of {}", byte, array.name);
  }
  return fmt::format("{}[{}]", array.name, byte / array.element);
}

bool GlobalView::inside(GlobalWatch::Array* array, std::uintptr_t address, std::size_t bytes,
                        SharedUse use) {
  const std::size_t byte = address - array->region.begin;
  if (byte < array->region.bytes && bytes <= array->region.bytes - byte) return true;
  if (!array->fenced) return false;
  MemoryFault fault = runner_.memory_fault(kCheck);
  fault.does = fmt::format("{} {}", present(use), name_of(*array, address));
  const bool elements = array->element > 0 && !array->name.empty();
  fault.why = !elements ? fmt::format(", which has {} bytes", array->region.bytes)
                        : fmt::format(", but {} has {} elements", array->name,
                                      array->region.bytes / array->element);
  FaultGuard::note(std::move(fault));
  told_ = true;
  return false;
}

GlobalWatch::Array* GlobalView::array_at(std::uintptr_t address) {
  for (GlobalWatch::Array* each : recent_) {
    if (each != nullptr && each->region.holds(address)) return each;
  }
  GlobalWatch::Array* const found = global_watch().at(address, watch_window.nobody);
  if (found != nullptr) recent_[oldest_++ % recent_.size()] = found;
  return found;
}

void GlobalView::access(std::uintptr_t address, std::size_t bytes, SharedUse use, void** frame) {
  if (told_ || bytes == 0) return;
  GlobalWatch& watch = global_watch();
  GlobalWatch::Array* const found = array_at(address);
  if (found == nullptr) return;
  GlobalWatch::Array& array = *found;
  if (!inside(&array, address, bytes, use)) return;
  SharedRaces* races = runner_.races();
  if (use == SharedUse::atomic) release(address);
  Record mine;
  mine.launch = watch.launch_;
  mine.block = block_;
  mine.epoch = races->epoch();
  mine.site = call_site(frame, runner_.top_of_stack());
  mine.clock = races->watching() ? races->clock() : 0;
  mine.thread = static_cast<unsigned>(runner_.current_thread()) & 0x3FFu;
  mine.use = static_cast<unsigned>(use) & 3u;
  const std::uintptr_t end = address + bytes;
  for (std::uintptr_t at = address; at < end && !told_;) {
    const std::uintptr_t next = std::min(end, (at / GlobalWatch::kCell + 1) * GlobalWatch::kCell);
    mine.bytes = (((1u << (next - at)) - 1) << at % GlobalWatch::kCell) & 0xFu;
    const std::size_t number = (at - array.region.begin) / GlobalWatch::kCell;
    auto& part = array.parts[number / GlobalWatch::kCellsOfPart];
    const std::lock_guard lock(
        watch.locks_[number / GlobalWatch::kCellsOfPart % GlobalWatch::kLocks]);
    if (!part) part = std::make_unique<GlobalWatch::Part>();
    for (const Record& earlier : (*part)[number % GlobalWatch::kCellsOfPart]) {
      if (earlier.launch != mine.launch || (earlier.bytes & mine.bytes) == 0 ||
          may_meet(static_cast<SharedUse>(earlier.use), use) || ordered(earlier, mine) ||
          (learns_by_polling() && ordered(earlier, mine))) {
        continue;
      }
      report(earlier, array, at, use);
      return;
    }
    keep((*part)[number % GlobalWatch::kCellsOfPart], mine);
    at = next;
  }
}

bool GlobalView::ordered(const Record& earlier, const Record& mine) const {
  if (earlier.block != mine.block) {
    const auto found = known_.find(earlier.block);
    if (found == known_.end()) return false;
    const KnownBlock& known = found->second;
    return earlier.epoch < known.epoch ||
           (earlier.epoch == known.epoch &&
            (known.thread == kSeveral || known.thread == earlier.thread));
  }
  SharedRaces* races = runner_.races();
  const bool same_store = earlier.site == mine.site && mine.site != 0 && earlier.use == mine.use &&
                          earlier.thread / 32 == mine.thread / 32;
  return earlier.thread == mine.thread || same_store || earlier.epoch != mine.epoch ||
         !races->watching() || races->in_order(earlier.thread, earlier.clock);
}

void GlobalView::keep(Cell& cell, const Record& mine) {
  const auto use = static_cast<SharedUse>(mine.use);
  if (use != SharedUse::read) {
    cell[0] = mine;
    return;
  }
  Record* to = &cell[1];
  for (std::size_t i = 1; i < cell.size(); ++i) {
    Record& each = cell[i];
    if (each.launch == mine.launch && each.block == mine.block && each.thread == mine.thread) {
      to = &each;
      break;
    }
    if (each.launch != mine.launch) to = &each;
  }
  // Readers of two blocks are worth more than two of one: whoever writes is of another than one of them.
  if (to == &cell[1] && cell[1].launch == mine.launch && cell[1].block != mine.block &&
      cell[2].block == mine.block) {
    to = &cell[2];
  }
  *to = mine;
}

namespace {

void join(KnownBlocks& to, const KnownBlocks& from) {
  for (const auto& [block, what] : from) {
    KnownBlock& known = to[block];
    if (known.epoch < what.epoch) known = what;
    if (known.epoch == what.epoch && known.thread != what.thread) known.thread = kSeveral;
  }
}

}  // namespace

void GlobalView::release(std::uintptr_t address) {
  if (!fenced_) return;
  GlobalWatch& watch = global_watch();
  const std::lock_guard lock(watch.released_mutex_);
  KnownBlocks& released = watch.released_[address];
  join(released, known_);
  join(released, {{block_, {runner_.races()->epoch(), runner_.current_thread()}}});
}

void GlobalView::acquire(std::uintptr_t address) {
  GlobalWatch& watch = global_watch();
  const std::lock_guard lock(watch.released_mutex_);
  const auto found = watch.released_.find(address);
  if (found != watch.released_.end()) join(known_, found->second);
}

/// What a volatile read sees may have been written since it was announced.
bool GlobalView::learns_by_polling() {
  for (const std::uintptr_t address : polled_) acquire(address);
  return !polled_.empty();
}

void GlobalView::report(const Record& earlier, const GlobalWatch::Array& array,
                        std::uintptr_t address, SharedUse use) {
  MemoryFault fault = runner_.memory_fault(kCheck);
  const auto its_use = static_cast<SharedUse>(earlier.use);
  const std::string name = name_of(array, address);
  fault.does = fmt::format("{} {}", present(use), name);
  fault.other = runner_.thread_name(earlier.thread);
  fault.did = past(its_use);
  fault.why = "no barrier is between the two";
  fault.there = callers_of(earlier.site);
  if (earlier.block != block_) {
    fault.other += " of " + runner_.block_name(earlier.block);
    fault.why = "nothing orders the two blocks";
  }
  // Which of two blocks comes first may differ from run to run; what is said does not.
  if (earlier.block > block_) {
    fault.who.swap(fault.other);
    fault.who = fmt::format("{}: {}", fault.kernel, fault.who);
    fault.other.erase(0, fault.kernel.size() + 2);
    fault.does = fmt::format("{} {}", present(its_use), name);
    fault.did = past(use);
    fault.here.swap(fault.there);
    fault.block = earlier.block;
  }
  FaultGuard::note(std::move(fault));
  told_ = true;  // one is enough
}

}  // namespace tilestep::simt::emulated
