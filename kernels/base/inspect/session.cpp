#include "kernels/base/inspect/session.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "kernels/base/lab/names.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/simt/emulator/block_runner.hpp"
#include "kernels/base/simt/emulator/call_sites.hpp"
#include "kernels/base/simt/emulator/fault_guard.hpp"
#include "kernels/base/simt/emulator/global_watch.hpp"

namespace tilestep::inspect {
namespace {

Session* session = nullptr;

}  // namespace

using program::Memory;
using simt::emulated::BlockRunner;

std::string describe(const program::Shape& shape) {
  const auto size = [](const dim3& d) {
    return d.z > 1   ? fmt::format("{}×{}×{}", d.x, d.y, d.z)
           : d.y > 1 ? fmt::format("{}×{}", d.x, d.y)
                     : fmt::format("{}", d.x);
  };
  const auto one = [](const dim3& d) { return d.x * d.y * d.z == 1; };
  return fmt::format("{} {} of {} {}", size(shape.grid), one(shape.grid) ? "block" : "blocks",
                     size(shape.block), one(shape.block) ? "thread" : "threads");
}

Session& Session::current() {
  return *session;
}

Session::Session(Options options, std::function<void(int)> end)
    : options_(std::move(options)), end_(std::move(end)) {
  simt::EmulationOptions emulation;
  emulation.order = options_.order;
  emulation.seed = options_.seed;
  emulation.os_threads = 1;
  emulation.listener = this;
  device_ = simt::make_emulated_device({}, emulation);
  pthread_attr_t attributes;
  void* low = nullptr;
  std::size_t bytes = 0;
  if (::pthread_getattr_np(::pthread_self(), &attributes) == 0) {
    ::pthread_attr_getstack(&attributes, &low, &bytes);
    ::pthread_attr_destroy(&attributes);
  }
  stack_low_ = address_of(low);
  stack_high_ = stack_low_ + bytes;
  session = this;
}

Session::~Session() {
  simt::emulated::watch_window.listener = nullptr;
  session = nullptr;
}

/// Its line where it is of the source.
unsigned Session::line_of(const simt::Location& at) const {
  return std::string_view(at.file_name()).ends_with("edited/" + options_.source) ? at.line() : 0;
}

void Session::add(Event event) {
  if (events_.size() < kMostEvents) events_.push_back(std::move(event));
}

void Session::find(Finding finding) {
  if (findings_.size() < kMostFindings) findings_.push_back(std::move(finding));
}

int Session::fail(int error) {
  return error_ = error;
}

int Session::last_error(bool reset) {
  refused_line_ = 0;
  return reset ? std::exchange(error_, 0) : error_;
}

// ---- memory --------------------------------------------------------------------------------------

/// The array that holds `address`, of all kinds; null: none.
Allocation* Session::at(std::uintptr_t address) {
  if (recent_ != nullptr && address - recent_->begin < recent_->bytes) return recent_;
  const auto next = memory_.upper_bound(address);
  if (next == memory_.begin()) return nullptr;
  Allocation& array = std::prev(next)->second;
  if (address - array.begin >= array.bytes) return nullptr;
  return recent_ = &array;
}

/// The same, also where the address is the end of it.
Allocation* Session::device_memory(std::uintptr_t address) {
  Allocation* array = at(address);
  return array != nullptr && array->kind == Memory::device ? array : nullptr;
}

std::string Session::named(const Allocation& array, std::uintptr_t address) const {
  const std::size_t byte = address - array.begin;
  if (array.element > 0 && byte % array.element == 0)
    return fmt::format("{}[{}]", array.name, byte / array.element);
  return fmt::format("byte {} of {}", byte, array.name);
}

int Session::allocate(void** to, std::size_t bytes, const char* name, std::size_t element,
                      Memory kind, simt::Location at) {
  if (to == nullptr) return fail(program::kInvalidValue);
  if (bytes == 0) {
    *to = nullptr;
    return program::kSuccess;
  }
  void* memory = nullptr;
  try {
    memory = kind == Memory::pinned ? std::malloc(bytes) : device_->allocate(bytes);
  } catch (const Error&) {
  }
  if (memory == nullptr) return fail(program::kOutOfMemory);
  Allocation array;
  array.begin = address_of(memory);
  array.bytes = bytes;
  array.element = element;
  array.line = line_of(at);
  array.kind = kind;
  array.name = *name != '\0' ? name : fmt::format("the array of line {}", array.line);
  array.written.assign(bytes, kind != Memory::device);
  array.used.assign((bytes + kSector - 1) / kSector, false);
  freed_.erase(array.begin);
  recent_ = nullptr;
  add({What::allocates, array.line, array.name,
       kind == Memory::managed  ? "managed"
       : kind == Memory::pinned ? "pinned"
                                : "",
       bytes});
  const Allocation& kept = memory_[array.begin] = std::move(array);
  if (kind != Memory::pinned)
    simt::emulated::global_watch().name(memory, element, kept.name.c_str());
  *to = memory;
  return program::kSuccess;
}

int Session::release(void* memory, Memory kind, simt::Location at) {
  if (memory == nullptr) return program::kSuccess;
  const auto found = memory_.find(address_of(memory));
  const unsigned line = line_of(at);
  const bool right =
      found != memory_.end() && (found->second.kind == Memory::pinned) == (kind == Memory::pinned);
  if (!right) {
    const Allocation* inside = this->at(address_of(memory));
    const char* word = kind == Memory::pinned ? "cudaFreeHost" : "cudaFree";
    const std::string what =
        freed_.count(address_of(memory)) > 0 ? "memory that has been freed already"
        : found != memory_.end()             ? fmt::format("{}, which {} frees", found->second.name,
                                               kind == Memory::pinned ? "cudaFree" : "cudaFreeHost")
        : inside != nullptr
            ? fmt::format("a pointer into {} that is not where it begins: it was moved by {} bytes",
                          inside->name, address_of(memory) - inside->begin)
            : "a pointer that no allocation returned";
    find({Kind::free,
          line,
          inside != nullptr ? inside->line : 0,
          {},
          {},
          0,
          fmt::format("{} is given {}", word, what)});
    return fail(program::kInvalidValue);
  }
  add({What::frees, line, found->second.name, "", found->second.bytes});
  freed_.insert(found->first);
  if (kind == Memory::pinned) {
    std::free(memory);
  } else {
    device_->release(memory);
  }
  memory_.erase(found);
  recent_ = nullptr;
  return program::kSuccess;
}

void Session::host_allocated(void* memory, std::size_t bytes) {
  if (memory != nullptr && !BlockRunner::inside_kernel()) host_[address_of(memory)] = {bytes};
}

void Session::host_freed(void* memory) {
  if (memory == nullptr || BlockRunner::inside_kernel()) return;
  host_.erase(address_of(memory));
}

bool Session::on_host_stack(std::uintptr_t address) const {
  return address >= stack_low_ && address < stack_high_;
}

/// Whether it lies in memory that only the host has.
bool Session::is_host(std::uintptr_t address) const {
  if (on_host_stack(address)) return true;
  const auto next = host_.upper_bound(address);
  if (next == host_.begin()) return false;
  const auto& [begin, block] = *std::prev(next);
  return address - begin < block.bytes;
}
// ---- launches ------------------------------------------------------------------------------------

int Session::allow_shared(int bytes) {
  if (bytes < 0 || bytes > 227 * 1024) return fail(program::kInvalidValue);
  most_shared_ = std::max(most_shared_, bytes);
  return program::kSuccess;
}

void Session::launch(const char* name, const program::Shape& shape, void (*thread)(void*),
                     void* data, simt::Location where) {
  const unsigned line = line_of(where);
  std::string kernel = name;
  LaunchRecord& record = launches_.emplace_back();
  const int number = static_cast<int>(launches_.size());
  record.kernel = kernel;
  record.line = line;
  record.shape = shape;
  record.traced = options_.traces && ++of_place_[{line, kernel}] <= kTracedOfPlace;
  add({What::launches, line, kernel, describe(shape), shape.shared_bytes, shape.stream, number});
  simt::Launch launch{.name = record.kernel.c_str(),
                      .grid = shape.grid,
                      .block = shape.block,
                      .shared_bytes = shape.shared_bytes};
  const auto refuse = [&](const std::string& why) {
    refused_line_ = line;
    error_ = program::kInvalidConfiguration;
    find({Kind::launch, line, 0, {}, {}, number, why});
  };
  try {
    simt::check_launch(launch, device_->info());
  } catch (const Error& error) {
    return refuse(fmt::format("the launch is refused, and {} never runs: {}", kernel,
                              std::string_view(error.what()).substr(kernel.size() + 2)));
  }
  if (shape.shared_bytes > static_cast<std::size_t>(most_shared_)) {
    return refuse(fmt::format(
        "the launch is refused, and {} never runs: it asks for {} of dynamic shared memory, and "
        "above "
        "49152 cudaFuncSetAttribute(…, cudaFuncAttributeMaxDynamicSharedMemorySize, …) comes first",
        kernel, bytes_text(shape.shared_bytes)));
  }
  for (auto& [begin, array] : memory_) {
    array.written_low = array.written_high = array.written_times = 0;
    array.used.assign((array.bytes + kSector - 1) / kSector, false);
  }
  running_ = number;
  try {
    simt::emulated::run(*device_, launch, thread, data);
  } catch (const simt::KernelFault& fault) {
    const std::string text = fault.what();
    const bool waits = text.find(" waits at ") != text.npos;
    const bool late = text.find("still runs after") != text.npos ||
                      text.find("was ended: the run has taken") != text.npos;
    const bool outside = text.find(" accesses ") != text.npos ||
                         text.find(" takes ") != text.npos ||
                         text.find("where there is no memory") != text.npos;
    Finding finding{waits     ? Kind::barrier
                    : late    ? Kind::crash
                    : outside ? Kind::bounds
                              : Kind::crash,
                    0,
                    0,
                    fault.place().callers,
                    {},
                    number,
                    text};
    if (!fault.place().file.empty() && fault.place().file.ends_with("edited/" + options_.source))
      finding.line = fault.place().line;
    find(std::move(finding));
    running_ = 0;
    record.trace = lockstep_.take();
    end_(-1);
  } catch (const Error& error) {
    find({Kind::crash, line, 0, {}, {}, number, error.what()});
    running_ = 0;
    end_(-1);
  }
  running_ = 0;
  record.trace = lockstep_.take();
  const std::size_t threads = threads_of(shape);
  const std::size_t block = std::size_t{shape.block.x} * shape.block.y * shape.block.z;
  for (auto& [begin, array] : memory_) {
    const std::size_t element = array.element;
    if (array.written_by != number || element == 0 || array.written_low != 0) continue;
    const std::size_t elements = array.bytes / element;
    // Each thread wrote its own element, and fewer than a block would need are left: a grid that was rounded down.
    if (array.written_high == threads * element && array.written_times == threads &&
        threads < elements && elements - threads < block &&
        was_written(array, array.begin, array.bytes, true)) {
      find({Kind::coverage,
            line,
            array.line,
            {},
            {},
            number,
            fmt::format("{} has {}, {} in all, for the {} elements of {}: {}[{}] and what follows "
                        "stay as they were",
                        kernel, describe(shape), threads, elements, array.name, array.name,
                        threads)});
    }
  }
}

int Session::wait(const char* word, simt::Location where) {
  add({What::waits, line_of(where), word, ""});
  return program::kSuccess;
}

// ---- the end -------------------------------------------------------------------------------------

void Session::found_by_guard() {
  for (const simt::MemoryFault& fault : simt::FaultGuard::faults()) {
    const std::string_view check = fault.check;
    const bool race = !fault.other.empty();
    const bool unwritten = fault.why.find("has written") != fault.why.npos;
    const Kind kind = race ? (check == "shared_memory" ? Kind::shared_race : Kind::global_race)
                      : unwritten ? Kind::uninitialized
                                  : Kind::bounds;
    std::string text = fmt::format("{} {}", fault.who, fault.does);
    text += race ? fmt::format(", which {} {}; {}", fault.other, fault.did, fault.why) : fault.why;
    int number = 0;
    for (std::size_t i = 0; i < launches_.size() && number == 0; ++i) {
      if (launches_[i].kernel == fault.kernel) number = static_cast<int>(i) + 1;
    }
    find({kind, 0, 0, fault.here, fault.there, number, std::move(text)});
  }
}

void Session::conclude(bool whole) {
  found_by_guard();
  // A thread that left its array was stopped where memory ends: its first step outside says more.
  constexpr std::string_view kNowhere = "where there is no memory";
  std::set<std::string> outside;
  for (const Finding& each : findings_) {
    if (each.kind == Kind::bounds && each.launch > 0 && each.text.find(kNowhere) == each.text.npos)
      outside.insert(kernel_of(each));
  }
  std::erase_if(findings_, [&](const Finding& each) {
    return each.launch > 0 && each.text.find(kNowhere) != each.text.npos &&
           outside.count(kernel_of(each)) > 0;
  });
  if (refused_line_ > 0) {
    const auto refused = std::find_if(findings_.begin(), findings_.end(), [&](const Finding& each) {
      return each.kind == Kind::launch && each.line == refused_line_;
    });
    if (refused != findings_.end())
      refused->text +=
          "; the program never asks for the error: call cudaGetLastError() after a launch";
  }
  if (!whole) return;
  std::map<unsigned, std::pair<int, const Allocation*>> leaks;
  for (const auto& [begin, array] : memory_) {
    auto& [count, first] = leaks[array.line];
    ++count;
    first = &array;
  }
  for (const auto& [line, leak] : leaks) {
    const auto& [count, array] = leak;
    find({Kind::leak,
          line,
          0,
          {},
          {},
          0,
          fmt::format(
              "{} is never freed{}", array->name,
              count > 1 ? fmt::format(
                              ": {} allocations of this line are left when the program ends", count)
                        : fmt::format(" ({})", bytes_text(array->bytes)))});
  }
}

}  // namespace tilestep::inspect
