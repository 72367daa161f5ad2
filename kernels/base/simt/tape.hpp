#pragma once

/// \file
/// How a kernel records what it does. It takes a tape as a parameter: `NoTape` when it is timed, which
/// the compiler removes entirely, and `Tape` when it is explained. A tape records:
///
///     tape.note(site, index, value)   a number or a small structure that the kernel has at hand
///     tape.traced(array, site)        an accessor that records every a[i]: thread, address, load or
///                                     store; without a tape it is the array itself
///     tape.put(kept, index, value)    a note in an array of the host's, by its index: one store, where
///                                     the atomic of a note would disturb a clock
///     tape.add(kept, index, amount)   adds to such a number, atomically
///     tape.tick(site, number, clock)  the clock of a site's number-th event (hopper::clock, ring.hpp)
///     tape.does(fault)                whether the kernel is to be wrong in this way, an enumerator
///
/// `site` identifies the note or array within the kernel. The host owns the tape as a `Trace`; of an array that is
/// `kept`, and of clocks, it keeps the buffer.
/// Included by simt.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

// The tape is internal: an edited kernel's watch (global_watch.hpp) does not track writes to it.
#if defined(SIMT_EDITED) && !defined(__CUDACC__)
#define SIMT_UNWATCHED __attribute__((no_sanitize("thread")))
#else
#define SIMT_UNWATCHED
#endif

namespace tilestep::simt {

enum class AccessKind : std::uint16_t { load, store };

/// One access of one thread.
struct TraceRecord {
  std::uint64_t byte_offset;  ///< of the first byte, from the start of the array
  std::uint32_t block;        ///< linear, x fastest
  std::uint32_t thread;       ///< linear in its block, x fastest
  std::uint32_t site;         ///< as the accessor was made with
  std::uint16_t bytes;        ///< size of the access
  AccessKind kind;
};

/// A tape entry: an access, or eight bytes of a note; a longer note takes several consecutive
/// entries.
struct TapeEntry {
  std::uint64_t data;  ///< byte offset of the access, or bytes of the note
  std::uint32_t block;
  std::uint32_t thread;
  std::uint32_t site;
  std::uint32_t index;  ///< of the note
  std::uint16_t bytes;  ///< of the access; 0: a note
  AccessKind kind;
  std::uint32_t unused = 0;  ///< written too, so that a whole entry may be copied
};

/// How many entries of a tape a note of type T takes.
template <class T>
inline constexpr std::size_t kNoteEntries = (sizeof(T) + 7) / 8;

template <class T>
class Traced;

/// The tape of a timed kernel: records nothing.
struct NoTape {
  static constexpr bool kRecords = false;

  __device__ constexpr bool chosen(int) const { return false; }
  __device__ constexpr bool in_its_block() const { return false; }
  template <class T>
  __device__ void note(std::uint32_t, std::int64_t, const T&) const {}
  template <class T>
  __device__ void put(std::uint32_t, std::int64_t, const T&) const {}
  template <class T>
  __device__ void add(std::uint32_t, std::int64_t, T) const {}
  __device__ void tick(int, int, long long) const {}
  template <class Fault>
  __device__ constexpr bool does(Fault) const {
    return false;
  }
  template <class Array>
  __device__ Array traced(Array array, std::uint32_t) const {
    return array;
  }
};

/// The tape of an explained kernel. It never writes past `capacity`; the counter goes on, so that
/// the host knows how much was dropped.
struct Tape {
  static constexpr bool kRecords = true;

  TapeEntry* entries = nullptr;
  unsigned long long* count = nullptr;
  unsigned long long capacity = 0;
  int chosen_thread = 0;
  /// Loads, and stores, are recorded for threads of a block whose number is a multiple of these.
  std::uint32_t loads_of = 1, stores_of = 1;
  /// An array that put and add write to.
  struct Kept {
    void* data = nullptr;
    std::size_t count = 0;
    std::size_t bytes = 0;  ///< of an element
  };
  static constexpr std::uint32_t kMostKept = 6;
  Kept kept[kMostKept] = {};
  Span<long long> clocks = {};  ///< of tick: a row of `numbers` for each site
  int numbers = 0;
  int chosen_block = 0;  ///< whose events have clocks
  int fault = 0;         ///< what `does` is true of

  /// False for a tape that records nothing.
  explicit operator bool() const {
    return entries != nullptr || clocks.data != nullptr || kept[0].data != nullptr;
  }
  /// Makes `put(site, i, value)` write element i of `array`. From site 0 on; T is what is put.
  template <class T>
  Tape& keep(std::uint32_t site, Span<T> array) {
    static_assert(std::is_trivially_copyable_v<T>);
    kept[site] = {array.data, array.count, sizeof(T)};
    return *this;
  }

