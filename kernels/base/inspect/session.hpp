#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/inspect/lockstep.hpp"
#include "kernels/base/inspect/requests.hpp"
#include "kernels/base/lab/names.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/simt/backends.hpp"
#include "kernels/base/simt/emulator/access_listener.hpp"
#include "kernels/base/simt/emulator/fault_place.hpp"
#include "kernels/base/simt/emulator/shared_races.hpp"
#include "kernels/base/simt/emulator/shared_variables.hpp"
#include "kernels/base/simt/program.hpp"
#include "kernels/base/workbench/finding_kind.hpp"

namespace tilestep::inspect {

using Kind = lab::FindingKind;

struct Finding {
  Kind kind;
  unsigned line = 0, other_line = 0;  ///< 0: to be found from the callers, or not known
  std::vector<const void*> here, there;
  int launch = 0;  ///< 1-based; 0: the host
  std::string text;
};

/// A piece of memory that the program asked for.
struct Allocation {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0, element = 0;
  std::string name;  ///< "d_x", or "the array of line 12"
  unsigned line = 0;
  program::Memory kind = program::Memory::device;
  std::vector<bool> written;  ///< of each byte
  std::vector<bool> used;     ///< of each sector, by the launch that runs
  /// The last copy from the host: its line, and how much of the array it wrote.
  unsigned copied_in = 0;
  std::size_t copied_bytes = 0;
  /// By the launch that wrote it last: the elements from the first on without a gap, and whether a thread wrote twice.
  int written_by = 0;
  std::size_t written_low = 0, written_high = 0, written_times = 0;
};

struct LaunchRecord {
  std::string kernel;
  unsigned line = 0;
  program::Shape shape;
  bool traced = false;
  LaunchTrace trace;
  std::size_t once = 0;                 ///< bytes of the different sectors of arrays that it uses
  std::set<std::uintptr_t> statics;     ///< where its `__shared__` variables begin that it uses
  std::size_t static_shared_bytes = 0;  ///< of those
};

enum class What { allocates, frees, copies, fills, launches, waits };
constexpr auto names_of(What) {
  return std::to_array<std::string_view>({"allocate", "free", "copy", "fill", "launch", "wait"});
}
struct Event {
  What what;
  unsigned line = 0;
  std::string name, detail;
  std::size_t bytes = 0;
  int stream = 0, launch = 0;
};

struct Options {
  simt::ThreadOrder order = simt::ThreadOrder::ascending;
  std::uint64_t seed = 1;
  bool traces = true;       ///< keeps requests; else only what goes wrong
  std::string source = "";  ///< the file's name, as it is compiled: "edited/<source>"
};

/// A running program: what it has, what it did, what was found. The one of this process.
class Session final : public simt::emulated::AccessListener {
 public:
  static constexpr int kTracedOfPlace =
      8;  ///< launches of a kernel from one line whose requests are kept
  static constexpr std::size_t kMostEvents = 4000, kMostFindings = 200;

  explicit Session(Options options, std::function<void(int status)> end);
  ~Session() override;
  static Session& current();

  // What program.hpp's functions do.
  int allocate(void** to, std::size_t bytes, const char* name, std::size_t element,
               program::Memory kind, simt::Location at);
  int release(void* memory, program::Memory kind, simt::Location at);
  int copy(const program::Copy& copy, simt::Location at);
  int fill(void* to, int byte, std::size_t bytes, int stream, simt::Location at);
  bool device_range(const program::Range& range, const char* what, simt::Location at);
  void refuse_call(const char* what, const char* why, simt::Location at);
  void launch(const char* name, const program::Shape& shape, void (*thread)(void*), void* data,
              simt::Location at);
  int allow_shared(int bytes);
  int wait(const char* word, simt::Location at);
  int last_error(bool reset);
  void host_allocated(void* memory, std::size_t bytes);
  void host_freed(void* memory);

  void access(std::uintptr_t address, std::size_t bytes, simt::emulated::SharedUse use,
              void** frame) override;
  void block_begins(std::uint64_t block) override;
  void block_met() override;
  void block_ended() override;
  /// A thread comes to code that no branch divides; it compares, and branches on that next.
  void stepped(Code code, void** frame);
  void compared(Code code);

