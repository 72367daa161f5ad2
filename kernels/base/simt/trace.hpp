#pragma once

/// \file
/// Accesses that write down what they did. A kernel that is a template on its accessor types runs
/// with plain `Global<T>` when it is timed, and with `Traced<T>` when it is explained: then each
/// `a[i]` also appends (thread, block, site, address, load or store) to a bounded buffer.
/// Included by simt.hpp.

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace tilestep::simt {

enum class AccessKind : std::uint16_t { load, store };

/// One access of one thread.
struct TraceRecord {
  std::uint64_t byte_offset;  ///< of the first byte, from the start of the array
  std::uint32_t block;        ///< linear, x fastest
  std::uint32_t thread;       ///< linear in its block, x fastest
  std::uint32_t site;         ///< whatever number the accessor was made with
  std::uint16_t bytes;        ///< size of the access
  AccessKind kind;
};

/// The device's view of a trace: what a kernel takes. Never writes past `capacity`; the counter
/// goes on, so that the host knows how many were dropped.
struct TraceBuffer {
  TraceRecord* records = nullptr;
  unsigned long long* count = nullptr;
  unsigned long long capacity = 0;

  __device__ void append(std::uint32_t site, std::uint64_t byte_offset, std::uint16_t bytes,
                         AccessKind kind) const {
    const unsigned long long slot = atomicAdd(count, 1ULL);
    if (slot >= capacity) return;
    records[slot] = {
        byte_offset,
        (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x,
        (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x,
        site,
        bytes,
        kind,
    };
  }
};

/// What `Traced<T>` gives for `a[i]`: reading it loads, assigning to it stores, and both are
/// traced.
template <class T>
class TracedElement {
 public:
  using Value = std::remove_const_t<T>;

  __device__ TracedElement(T& element, const TraceBuffer& buffer, std::uint32_t site,
                           std::uint64_t byte_offset)
      : element_(element), buffer_(buffer), site_(site), byte_offset_(byte_offset) {}

  __device__ operator Value() const {
    buffer_.append(site_, byte_offset_, sizeof(T), AccessKind::load);
    return element_;
  }
  __device__ const TracedElement& operator=(Value value) const {
    static_assert(!std::is_const_v<T>, "a store to an array of const elements");
    buffer_.append(site_, byte_offset_, sizeof(T), AccessKind::store);
    element_ = value;
    return *this;
  }
  __device__ const TracedElement& operator=(const TracedElement& other) const {
    return *this = static_cast<Value>(other);
  }
  TracedElement(const TracedElement&) = default;
  __device__ const TracedElement& operator+=(Value value) const {
    return *this = static_cast<Value>(static_cast<Value>(*this) + value);
  }
  __device__ const TracedElement& operator*=(Value value) const {
    return *this = static_cast<Value>(static_cast<Value>(*this) * value);
  }

 private:
  T& element_;
  const TraceBuffer& buffer_;
  std::uint32_t site_;
  std::uint64_t byte_offset_;
};

/// An accessor whose every access is traced under the number `site`. Offsets are counted from where
/// `array` pointed when the accessor was made; `+` keeps that origin. Made by `traced`.
template <class T>
class Traced {
 public:
  __host__ __device__ Traced(Global<T> array, TraceBuffer buffer, std::uint32_t site,
                             std::ptrdiff_t origin = 0)
      : array_(array), buffer_(buffer), site_(site), origin_(origin) {}

  __device__ TracedElement<T> operator[](std::ptrdiff_t index) const {
    const std::ptrdiff_t bytes = (origin_ + index) * static_cast<std::ptrdiff_t>(sizeof(T));
    return {array_[origin_ + index], buffer_, site_, static_cast<std::uint64_t>(bytes)};
  }
  __device__ TracedElement<T> operator*() const { return (*this)[0]; }
  __host__ __device__ Traced operator+(std::ptrdiff_t offset) const {
    return {array_, buffer_, site_, origin_ + offset};
  }

 private:
  Global<T> array_;
  TraceBuffer buffer_;
  std::uint32_t site_;
  std::ptrdiff_t origin_;
};

/// `span` as a traced kernel argument; `name` is for error texts (a string literal).
template <class T>
Traced<T> traced(Span<T> span, const char* name, const TraceBuffer& buffer, std::uint32_t site) {
  return {global(span, name), buffer, site};
}

/// A trace buffer in device memory, owned by the host.
class Trace {
 public:
  /// Room for `capacity` records. Throws Error if the device has no room for them.
  Trace(Device& device, std::size_t capacity) : records_(device, capacity), count_(device, 1) {
    clear();
  }

  /// What the kernel takes.
  TraceBuffer view() { return {records_.span().data, count_.span().data, records_.count()}; }
  void clear() { count_.fill(0); }

  struct Log {
    std::vector<TraceRecord> records;  ///< by block and thread, each thread's in program order
    std::uint64_t dropped = 0;         ///< accesses for which there was no room
  };
  /// What was traced since the last `clear`. Waits for the device.
  Log download() const {
    const std::uint64_t total = count_.download().front();
    Log log;
    log.dropped = total > records_.count() ? total - records_.count() : 0;
    log.records = records_.download(static_cast<std::size_t>(total - log.dropped));
    // The counter gives each thread's own accesses in order, but between threads it gives whatever
    // order they happened to run in, which would differ from run to run.
    std::stable_sort(log.records.begin(), log.records.end(),
                     [](const TraceRecord& a, const TraceRecord& b) {
                       return a.block != b.block ? a.block < b.block : a.thread < b.thread;
                     });
    return log;
  }

 private:
  Buffer<TraceRecord> records_;
  Buffer<unsigned long long> count_;
};

}  // namespace tilestep::simt
