#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/lessons.hpp"
#include "kernels/machine/latency_hiding/occupancy/occupancy.hpp"
#include "kernels/machine/latency_hiding/params.hpp"

/// \file
/// What a run of the lesson on latency hiding shows: the warps of one multiprocessor over time, each probed load from
/// its issue to its first use, by clocks that the kernel wrote; what the hardware counted beside it; and what decides
/// how many warps there are. Little, "A Proof for the Queuing Formula L = λW", Operations Research 9 (1961); Volkov,
/// "Understanding Latency Hiding on GPUs", PhD thesis, UC Berkeley (2016).
namespace tilestep::latency_hiding {

/// Where a load of the pointer chase finds its address.
enum class Level { shared, l1, l2, dram };
constexpr auto names_of(Level) {
  return std::to_array<std::string_view>({"shared", "L1", "L2", "HBM"});
}
/// Hops of each level that a warp's probes show, in this order: kProbes together.
inline constexpr int kHops = 4;

/// A row of the picture: a resident warp, or of the kernel `tail` a multiprocessor.
struct Row {
  int sm = 0;             ///< its multiprocessor (%smid)
  int block = 0;          ///< of the launch; −1 for a multiprocessor
  int warp = 0;           ///< of the block; 0 for a multiprocessor
  int slot = 0;           ///< of the multiprocessor (%warpid); 0 for a multiprocessor
  int sub_partition = 0;  ///< slot mod 4; 0 for a multiprocessor
  bool operator==(const Row&) const = default;
};

/// A probe has two clocks. Of a load they are taken before it is issued and after the first instruction that needs what
/// it brought; of chains of multiply-adds, of the spilling fragment and of an arm of a branch at begin and end; of the
/// kernel tail when a block begins and ends.
enum class What { issue, use };
constexpr auto names_of(What) {
  return std::to_array<std::string_view>({"issue", "use"});
}

/// One clock. Row, number and what are the program's, and known beforehand; the clock is known from its step on.
struct Event {
  int row = 0;     ///< a place in Machine::rows
  int number = 0;  ///< of the probe in its row: 0 … ; of the kernel tail: the block
  What what = What::issue;
  int step = 1;            ///< of the picture, from which on it is known: 1 … steps()
  std::int64_t clock = 0;  ///< in Machine::unit, from the first event on
  bool operator==(const Event&) const = default;
};

/// A step of the picture: what happens to the followed row (the first one), or, of the kernel tail, a slice of time.
struct Moment {
  What what = What::issue;
  int number = 0;          ///< of the probe; −1: a slice of time alone, or the end
  std::int64_t clock = 0;  ///< all events with clocks up to this one are known at its step
  int in_flight = 0;       ///< probes of all rows that are issued and not used by then
  bool operator==(const Moment&) const = default;
};

/// A hardware counter, by the name that Nsight Compute has for it.
struct Counted {
  std::string metric;
  std::string label;  ///< in words
  double value = 0;
  std::string unit;
  bool operator==(const Counted&) const = default;
};

/// What the compiled kernel takes; all 0 where it is not known.
struct Compiled {
  int registers = 0;  ///< of a thread
  int static_shared_bytes = 0;
  int local_bytes = 0;     ///< of a thread: above 0, registers were spilled
  int runtime_blocks = 0;  ///< of a multiprocessor, as the CUDA runtime answers for this launch
  bool operator==(const Compiled&) const = default;
};

/// What is of the machine and not of the program: clocks, counters, the compiler's registers. On a GPU they are this
/// run's. Elsewhere those of the recorded run of the same knobs, if there is one, or of one warp's loads derived from
/// the recorded bench; else `unit` is "turns": the order in which each warp's own program comes to its clocks, which
/// says nothing of time, nor of one warp beside another.
struct Machine {
  std::string unit;         ///< "cycles" (of one multiprocessor), "ns" (tail: of all), or "turns"
  std::string device;       ///< "NVIDIA H200"; empty with turns
  std::string recorded_at;  ///< ISO date if these were recorded; empty if they are this run's
  bool derived = false;     ///< no clock was read: these follow from rates that were measured then
  std::vector<Row> rows;    ///< by sub-partition, then slot
  std::vector<Event> events;    ///< by clock, then row
  std::vector<Moment> moments;  ///< one a step
  std::int64_t span = 0;        ///< of the axis: the last clock, known from the start
  double probe_cost =
      0;  ///< of an empty probe, in `unit`: the median of those that the same launch made; 0 with turns
  double clock_mhz =
      0;  ///< of the multiprocessor during the launch, by its own two clocks; 0: not known
  Compiled compiled;
  std::vector<Counted> counted;  ///< empty where the chip does not count
  std::string not_counted;       ///< why, in a sentence; empty where it was counted
  bool operator==(const Machine&) const = default;

  bool has_clocks() const { return unit != "turns"; }
};

/// The machine's part of a run with these knobs, as far as it is known without a GPU: recorded, or derived.
std::optional<Machine> known_machine(const Params& params);

/// An arm of the branch in one warp: the lanes that voted for it.
struct Arm {
  int number = 0;           ///< of the arm, 0 …
  std::uint32_t voted = 0;  ///< lanes, by __ballot_sync before the branch
  bool operator==(const Arm&) const = default;
};

/// The kernel's source lines of issue, use and the arms of a branch (0: it has none).
std::array<int, 3> step_lines(Kernel kernel);

/// All that the picture is drawn from.
struct Trace {
  // Of the program: the same on all machines.
  Kernel kernel = Kernel::copy;
  Break broken = Break::none;
  int warps_per_sm = 0, block = 0, bytes_per_load = 0, loads_in_flight = 0, ilp = 0,
      max_registers = 0;
  int divergence = 0;
  int blocks_per_sm = 0;  ///< that the knobs ask for
  int dynamic_shared_bytes =
      0;                ///< of a block: what keeps further blocks out, and a bulk copy's stages
  int stage_bytes = 0;  ///< of a bulk copy; 0 of the others
  int blocks = 0;       ///< tail: of the launch; 0 of the others
  int multiprocessors = 132;   ///< that the tail is reckoned with: the machine's, or an H200's
  std::vector<Arm> arms;       ///< of the first warp; empty where nothing branches by lane
  std::array<int, 3> lines{};  ///< of the kernel's source: issue, use, and the arms' (0: none)
  // Of the machine.
  Machine machine;

  int steps() const { return static_cast<int>(machine.moments.size()); }
  /// Probes that a row has.
  int probes() const;
  /// Which level probe `number` of a chase asks.
  static Level level_of(int number) { return static_cast<Level>(number / kHops); }
  /// Bytes that the multiprocessor asks for before it must wait; 0 of kernels that do not copy.
  std::int64_t asked_bytes() const;
  /// Registers per thread: as compiled; where no GPU ran it, the limit that it is compiled with. 0: not known.
  int registers() const;
  Demand demand() const;
  /// By our own calculator, from the kernel's registers and this launch.
  Occupancy occupancy() const { return occupancy_of(demand()); }
  /// tail: blocks over those that fit at a time.
  double waves() const;
  bool operator==(const Trace&) const = default;
};

/// The tables that say what a trace says.
std::vector<lab::Table> tables_of(const Trace& trace);

}  // namespace tilestep::latency_hiding
