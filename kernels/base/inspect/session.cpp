#include "kernels/base/inspect/session.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "kernels/base/lab/names.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/simt/block_runner.hpp"
#include "kernels/base/simt/call_sites.hpp"
#include "kernels/base/simt/fault_guard.hpp"
#include "kernels/base/simt/global_watch.hpp"

namespace tilestep::inspect {
namespace {

using program::Direction;
using program::Memory;
using simt::emulated::BlockRunner;
using simt::emulated::SharedUse;

Session* session = nullptr;

std::uintptr_t address_of(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory);
}

bool ends_in(const Allocation& array, std::uintptr_t address, std::size_t bytes) {
  return address - array.begin <= array.bytes && bytes <= array.bytes - (address - array.begin);
}

const char* words(Direction direction) {
  switch (direction) {
    case Direction::host_to_host:
      return "host to host";
    case Direction::to_device:
      return "host to device";
    case Direction::to_host:
      return "device to host";
    case Direction::on_device:
      return "device to device";
    case Direction::by_address:
      break;
  }
  return "by address";
}

std::size_t threads_of(const program::Shape& shape) {
  return std::size_t{shape.grid.x} * shape.grid.y * shape.grid.z * shape.block.x * shape.block.y *
         shape.block.z;
}

std::string bytes_text(std::size_t bytes) {
  return lab::plural(static_cast<std::int64_t>(bytes), "byte");
}

}  // namespace

