// What a program copies and fills: whether both sides are what they should be, and how much it is.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <tuple>

#include "kernels/base/inspect/session.hpp"

namespace tilestep::inspect {

using program::Direction;
using program::Memory;

namespace {

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

}  // namespace

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

bool Session::device_range(const program::Range& range, const char* what, simt::Location where) {
  if (range.bytes == 0 || range.rows == 0) return true;
  const unsigned line = line_of(where);
  const std::uintptr_t begin = address_of(range.begin);
  Allocation* array = at(begin);
  if (array == nullptr) {
    const bool host = is_host(begin);
    if (begin != 0 && !host) return true;  // a variable of the source's, as in fill
    find({Kind::host_pointer,
          line,
          0,
          {},
          {},
          0,
          fmt::format("{} is given {} as {}: it needs the device's memory", what,
                      host ? "memory of the host" : "a null pointer", range.name)});
    return false;
  }
  const std::size_t all = (range.rows - 1) * range.pitch + range.bytes;
  if (!ends_in(*array, begin, all)) {
    find({Kind::bounds,
          line,
          array->line,
          {},
          {},
          0,
          fmt::format("{} uses {} from {} on as {}, but {} has {} from there", what,
                      bytes_text(all), named(*array, begin), range.name, array->name,
                      bytes_text(array->bytes - (begin - array->begin)))});
    return false;
  }
  for (std::size_t row = 0; range.reads && row < range.rows; ++row) {
    const std::uintptr_t from = begin + row * range.pitch;
    if (was_written(*array, from, range.bytes, true)) continue;
    const auto first = array->written.begin() + static_cast<std::ptrdiff_t>(from - array->begin);
    const auto hole = std::find(first, first + static_cast<std::ptrdiff_t>(range.bytes), false);
    const auto offset = static_cast<std::size_t>(hole - array->written.begin());
    find({Kind::uninitialized,
          line,
          array->line,
          {},
          {},
          0,
          fmt::format("{} reads {} as {}, and nothing has written it", what,
                      named(*array, array->begin + offset), range.name)});
    break;
  }
  for (std::size_t row = 0; range.writes && row < range.rows; ++row)
    mark(*array, begin + row * range.pitch, range.bytes);
  return true;
}

void Session::refuse_call(const char* what, const char* why, simt::Location where) {
  find({Kind::launch,
        line_of(where),
        0,
        {},
        {},
        0,
        fmt::format("{} is refused and computes nothing: {}", what, why)});
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
                "{} has {}, {} in all, for the {} elements of {}: {} is one that is never written",
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
        fmt::format("the copy takes {} from the device, which was never written", what)});
}

}  // namespace tilestep::inspect