  /// Whether `thread` is the one whose registers are shown.
  __device__ bool chosen(int thread) const { return thread == chosen_thread; }

  /// Whether this block is the one whose events have clocks.
  __device__ bool in_its_block() const {
    return static_cast<int>((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) ==
           chosen_block;
  }
  template <class Fault>
  __device__ bool does(Fault what) const {
    return fault == static_cast<int>(what);
  }

  /// Element `index` of an array that is kept; null outside it, or of another type.
  template <class T>
  __device__ SIMT_UNWATCHED T* at(std::uint32_t site, std::int64_t index) const {
    const Kept& array = kept[site];
    const bool inside = index >= 0 && static_cast<std::size_t>(index) < array.count;
    return inside && array.bytes == sizeof(T) ? static_cast<T*>(array.data) + index : nullptr;
  }
  template <class T>
  __device__ SIMT_UNWATCHED void put(std::uint32_t site, std::int64_t index, const T& value) const {
    if (T* to = at<T>(site, index)) *to = value;
  }
  template <class T>
  __device__ SIMT_UNWATCHED void add(std::uint32_t site, std::int64_t index, T amount) const {
    if (T* to = at<T>(site, index)) atomicAdd(to, amount);
  }
  __device__ SIMT_UNWATCHED void tick(int site, int number, long long clock) const {
    const std::size_t at = static_cast<std::size_t>(site) * static_cast<std::size_t>(numbers) +
                           static_cast<std::size_t>(number);
    if (number >= 0 && number < numbers && at < clocks.count) clocks.data[at] = clock;
  }

  /// Records `value` (trivially copyable) as note `index` of this site.
  template <class T>
  __device__ SIMT_UNWATCHED void note(std::uint32_t site, std::int64_t index,
                                      const T& value) const {
    static_assert(std::is_trivially_copyable_v<T>);
    std::uint64_t words[kNoteEntries<T>] = {};
    memcpy(words, &value, sizeof(T));
    const unsigned long long first =
        atomicAdd(count, static_cast<unsigned long long>(kNoteEntries<T>));
    for (unsigned i = 0; i < kNoteEntries<T>; ++i) {
      put(first + i, site, words[i], static_cast<std::uint32_t>(index), 0, AccessKind::store);
    }
  }

  /// `array` with every access recorded under this site.
  template <class T>
  __device__ Traced<T> traced(Global<T> array, std::uint32_t site) const {
    return {array, *this, site};
  }
#if !defined(__CUDACC__)
  template <class T>
  Traced<T> traced(T* array, std::uint32_t site) const {
    return {Global<T>(array), *this, site};
  }
#endif

  __device__ void access(std::uint32_t site, std::uint64_t byte_offset, std::uint16_t bytes,
                         AccessKind kind) const {
    if (thread_number() % (kind == AccessKind::load ? loads_of : stores_of) != 0) return;
    put(atomicAdd(count, 1ULL), site, byte_offset, 0, bytes, kind);
  }

 private:
  __device__ static std::uint32_t thread_number() {
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  }
  __device__ SIMT_UNWATCHED void put(unsigned long long slot, std::uint32_t site,
                                     std::uint64_t data, std::uint32_t index, std::uint16_t bytes,
                                     AccessKind kind) const {
    if (slot >= capacity) return;
    entries[slot] = {
        data,
        (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x,
        thread_number(),
        site,
        index,
        bytes,
        kind,
        0,
    };
  }
};

/// Calls `run` with the tape, or with NoTape where `tape` is empty.
template <class Run>
void with_tape(const Tape& tape, Run run) {
  tape ? run(tape) : run(NoTape{});
}

/// The result of `a[i]` for a `Traced<T>`: reading it loads, assigning to it stores, and both are
/// recorded.
template <class T>
class TracedElement {
 public:
  using Value = std::remove_const_t<T>;

  __device__ TracedElement(T& element, const Tape& tape, std::uint32_t site,
                           std::uint64_t byte_offset)
      : element_(element), tape_(tape), site_(site), byte_offset_(byte_offset) {}

  __device__ operator Value() const {
    tape_.access(site_, byte_offset_, sizeof(T), AccessKind::load);
    return element_;
  }
  __device__ const TracedElement& operator=(Value value) const {
    static_assert(!std::is_const_v<T>, "a store to an array of const elements");
    tape_.access(site_, byte_offset_, sizeof(T), AccessKind::store);
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
  const Tape& tape_;
  std::uint32_t site_;
  std::uint64_t byte_offset_;
};

/// An accessor whose every access is recorded under the number `site`. Offsets are counted from
/// where `array` pointed when the accessor was made; `+` keeps that origin.
template <class T>
class Traced {
 public:
  __host__ __device__ Traced(Global<T> array, const Tape& tape, std::uint32_t site,
                             std::ptrdiff_t origin = 0)
      : array_(array), tape_(tape), site_(site), origin_(origin) {}

  __device__ TracedElement<T> operator[](std::ptrdiff_t index) const {
    const std::ptrdiff_t bytes = (origin_ + index) * static_cast<std::ptrdiff_t>(sizeof(T));
    return {array_[origin_ + index], tape_, site_, static_cast<std::uint64_t>(bytes)};
  }
  __device__ TracedElement<T> operator*() const { return (*this)[0]; }
  __host__ __device__ Traced operator+(std::ptrdiff_t offset) const {
    return {array_, tape_, site_, origin_ + offset};
  }

 private:
  Global<T> array_;
  Tape tape_;
  std::uint32_t site_;
  std::ptrdiff_t origin_;
};

/// `span` as a traced kernel argument; `name` is for error texts (a string literal).
template <class T>
Traced<T> traced(Span<T> span, const char* name, const Tape& tape, std::uint32_t site) {
  return {global(span, name), tape, site};
}

/// Throw Error (a failed check) for tapes no built-in kernel writes: an index out of range, too few notes, too many.
[[noreturn]] void refuse_note(std::uint32_t index, std::size_t count);
[[noreturn]] void refuse_unrecorded(const char* what, std::size_t recorded, std::size_t count);
[[noreturn]] void refuse_long_tape(std::uint64_t entries, std::size_t room);

/// A tape in device memory, owned by the host.
class Trace {
 public:
  /// Room for `capacity` entries: an access takes one, a note of type T `kNoteEntries<T>`. Throws
  /// Error if the device has no room for them.
  Trace(Device& device, std::size_t capacity) : entries_(device, capacity), count_(device, 1) {
    clear();
  }

  /// The kernel's tape argument; `chosen_thread` is the thread whose registers are shown.
  Tape tape(int chosen_thread = 0) {
    return {entries_.span().data, count_.span().data, entries_.count(), chosen_thread};
  }
  void clear() { count_.fill(0); }

  class Log {
   public:
    std::vector<TraceRecord> records;  ///< accesses by block and thread, each thread's in order

    /// Notes 0 … count − 1 of a site; `missing` where the kernel wrote none. Throws Error for a note beyond them, which
    /// an edited kernel can write.
    template <class T>
    std::vector<T> notes(std::uint32_t site, std::size_t count, const T& missing) const {
      std::size_t unwritten = 0;
      return notes(site, count, missing, unwritten);
    }
    /// The same for a kernel that must write all of them; `what` names them in the Error if it does not: "the steps".
    template <class T>
    std::vector<T> all_notes(std::uint32_t site, std::size_t count, const char* what) const {
      std::size_t unwritten = 0;
      std::vector<T> values = notes(site, count, T{}, unwritten);
      if (unwritten > 0) refuse_unrecorded(what, count - unwritten, count);
      return values;
    }

   private:
    friend class Trace;

    template <class T>
    std::vector<T> notes(std::uint32_t site, std::size_t count, const T& missing,
                         std::size_t& unwritten) const {
      std::vector<T> values(count, missing);
      std::vector<bool> written(count);
      for (auto note = notes_.begin(); note != notes_.end(); ++note) {
        if (note->site != site) continue;
        if (note->index >= count) refuse_note(note->index, count);
        written[note->index] = true;
        T& value = values[note->index];
        std::uint64_t words[kNoteEntries<T>] = {note->data};
        for (std::size_t i = 1; i < kNoteEntries<T>; ++i) words[i] = (++note)->data;
        std::memcpy(static_cast<void*>(&value), words, sizeof(T));
      }
      unwritten = static_cast<std::size_t>(std::count(written.begin(), written.end(), false));
      return values;
    }

    std::vector<TapeEntry> notes_;
  };
  /// Everything recorded since the last `clear`. Waits for the device. Throws Error if some of it did not fit.
  Log download() const {
    const std::uint64_t total = count_.download().front();
    Log log;
    if (total > entries_.count()) refuse_long_tape(total, entries_.count());
    for (const TapeEntry& e : entries_.download(static_cast<std::size_t>(total))) {
      if (e.bytes == 0) {
        log.notes_.push_back(e);
      } else {
        log.records.push_back({e.data, e.block, e.thread, e.site, e.bytes, e.kind});
      }
    }
    // The counter gives each thread's own accesses in order, but between threads it gives whatever
    // order they happened to run in, which would differ from run to run.
    std::stable_sort(log.records.begin(), log.records.end(),
                     [](const TraceRecord& a, const TraceRecord& b) {
                       return a.block != b.block ? a.block < b.block : a.thread < b.thread;
                     });
    return log;
  }

 private:
  Buffer<TapeEntry> entries_;
  Buffer<unsigned long long> count_;
};

}  // namespace tilestep::simt
