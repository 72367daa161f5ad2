#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/lab/occupancy.hpp"
#include "kernels/lessons.hpp"
#include "kernels/machine/latency_hiding/params.hpp"

/// \file
/// The data of a run of the lesson on latency hiding: the warps of one multiprocessor over time, each probed load from
/// its issue to its first use, by clocks that the kernel wrote; the hardware's counts beside it; and the limits on
/// resident warps. Little, "A Proof for the Queuing Formula L = λW", Operations Research 9 (1961); Volkov,
/// "Understanding Latency Hiding on GPUs", PhD thesis, UC Berkeley (2016).
namespace tilestep::latency_hiding {

using lab::Demand, lab::kLimits, lab::Limit, lab::Multiprocessor, lab::Occupancy, lab::occupancy_of;

/// The level that serves a load of the pointer chase.
enum class Level { shared, l1, l2, dram };
constexpr auto names_of(Level) {
  return std::to_array<std::string_view>({"shared", "L1", "L2", "HBM"});
}
/// Hops of each level that a warp's probes show, in this order: kProbes together.
inline constexpr int kHops = 4;

/// A row of the picture: a resident warp, or for the kernel `tail` a multiprocessor.
struct Row {
  int sm = 0;             ///< its multiprocessor (%smid)
  int block = 0;          ///< of the launch; −1 for a multiprocessor
  int warp = 0;           ///< of the block; 0 for a multiprocessor
  int slot = 0;           ///< of the multiprocessor (%warpid); 0 for a multiprocessor
  int sub_partition = 0;  ///< slot mod 4; 0 for a multiprocessor
  bool operator==(const Row&) const = default;
};

/// A probe has two clocks. For a load they are taken before it is issued and after the first instruction that needs its
/// value; for chains of FMAs, the spilling fragment and an arm of a branch, at begin and end; for the kernel tail, when
/// a block begins and ends.
enum class What { issue, use };
constexpr auto names_of(What) {
  return std::to_array<std::string_view>({"issue", "use"});
}

/// One clock. `row`, `number` and `what` follow from the program and are known beforehand, the clock from its step on.
struct Event {
  int row = 0;     ///< a place in Machine::rows
  int number = 0;  ///< of the probe in its row: 0 … ; for the kernel tail: the block
  What what = What::issue;
  int step = 1;            ///< of the picture, from which it is known: 1 … steps()
  std::int64_t clock = 0;  ///< in Machine::unit, from the first event on
  bool operator==(const Event&) const = default;
};

/// A step of the picture: an event of the followed row (the first one), or, for the kernel tail, a slice of time.
struct Moment {
  What what = What::issue;
  int number = 0;          ///< of the probe; −1: a slice of time alone, or the end
  std::int64_t clock = 0;  ///< all events with clocks up to this one are known at its step
  int in_flight = 0;       ///< probes of all rows that are issued but not used by then
  bool operator==(const Moment&) const = default;
};

/// A hardware counter, by its name in Nsight Compute.
struct Counted {
  std::string metric;
  std::string label;  ///< in words
  double value = 0;
  std::string unit;
  bool operator==(const Counted&) const = default;
};

/// Resources of the compiled kernel; all 0 if not known.
struct Compiled {
  int registers = 0;  ///< per thread
  int static_shared_bytes = 0;
  int local_bytes = 0;     ///< per thread: above 0, registers were spilled
  int runtime_blocks = 0;  ///< per multiprocessor, the CUDA runtime's answer for this launch
  bool operator==(const Compiled&) const = default;
};

/// Data that depends on the machine, not on the program: clocks, counters, the compiler's registers. On a GPU it is
/// this run's. Elsewhere it is from the recorded run with the same knobs, if there is one, or for one warp's loads
/// derived from the recorded bench. Otherwise `unit` is "turns": the order in which each warp's own program reaches its
/// clocks, which tells nothing about time, nor about the order between warps.
struct Machine {
  std::string unit;           ///< "cycles" (of one multiprocessor), "ns" (tail: of all), or "turns"
  std::string device;         ///< "NVIDIA H200"; empty with turns
  std::string recorded_at;    ///< ISO date if these were recorded; empty if they are this run's
  bool derived = false;       ///< no clock was read: these follow from rates measured then
  std::vector<Row> rows;      ///< by sub-partition, then slot
  std::vector<Event> events;  ///< by clock, then row
  std::vector<Moment> moments;  ///< one per step
  std::int64_t span = 0;        ///< of the axis: the last clock, known from the start
  double probe_cost = 0;  ///< of an empty probe, in `unit`: median of the launch; 0 with turns
  double clock_mhz = 0;   ///< of the multiprocessor, by its own two clocks; 0: not known
  Compiled compiled;
  std::vector<Counted> counted;  ///< empty if the chip does not count
  std::string not_counted;       ///< why not, in a sentence; empty if it was counted
  bool operator==(const Machine&) const = default;