std::string describe(const program::Shape& shape) {
  const auto size = [](const dim3& d) {
    return d.z > 1   ? fmt::format("{}×{}×{}", d.x, d.y, d.z)
           : d.y > 1 ? fmt::format("{}×{}", d.x, d.y)
                     : fmt::format("{}", d.x);
  };
  return fmt::format("{} blocks of {} threads", size(shape.grid), size(shape.block));
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

// ---- copies --------------------------------------------------------------------------------------

/// One row of a copy: whether both sides are what the copy says, and hold its bytes.
bool Session::check_row(const program::Copy& copy, std::uintptr_t to, std::uintptr_t from,
                        unsigned line) {
  const Allocation* there = at(to);
  const Allocation* here = at(from);
  const auto is_device = [](const Allocation* array) {
    return array != nullptr && array->kind == Memory::device;
  };
  const auto side = [&](const Allocation* array, std::uintptr_t address) {
    if (array != nullptr)
      return fmt::format("{} is {} memory", array->name,
                         array->kind == Memory::device ? "device" : "shared");
    return std::string(is_host(address) ? "is host memory" : "is no memory of the device");
  };
  const bool to_device =
      copy.direction == Direction::to_device || copy.direction == Direction::on_device;
  const bool from_device =
      copy.direction == Direction::to_host || copy.direction == Direction::on_device;
  if (copy.direction != Direction::by_address) {
    const bool bad_to = to_device ? there == nullptr : is_device(there);
    const bool bad_from = from_device ? here == nullptr : is_device(here);
    if (bad_to || bad_from) {
      std::string why;
      if (bad_to && bad_from) {
        why = "its destination and its source are swapped";
      } else if (bad_to) {
        why = fmt::format("its destination {}", side(there, to));
      } else {
        why = fmt::format("its source {}", side(here, from));
      }
      find({Kind::copy_direction,
            line,
            0,
            {},
            {},
            0,
            fmt::format("the copy says \"{}\", but {}; CUDA refuses it and copies nothing",
                        words(copy.direction), why)});
      return false;
    }
  }
  for (const auto& [array, address, verb] :
       {std::tuple(there, to, "writes"), std::tuple(here, from, "reads")}) {
    if (array != nullptr && !ends_in(*array, address, copy.bytes)) {
      find({Kind::copy_bytes,
            line,
            array->line,
            {},
            {},
            0,
            fmt::format("the copy {} {} of {}, which has {}", verb, bytes_text(copy.bytes),
                        array->name, bytes_text(array->bytes - (address - array->begin)))});
      return false;
    }
    if (array != nullptr) continue;
    const auto next = host_.upper_bound(address);
    if (next == host_.begin()) continue;
    const auto& [begin, block] = *std::prev(next);
    if (address - begin < block.bytes && copy.bytes > block.bytes - (address - begin)) {
      find({Kind::copy_bytes,
            line,
            0,
            {},
            {},
            0,
            fmt::format("the copy {} {} of a piece of host memory that has {}", verb,
                        bytes_text(copy.bytes), bytes_text(block.bytes - (address - begin)))});
      return false;
    }
  }
  return true;
}

/// A copy of as many bytes as the array has elements is a slip that CUDA cannot see.
void Session::check_size(const program::Copy& copy, unsigned line) {
  const bool in = at(address_of(copy.to)) != nullptr;
  Allocation* array = at(in ? address_of(copy.to) : address_of(copy.from));
  if (array == nullptr) return;
  if (array->element == 0) array->element = copy.element;
  const std::size_t element = array->element;
  const bool whole = address_of(in ? copy.to : copy.from) == array->begin && copy.rows == 1;
  if (in) {
    array->copied_in = line;
    array->copied_bytes = whole ? copy.bytes : 0;
    return;
  }
  if (!whole || element < 2 || copy.bytes * element != array->bytes) return;
  const std::uintptr_t host = address_of(copy.to);
  short_.push_back(
      {host + copy.bytes, host + array->bytes, line,
       fmt::format("the copy takes {} of {}, which has {}: as many as it has elements of {} bytes; "
                   "the host reads what was not copied",
                   bytes_text(copy.bytes), array->name, bytes_text(array->bytes), element)});
}

int Session::copy(const program::Copy& copy, simt::Location where) {
  const unsigned line = line_of(where);
  const std::uintptr_t to = address_of(copy.to), from = address_of(copy.from);
  const Allocation* array = at(to) != nullptr ? at(to) : at(from);
  Direction direction = copy.direction;
  if (direction == Direction::by_address) {
    direction = at(to) != nullptr
                    ? (at(from) != nullptr ? Direction::on_device : Direction::to_device)
                : at(from) != nullptr ? Direction::to_host
                                      : Direction::host_to_host;
  }
  add({What::copies, line, array == nullptr ? "" : array->name, words(direction),
       copy.bytes * copy.rows, copy.stream});
  if (copy.bytes == 0 || copy.rows == 0) return program::kSuccess;
  if (to == 0 || from == 0) {
    find({Kind::copy_direction,
          line,
          0,
          {},
          {},
          0,
          fmt::format("the copy's {} is a null pointer", to == 0 ? "destination" : "source")});
    return fail(program::kInvalidValue);
  }
  for (std::size_t row = 0; row < copy.rows; ++row) {
    const std::uintptr_t to_row = to + row * copy.to_pitch, from_row = from + row * copy.from_pitch;
    if (!check_row(copy, to_row, from_row, line)) return fail(program::kInvalidValue);
  }
  check_size(copy, line);
  for (std::size_t row = 0; row < copy.rows; ++row) {
    const std::uintptr_t to_row = to + row * copy.to_pitch, from_row = from + row * copy.from_pitch;
    Allocation* source = at(from_row);
    Allocation* destination = at(to_row);
    if (source != nullptr && destination == nullptr) {
      if (!was_written(*source, from_row, copy.bytes, true)) check_coverage(*source, line);
    }
    if (destination != nullptr) {
      if (source != nullptr) {
        for (std::size_t i = 0; i < copy.bytes; ++i) {
          destination->written[to_row - destination->begin + i] =
              source->written[from_row - source->begin + i];
        }
      } else {
        mark(*destination, to_row, copy.bytes);
      }
    }
    std::memmove(reinterpret_cast<void*>(to_row), reinterpret_cast<const void*>(from_row),
                 copy.bytes);
  }
  return program::kSuccess;
}

int Session::fill(void* to, int byte, std::size_t bytes, int stream, simt::Location where) {
  const unsigned line = line_of(where);
  Allocation* array = at(address_of(to));
  add({What::fills, line, array == nullptr ? "" : array->name, fmt::format("0x{:02x}", byte & 0xFF),
       bytes, stream});
  if (bytes == 0) return program::kSuccess;
  if (array == nullptr) {
    // A variable of the source's, whose address cudaGetSymbolAddress gave.
    if (!is_host(address_of(to)) && to != nullptr) {
      std::memset(to, byte, bytes);
      return program::kSuccess;
    }
    find({Kind::copy_direction,
          line,
          0,
          {},
          {},
          0,
          "cudaMemset is given a pointer that is not the device's"});
    return fail(program::kInvalidValue);
  }
  if (!ends_in(*array, address_of(to), bytes)) {
    find({Kind::copy_bytes,
          line,
          array->line,
          {},
          {},
          0,
          fmt::format("cudaMemset writes {} of {}, which has {}", bytes_text(bytes), array->name,
                      bytes_text(array->bytes))});
    return fail(program::kInvalidValue);
  }
  std::memset(to, byte, bytes);
  mark(*array, address_of(to), bytes);
  if (address_of(to) == array->begin) array->copied_in = line, array->copied_bytes = bytes;
  return program::kSuccess;
}

/// What is copied back was not written by anybody: says why, where the launch that wrote the rest shows it.
void Session::check_coverage(Allocation& array, unsigned line) {
  const auto first = std::find(array.written.begin(), array.written.end(), false);
  const auto from = static_cast<std::size_t>(first - array.written.begin());
  const std::size_t element = std::max<std::size_t>(array.element, 1);
  const std::string what = array.element == 0
                               ? fmt::format("bytes {}–{} of {}", from, array.bytes - 1, array.name)
                               : fmt::format("{}[{}]", array.name, from / element);
  if (array.written_by > 0) {
    const LaunchRecord& by = launches_[static_cast<std::size_t>(array.written_by) - 1];
    const std::size_t threads = threads_of(by.shape), elements = array.bytes / element;
    if (array.written_times <= threads &&
        threads < elements) {  // a thread writes one, and they are too few
      find({Kind::coverage,
            by.line,
            line,
            {},
            {},
            array.written_by,
            fmt::format(
                "{} has {}, {} in all, for the {} elements of {}: {} is one that nobody writes",
                by.kernel, describe(by.shape), threads, elements, array.name, what)});
      return;
    }
  }
  find({Kind::uninitialized,
        line,
        array.line,
        {},
        {},
        0,
        fmt::format("the copy takes {} from the device, which nobody has written", what)});
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
  for (auto& [begin, array] : memory_)
    array.written_low = array.written_high = array.written_times = 0;
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
    record.traffic = requests_.take();
    end_(-1);
  } catch (const Error& error) {
    find({Kind::crash, line, 0, {}, {}, number, error.what()});
    running_ = 0;
    end_(-1);
  }
  running_ = 0;
  record.traffic = requests_.take();
  record.left_out = requests_.left_out();
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

// ---- accesses ------------------------------------------------------------------------------------

void Session::block_begins(std::uint64_t block) {
  requests_.begin_block(static_cast<std::uint32_t>(block));
  dynamic_ = simt::emulated::watch_window.dynamic;
  statics_ = simt::emulated::watch_window.statics;
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
  const LaunchRecord& record = launches_.back();
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
              fmt::format("{} reads {}, which nobody has written",
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
  requests_.add(runner.current_thread(), simt::emulated::call_site(frame, runner.top_of_stack()),
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
      refused->text += "; nobody asks for the error: call cudaGetLastError() after a launch";
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

// ---- what the program calls ----------------------------------------------------------------------

namespace tilestep::program {
namespace {

const auto begun = std::chrono::steady_clock::now();
int handles = 0;

struct ErrorWords {
  int number;
  const char *name, *text;
};
constexpr ErrorWords kErrors[] = {
    {kSuccess, "cudaSuccess", "no error"},
    {kInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {kOutOfMemory, "cudaErrorMemoryAllocation", "out of memory"},
    {kInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {kInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {kInvalidDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {kInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {kNotReady, "cudaErrorNotReady", "device not ready"},
    {kNotSupported, "cudaErrorNotSupported", "operation not supported"},
};

}  // namespace

const char* error_name(int error) {
  for (const ErrorWords& each : kErrors) {
    if (each.number == error) return each.name;
  }
  return "cudaErrorUnknown";
}
const char* error_text(int error) {
  for (const ErrorWords& each : kErrors) {
    if (each.number == error) return each.text;
  }
  return "unknown error";
}
int last_error(bool reset) {
  return inspect::Session::current().last_error(reset);
}
int allocate(void** to, std::size_t bytes, const char* name, std::size_t element, Memory kind,
             Location at) {
  return inspect::Session::current().allocate(to, bytes, name, element, kind, at);
}
int release(void* memory, Memory kind, Location at) {
  // cudaFree takes managed memory too.
  return inspect::Session::current().release(memory, kind, at);
}
int copy(const Copy& copy, Location at) {
  return inspect::Session::current().copy(copy, at);
}
int fill(void* to, int byte, std::size_t bytes, int stream, Location at) {
  return inspect::Session::current().fill(to, byte, bytes, stream, at);
}
void launch(const char* name, const Shape& shape, void (*thread)(void*), void* data, Location at) {
  inspect::Session::current().launch(name, shape, thread, data, at);
}
void* parameters(std::size_t bytes, std::size_t alignment) {
  static std::vector<char> room;
  room.resize(std::max(room.size(), bytes + alignment));
  void* memory = room.data();
  std::size_t space = room.size();
  return std::align(alignment, bytes, memory, space);
}
int allow_shared(int bytes, Location) {
  return inspect::Session::current().allow_shared(bytes);
}
int wait(const char* word, Location at) {
  return inspect::Session::current().wait(word, at);
}
int new_handle() {
  return ++handles;
}
double seconds() {
  inspect::Session::current().timed_by_events = true;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

// Compute capability 9.0: 2048 threads, 32 blocks and 228 KB of a multiprocessor, of which each block costs 1 KB more.
int blocks_per_multiprocessor(int threads, std::size_t shared_bytes) {
  if (threads < 1 || threads > 1024) return 0;
  const int warps = (threads + 31) / 32;
  const auto by_shared = static_cast<int>((std::size_t{228} << 10) / (shared_bytes + 1024));
  return std::min({64 / warps, 32, by_shared});
}
int best_block(std::size_t shared_bytes, int limit) {
  int best = 32, most = 0;
  for (int threads = 1024; threads >= 32; threads -= 32) {
    if (limit > 0 && threads > limit) continue;
    const int resident = threads * blocks_per_multiprocessor(threads, shared_bytes);
    if (resident > most) best = threads, most = resident;
  }
  return best;
}

}  // namespace tilestep::program