  /// Looks at what is only known at the end. `whole`: the program came to its own, and well.
  void conclude(bool whole);
  void find(Finding finding);
  const std::vector<Finding>& findings() const { return findings_; }
  const std::deque<LaunchRecord>& launches() const { return launches_; }
  const std::vector<Event>& events() const { return events_; }
  const Options& options() const { return options_; }
  bool timed_by_events = false;  ///< the program has asked for times

 private:
  struct Host {
    std::size_t bytes;
  };
  /// A copy to the host that took fewer bytes than the array has, as many as it has elements.
  struct Short {
    std::uintptr_t begin, end;  ///< of what was left out, on the host
    unsigned line;
    std::string text;
  };

  unsigned line_of(const simt::Location& at) const;
  const std::string& kernel_of(const Finding& finding) const {
    return launches_[static_cast<std::size_t>(finding.launch) - 1].kernel;
  }
  Allocation* at(std::uintptr_t address);
  Allocation* device_memory(std::uintptr_t address);
  std::string named(const Allocation& array, std::uintptr_t address) const;
  void add(Event event);
  int fail(int error);
  bool on_host_stack(std::uintptr_t address) const;
  bool is_host(std::uintptr_t address) const;
  bool check_row(const program::Copy& copy, std::uintptr_t to, std::uintptr_t from, unsigned line);
  void check_size(const program::Copy& copy, unsigned line);
  void check_coverage(Allocation& array, unsigned line);
  void look_closer(Allocation& array, std::size_t from, std::size_t bytes) const;
  bool was_written(Allocation& array, std::uintptr_t address, std::size_t bytes, bool all) const;
  void mark(Allocation& array, std::uintptr_t address, std::size_t bytes);
  void access_on_host(std::uintptr_t address, std::size_t bytes, simt::emulated::SharedUse use,
                      void** frame);
  void found_by_guard();
  /// The `__shared__` variable of the source at this address; null: none.
  const simt::emulated::SharedVariable* static_at(std::uintptr_t address) const;
  void use(LaunchRecord& record, Allocation* array, std::uintptr_t address, std::size_t bytes);

  Options options_;
  std::function<void(int)> end_;
  std::unique_ptr<simt::Device> device_;
  std::map<std::uintptr_t, Allocation> memory_;
  Allocation* recent_ = nullptr;
  std::set<std::uintptr_t> freed_;
  std::map<std::uintptr_t, Host> host_;
  std::uintptr_t stack_low_ = 0, stack_high_ = 0;
  std::vector<Short> short_;
  std::deque<LaunchRecord> launches_;
  std::map<std::pair<unsigned, std::string>, int> of_place_;
  std::vector<Event> events_;
  std::vector<Finding> findings_;
  std::set<std::uint64_t> told_;  ///< places that something was said of
  Lockstep lockstep_;
  /// Of the block: who watches it for races stops after the first.
  simt::emulated::SharedRaces::Region dynamic_, statics_;
  std::uint64_t seen_variables_ = 0;
  std::vector<simt::emulated::SharedVariable> variables_;
  int running_ = 0;  ///< the launch; 0: none
  int error_ = 0;
  unsigned refused_line_ = 0;  ///< of a launch whose error nobody asked for yet
  int most_shared_ = 48 << 10;
};

/// "4 blocks of 256 threads"
std::string describe(const program::Shape& shape);
inline std::size_t threads_of(const program::Shape& shape) {
  return std::size_t{shape.grid.x} * shape.grid.y * shape.grid.z * shape.block.x * shape.block.y *
         shape.block.z;
}
inline std::uintptr_t address_of(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory);
}
/// Whether so many bytes from `address`, which is in the array or at its end, are in it.
inline bool ends_in(const Allocation& array, std::uintptr_t address, std::size_t bytes) {
  return address - array.begin <= array.bytes && bytes <= array.bytes - (address - array.begin);
}
inline std::string bytes_text(std::size_t bytes) {
  return lab::plural(static_cast<std::int64_t>(bytes), "byte");
}

}  // namespace tilestep::inspect