  bool has_clocks() const { return unit != "turns"; }
};

/// A probe from its issue to its first use.
struct Probe {
  int row = 0, number = 0;
  std::int64_t issue = -1, use = -1;  ///< clocks; −1: none was kept
  int issue_step = 0;                 ///< from which the clock is known; 0: never
  int use_step = 0;                   ///< after the last step: never
  bool whole() const { return issue >= 0 && use >= 0; }
};
/// By row and number.
std::vector<Probe> probes_of(const Machine& machine);

/// The machine's part of a run with these knobs as far as known without a GPU: recorded, or derived.
std::optional<Machine> known_machine(const Params& params);

/// An arm of the branch in one warp: the lanes that voted for it.
struct Arm {
  int number = 0;           ///< of the arm, 0 …
  std::uint32_t voted = 0;  ///< lanes, by __ballot_sync before the branch
  bool operator==(const Arm&) const = default;
};

/// The kernel's source lines of issue, use and the arms of a branch (0: it has none).
std::array<int, 3> step_lines(Kernel kernel);

/// All data that the picture is drawn from.
struct Trace {
  // From the program: the same on all machines.
  Kernel kernel = Kernel::copy;
  Break broken = Break::none;
  int warps_per_sm = 0, block = 0, bytes_per_load = 0, loads_in_flight = 1, ilp = 0;
  int max_registers = 0, divergence = 1;
  int blocks_per_sm = 0;         ///< set by the knobs
  int dynamic_shared_bytes = 0;  ///< per block: keeps further blocks out; a bulk copy's stages
  int stage_bytes = 0;           ///< of a bulk copy; otherwise 0
  int blocks = 0;                ///< tail: of the launch; otherwise 0
  int multiprocessors = 132;     ///< for the tail: the machine's, or an H200's
  std::vector<Arm> arms;         ///< of the first warp; empty if nothing branches by lane
  std::array<int, 3> lines{};    ///< of the kernel's source: issue, use, and the arms' (0: none)
  // From the machine.
  Machine machine;

  int steps() const { return static_cast<int>(machine.moments.size()); }
  /// Probes per row.
  int probes() const;
  /// The level that probe `number` of a chase loads from.
  static Level level_of(int number) { return static_cast<Level>(number / kHops); }
  /// The arm of the branch that probe `number` is in.
  int arm_of(int number) const {
    return number / (is_copy(kernel) ? loads_in_flight : 1) % divergence;
  }
  /// Bytes that the multiprocessor requests before it must wait; 0 for kernels that do not copy.
  std::int64_t asked_bytes() const;
  /// Registers per thread: as compiled; if no GPU ran it, the limit that it is compiled with. 0: not known.
  int registers() const;
  Demand demand() const;
  /// By our own calculator, from the kernel's registers and this launch.
  Occupancy occupancy() const { return occupancy_of(demand()); }
  /// tail: blocks over the number that fit at a time.
  double waves() const;
  bool operator==(const Trace&) const = default;
};

/// The tables that follow from a trace.
std::vector<lab::Table> tables_of(const Trace& trace);

}  // namespace tilestep::latency_hiding
