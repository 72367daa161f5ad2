#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/profile/trace.hpp"
#include "kernels/base/lab/report.hpp"

/// \file
/// What a trace says, counted: nothing here is modelled.
namespace tilestep::profile {

/// A stretch of a trace, in its nanoseconds.
struct Stretch {
  std::int64_t from_ns = 0, to_ns = 0;
  std::int64_t ns() const { return to_ns - from_ns; }
  bool operator==(const Stretch&) const = default;
};

/// Time that some stretches cover together, each moment once; sorted, none touch.
std::vector<Stretch> joined(std::vector<Stretch> stretches);
std::int64_t covered_ns(const std::vector<Stretch>& joined);

struct StreamUse {
  int track = 0;
  std::int64_t busy_ns = 0;
  std::int64_t works = 0;
};
struct DeviceUse {
  int device = 0;
  std::int64_t busy_ns = 0, kernel_ns = 0;  ///< with work of any kind; with kernels
  std::int64_t communication_ns = 0;        ///< with NCCL's kernels and no others
  std::vector<StreamUse> streams;
};

/// A device is idle between two works.
struct Gap {
  Stretch idle;
  int device = 0;
  int next = -1;      ///< the work that ends it
  bool late = false;  ///< the host had not yet submitted that when the device became idle
  int before = -1;  ///< the call of the same thread before the one that submitted it; −1: unknown
};
struct GapSum {
  std::int64_t count = 0, ns = 0;
  int longest = -1;  ///< in Numbers::gaps
};

struct KernelUse {
  int name = 0;
  std::int64_t launches = 0, of_graph = 0;
  std::int64_t ns = 0;  ///< sum over the launches
  std::int64_t wall_ns =
      0;                 ///< with launches that overlap counted once, on average over its devices
  int longest = -1;      ///< event
  int launch = -1;       ///< in Trace::launches, of the longest
  int launch_kinds = 0;  ///< different grids, blocks and registers
  double share = 0;      ///< of the stretch
  double mean_ns() const { return static_cast<double>(ns) / static_cast<double>(launches); }
  /// Amdahl's bound: how much faster the stretch would be without it.
  double bound() const { return share < 1 ? 1 / (1 - share) : 1e9; }
};

struct CopyUse {
  std::string direction;
  std::int64_t count = 0, bytes = 0, ns = 0;
  bool all_sized = true;  ///< the trace says how many bytes each had
};
struct WaitUse {
  int name = 0;
  std::int64_t count = 0, ns = 0;
  int longest = -1;  ///< event
};
struct Steps {
  std::string name;  ///< "ProfilerStep"; empty: the trace has none
  std::vector<Stretch> each;
  std::int64_t median_ns = 0, kernels = 0;  ///< of the middle one
};

struct Numbers {
  Stretch stretch;
  std::vector<DeviceUse> devices;
  std::vector<Gap> gaps;  ///< by time, of all devices
  GapSum all_gaps, late_gaps;
  std::map<int, GapSum> gaps_after;  ///< late ones by the name of the call before; −1: unknown
  std::vector<KernelUse> kernels;    ///< the longest first
  std::vector<CopyUse> copies;
  std::vector<WaitUse> waits;  ///< of the host, in calls that synchronize
  Steps steps;
  std::int64_t kernel_count = 0, graph_kernels = 0, calls = 0, graph_launches = 0;
  bool has_calls = false, has_ops = false, has_shapes = false;
  /// The device that was busy longest.
  const DeviceUse& busiest() const;
};

/// Of a stretch; nothing: from the first work of a device to the last. Events are cut at its ends. Throws Error if no
/// work lies in it.
Numbers numbers_of(const Trace& trace, std::optional<Stretch> stretch = {});

/// A question of the six, in their order: bottleneck, operator, shape, dtype, kernel, system.
struct Answer {
  std::string id, title;
  std::string text;    ///< with the numbers that show it
  bool known = true;   ///< the trace says it
  std::string record;  ///< how to record a trace that says more; empty: it says all
  Stretch shown;  ///< what it is about: a gap, a launch, a step; the whole stretch, if nothing less
  int kernel = -1;  ///< name of the kernel it is about
  int event = -1;   ///< a launch of that kernel; −1: none in particular
};
std::vector<Answer> answers_of(const Trace& trace, const Numbers& numbers);

/// All of it as tables, at most `top` kernels. Its device is the trace's, its date when that was recorded.
lab::Report report_of(const Trace& trace, const Numbers& numbers, std::size_t top);

/// "1.23 ms"
std::string time_of(std::int64_t ns);
std::string time_of(double ns);
std::string percent_of(double share);

}  // namespace tilestep::profile
