// What a program reads and writes, in its kernels and on the host.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernels/base/inspect/session.hpp"
#include "kernels/base/simt/emulator/block_runner.hpp"
#include "kernels/base/simt/emulator/call_sites.hpp"

namespace tilestep::inspect {

using program::Memory;
using simt::emulated::BlockRunner;
using simt::emulated::SharedUse;

/// Marks what was written without our being told: what a call returns into memory is no access to the compilers. Fresh
/// memory has all bits set, so a word of which nobody told that it was written, and that has not, was.
void Session::look_closer(Allocation& array, std::size_t from, std::size_t bytes) const {
  constexpr std::size_t kWordBytes = 4;
  for (std::size_t word = from / kWordBytes * kWordBytes; word < from + bytes; word += kWordBytes) {
    if (word + kWordBytes > array.bytes) return;
    const auto begin = array.written.begin() + static_cast<std::ptrdiff_t>(word);
    std::uint32_t value = 0;
    std::memcpy(&value, reinterpret_cast<const void*>(array.begin + word), sizeof value);
    if (value == ~0u || std::find(begin, begin + kWordBytes, true) != begin + kWordBytes) continue;
    std::fill(begin, begin + kWordBytes, true);
  }
}

/// `all`: whether each of the bytes was; else whether one was.
bool Session::was_written(Allocation& array, std::uintptr_t address, std::size_t bytes,
                          bool all) const {
  const std::size_t from = address - array.begin;
  const auto begin = array.written.begin() + static_cast<std::ptrdiff_t>(from),
             end = begin + static_cast<std::ptrdiff_t>(bytes);
  const auto has = [&] {
    return all ? std::find(begin, end, false) == end : std::find(begin, end, true) != end;
  };
  if (has()) return true;
  look_closer(array, from, bytes);
  return has();
}

void Session::mark(Allocation& array, std::uintptr_t address, std::size_t bytes) {
  const std::size_t from = address - array.begin;
  std::fill_n(array.written.begin() + static_cast<std::ptrdiff_t>(from), bytes, true);
}

void Session::block_begins(std::uint64_t block) {
  dynamic_ = simt::emulated::watch_window.dynamic;
  statics_ = simt::emulated::watch_window.statics;
  simt::emulated::shared_variables(seen_variables_, variables_);
  const dim3& size = launches_.back().shape.block;
  lockstep_.begin_block(static_cast<std::uint32_t>(block),
                        static_cast<int>(size.x * size.y * size.z));
}
void Session::block_met() {
  lockstep_.close();
}
void Session::block_ended() {
  lockstep_.end_block();
}

void Session::stepped(Code code, void** frame) {
  if (BlockRunner::inside_kernel() && launches_.back().traced)
    lockstep_.step(BlockRunner::current().current_thread(), code, address_of(frame));
}
void Session::compared(Code code) {
  if (BlockRunner::inside_kernel() && launches_.back().traced)
    lockstep_.compare(BlockRunner::current().current_thread(), code);
}

/// Notes what a launch touches at all: sectors of arrays, and variables in shared memory.
void Session::use(LaunchRecord& record, Allocation* array, std::uintptr_t address,
                  std::size_t bytes) {
  if (array != nullptr) {
    const std::size_t from = address - array->begin;
    for (std::size_t sector = from / kSector; sector <= (from + bytes - 1) / kSector; ++sector) {
      if (array->used[sector]) continue;
      array->used[sector] = true;
      record.once += kSector;
    }
  } else if (const simt::emulated::SharedVariable* variable = static_at(address)) {
    if (record.statics.insert(variable->begin).second)
      record.static_shared_bytes += variable->bytes;
  }
}

const simt::emulated::SharedVariable* Session::static_at(std::uintptr_t address) const {
  const auto found = std::find_if(variables_.begin(), variables_.end(),
                                  [&](const simt::emulated::SharedVariable& each) {
                                    return !each.name.empty() && address - each.begin < each.bytes;
                                  });
  return found == variables_.end() ? nullptr : &*found;
}

void Session::access(std::uintptr_t address, std::size_t bytes, SharedUse use, void** frame) {
  if (bytes == 0) return;
  if (!BlockRunner::inside_kernel()) return access_on_host(address, bytes, use, frame);
  BlockRunner& runner = BlockRunner::current();
  const auto top = address_of(runner.top_of_stack());
  constexpr std::uintptr_t kStack = 1 << 20;
  if (top - address < kStack) return;  // the thread's own variables
  const bool shared = dynamic_.holds(address) || statics_.holds(address);
  Allocation* array = shared ? nullptr : at(address);
  const bool writes = use != SharedUse::read;
  LaunchRecord& record = launches_.back();
  if (!shared && array == nullptr) {
    if (!is_host(address))
      return;  // a variable of the source's, or out of bounds: told by who watches those
    const std::uint32_t site = simt::emulated::call_site(frame, runner.top_of_stack());
    if (!told_.insert(std::uint64_t{1} << 32 | site).second) return;
    find({Kind::host_pointer,
          0,
          0,
          simt::emulated::callers_of(site),
          {},
          running_,
          fmt::format(
              "{} {} {} of the host: the kernel was given a pointer that is not the device's",
              runner.position(runner.current_thread()), writes ? "writes" : "reads",
              on_host_stack(address) ? "a local variable" : "memory")});
    return;
  }
  const bool inside = array == nullptr || ends_in(*array, address, bytes);
  if (array != nullptr && inside) {
    // Of what is longer than a number, parts may be padding.
    const bool reads = use != SharedUse::write;
    if (reads && !was_written(*array, address, bytes, bytes <= 8) &&
        told_.insert(std::uint64_t{2} << 32 | array->line).second) {
      const std::uint32_t site = simt::emulated::call_site(frame, runner.top_of_stack());
      const bool slip = array->element > 1 && array->copied_bytes > 0 &&
                        array->copied_bytes * array->element == array->bytes;
      if (slip) {
        find(
            {Kind::copy_bytes,
             array->copied_in,
             0,
             {},
             simt::emulated::callers_of(site),
             running_,
             fmt::format("only {} of {}, which has {}, are filled: as many as it has elements of "
                         "{} bytes; {} reads {}",
                         array->copied_bytes, array->name, bytes_text(array->bytes), array->element,
                         runner.position(runner.current_thread()), named(*array, address))});
      } else {
        find({Kind::uninitialized,
              0,
              array->line,
              simt::emulated::callers_of(site),
              {},
              running_,
              fmt::format("{} reads {}, which was never written",
                          runner.position(runner.current_thread()), named(*array, address))});
      }
    }
    if (writes) {
      mark(*array, address, bytes);
      const std::size_t low = address - array->begin, high = low + bytes;
      if (array->written_by != running_ || array->written_times == 0) array->written_low = low;
      array->written_by = running_;
      array->written_low = std::min(array->written_low, low);
      array->written_high = std::max(array->written_high, high);
      ++array->written_times;
    }
  }
  if (!record.traced || !inside) return;
  // g++ guards the first use of an array of halves by a variable of its own.
  if (statics_.holds(address) && !variables_.empty() && static_at(address) == nullptr) return;
  this->use(record, array, address, bytes);
  lockstep_.access(runner.current_thread(), simt::emulated::call_site(frame, runner.top_of_stack()),
                   shared ? Space::shared : Space::global,
                   use == SharedUse::read     ? Use::read
                   : use == SharedUse::atomic ? Use::atomic
                                              : Use::write,
                   address, static_cast<std::uint32_t>(bytes));
}

void Session::access_on_host(std::uintptr_t address, std::size_t bytes, SharedUse use,
                             void** frame) {
  for (std::size_t i = 0; i < short_.size(); ++i) {
    if (use == SharedUse::write || address + bytes <= short_[i].begin || address >= short_[i].end)
      continue;
    find({Kind::copy_bytes, short_[i].line, 0, {}, {}, 0, short_[i].text});
    short_.erase(short_.begin() + static_cast<std::ptrdiff_t>(i));
    break;
  }
  const Allocation* array = device_memory(address);
  if (array == nullptr) return;
  const std::uint32_t site =
      simt::emulated::call_site(frame, reinterpret_cast<const void*>(stack_high_));
  find({Kind::device_pointer,
        0,
        array->line,
        simt::emulated::callers_of(site),
        {},
        0,
        fmt::format("the host {} {}, which is device memory: on a GPU the program ends here; copy "
                    "it with cudaMemcpy",
                    use == SharedUse::read ? "reads" : "writes", named(*array, address))});
  end_(-1);
}

}  // namespace tilestep::inspect
