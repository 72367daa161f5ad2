// The report of a run: the trace as tables, numbers and one sentence.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/timing.hpp"
#include "kernels/machine/latency_hiding/run/run.hpp"

namespace tilestep::latency_hiding {
namespace {

using lab::column, lab::real, lab::whole;

/// A probe's subject: "load 3", "L2, hop 1".
std::string probe_text(const Trace& trace, int number) {
  switch (trace.kernel) {
    case Kernel::copy:
      return fmt::format("load {}", number);
    case Kernel::bulk_copy:
      return fmt::format("stage {}", number);
    case Kernel::chase:
      return fmt::format("{}, hop {}", name_of(Trace::level_of(number)), number % kHops);
    case Kernel::fma:
      return fmt::format("segment {}", number);
    case Kernel::spill:
      return fmt::format("round {}", number);
    case Kernel::diverge:
      return fmt::format("arm {}, round {}", number % trace.divergence, number / trace.divergence);
    case Kernel::tail:
      break;
  }
  return fmt::format("block {}", number);
}

std::string moment_text(const Trace& trace, const Moment& moment) {
  if (trace.kernel == Kernel::tail) return "a slice of time";
  if (moment.number < 0) return "all are through";
  const bool issue = moment.what == What::issue;
  const std::string probe = probe_text(trace, moment.number);
  if (is_copy(trace.kernel) || trace.kernel == Kernel::chase) {
    return fmt::format("{} is {}", probe, issue ? "issued" : "there and used");
  }
  return fmt::format("{} {}", probe, issue ? "begins" : "ends");
}

lab::Table steps_table(const Trace& trace) {
  const std::string unit = trace.machine.unit;
  lab::Table table{"steps",
                   "The followed warp's steps, and how much is in flight at each",
                   {whole("step"), whole("clock", "clock", unit), column("what", "what"),
                    whole("in_flight", "in flight", "probes")}};
  if (trace.kernel == Kernel::tail) table.title = "Slices of time, and the blocks that are running";
  int step = 0;
  for (const Moment& moment : trace.machine.moments) {
    table.add({++step, moment.clock, moment_text(trace, moment), moment.in_flight});
  }
  return table;
}

lab::Table probes_table(const Trace& trace, const std::vector<Probe>& probes) {
  const std::string unit = trace.machine.unit;
  lab::Table table{"probes",
                   "Probes of the followed warp",
                   {whole("number"), column("what", "what"), whole("issue", "issue", unit),
                    whole("use", "use", unit), real("latency", "latency", unit, 0)}};
  const bool arms = !trace.arms.empty();
  if (arms) {
    table.columns.push_back(whole("lanes", "lanes that voted"));
    table.columns.push_back(column("voted", "lanes, as bits"));
  }
  for (const Probe& probe : probes) {
    if (probe.row > 0 || !probe.whole() || trace.kernel == Kernel::tail) continue;
    std::vector<lab::Cell> cells = {
        probe.number, probe_text(trace, probe.number), probe.issue, probe.use,
        static_cast<double>(probe.use - probe.issue) - trace.machine.probe_cost};
    if (arms) {
      const std::uint32_t voted =
          trace.arms.at(static_cast<std::size_t>(trace.arm_of(probe.number))).voted;
      cells.insert(cells.end(), {std::popcount(voted), fmt::format("{:08x}", voted)});
    }
    table.add(std::move(cells));
  }
  return table;
}

lab::Table rows_table(const Trace& trace, const std::vector<Probe>& all) {
  const bool tail = trace.kernel == Kernel::tail;
  lab::Table table{
      "rows",
      tail ? "Multiprocessors" : "Resident warps of one multiprocessor",
      {whole("row"), whole("sm", "SM"), whole("block"), whole("warp"), whole("slot", "slot"),
       whole("sub_partition", "sub-partition"), whole("probes", tail ? "blocks" : "probes"),
       real("mean_latency", tail ? "mean time of a block" : "mean latency", trace.machine.unit,
            0)}};
  for (int r = 0; r < std::ssize(trace.machine.rows); ++r) {
    const Row& row = trace.machine.rows[static_cast<std::size_t>(r)];
    double sum = 0;
    int probes = 0;
    for (const Probe& probe : all) {
      if (probe.row != r || !probe.whole()) continue;
      sum += static_cast<double>(probe.use - probe.issue) - (tail ? 0 : trace.machine.probe_cost);
      ++probes;
    }
    const auto of_warp = [&](int number) { return tail ? lab::Cell() : lab::Cell(number); };
    table.add({r, row.sm, of_warp(row.block), of_warp(row.warp), of_warp(row.slot),
               of_warp(row.sub_partition), probes,
               probes > 0 ? lab::Cell(sum / probes) : lab::Cell()});
  }
  return table;
}

lab::Table occupancy_table(const Trace& trace) {
  const Occupancy all = trace.occupancy();
  const Multiprocessor sm;
  const bool known = trace.registers() > 0;
  lab::Table table{"occupancy",
                   "Blocks that each limit admits",
                   {column("limit", "limit"), whole("asked", "per block"), whole("of", "of"),
                    whole("blocks"), column("binds", "")}};
  const std::array<lab::Cell, kLimits> asked = {
      trace.block, known ? lab::Cell(all.registers_allocated * all.warps_allocated) : lab::Cell(),
      all.shared_allocated, 1};
  const std::array<int, kLimits> of = {sm.warps * kLanes, sm.registers, all.shared_carveout,
                                       sm.blocks};
  for (std::size_t i = 0; i < kLimits; ++i) {
    const auto limit = static_cast<Limit>(i);
    const bool unknown = limit == Limit::registers && !known;
    table.add({name_of(limit), asked[i], of[i], unknown ? lab::Cell() : lab::Cell(all.blocks[i]),
               limit == all.binding ? "binds" : ""});
  }
  return table;
}

lab::Table counted_table(const Trace& trace) {
  lab::Table table{"counted",
                   "Counted by the hardware in a separate run",
                   {column("metric", "metric"), column("label", "what"),
                    real("value", "value", "", 3), column("unit", "unit")}};
  for (const Counted& one : trace.machine.counted)
    table.add({one.metric, one.label, one.value, one.unit});
  return table;
}

/// A number of the machine: traced here, or from its recording.
lab::Measurement of_machine(const Machine& machine, lab::Measurement number) {
  if (machine.recorded_at.empty() || machine.derived) return number;
  number.provenance = lab::Provenance::recorded;
  number.recorded_at = machine.recorded_at;
  number.device = machine.device;
  return number;
}

/// Mean over the rows shown, less the probe's cost.
double shown_latency(const Trace& trace) {
  double sum = 0;
  for (const Event& event : trace.machine.events) {
    sum += static_cast<double>(event.what == What::use ? event.clock : -event.clock);
  }
  const auto probes = static_cast<double>(trace.machine.events.size()) / 2;
  return probes > 0 ? sum / probes - trace.machine.probe_cost : 0;
}

void add_measurements(const Trace& trace, lab::Report& report) {
  const Machine& machine = trace.machine;
  const auto add = [&](lab::Measurement number) {
    report.add(of_machine(machine, std::move(number)));
  };
  if (machine.derived) {
    report.add(lab::derived("mean_latency", "", shown_latency(trace), "cycles",
                            "by the rates of such copies, measured without probes"));
  } else if (machine.has_clocks()) {
    if (trace.kernel != Kernel::tail) {
      add(lab::traced(
          "mean_latency", "", shown_latency(trace), "cycles",
          "mean over the probes shown, from issue to first use, less the probe's cost"));
      add(lab::traced(
          "probe_cost", "", machine.probe_cost, "cycles",
          "an empty probe: two clocks and nothing between; the median of all warps of the launch"));
    }
    if (machine.clock_mhz > 0) {
      add(lab::traced(
          "sm_clock", "", machine.clock_mhz, "MHz",
          "cycles over nanoseconds, by the multiprocessor's clock and the device's timer"));
    }
  }
  if (is_copy(trace.kernel)) {
    report.add(lab::derived("asked_in_flight", "", static_cast<double>(trace.asked_bytes()) / 1024,
                            "KiB", "warps × active lanes × loads × bytes, on one SM"));
  }
  report.add(lab::derived("asked_occupancy", "", 100.0 * trace.warps_per_sm / kMostWarps, "%",
                          "warps by the knobs, of the 64 that a multiprocessor holds"));
  if (trace.kernel == Kernel::tail) {
    report.add(lab::derived("waves", "", trace.waves(), "",
                            "blocks over multiprocessors × blocks that fit on one"));
  }
}

void add_checks(const Run& run, lab::Report& report) {
  const Trace& trace = run.trace;
  report.add(run.result.check(
      "result", is_copy(trace.kernel) || trace.kernel == Kernel::chase
                    ? "The data moved or nodes visited; exact."
                    : "Against the closed form in double; the bound is FP32's rounding."));
  report.add(lab::none_wrong("probed_equals_timed", run.differing,
                             "Numbers that differ between the kernel with probes and without."));
  if (!trace.arms.empty()) {
    report.add(lab::none_wrong("votes", run.wrong_lanes,
                               "Lanes that voted for, or ran, an arm that is not theirs."));
  }
  if (trace.kernel != Kernel::tail) {
    report.add(lab::none_wrong("reported", run.unreported,
                               "Warps of the launch that left no record of their clocks."));
  }
  if (trace.machine.compiled.registers > 0) {
    report.add(lab::equal("occupancy", trace.occupancy().resident,
                          trace.machine.compiled.runtime_blocks,
                          "Blocks that fit by our calculator, against the CUDA runtime's answer."));
  }
}

std::string summary_of(const Trace& trace) {
  const Machine& machine = trace.machine;
  if (!machine.has_clocks()) {
    return fmt::format(
        "{} by {} of a multiprocessor, in the order of its program; these knobs were not recorded, "
        "and without a GPU "
        "there are no clocks.",
        name_of(trace.kernel), lab::plural(trace.warps_per_sm, "warp"));
  }
  const std::string where =
      machine.recorded_at.empty()
          ? fmt::format("on {}", machine.device)
          : fmt::format("{} on {}, {}",
                        machine.derived ? "derived from rates measured" : "recorded",
                        machine.device, machine.recorded_at);
  if (trace.kernel == Kernel::tail) {
    return fmt::format("{} blocks in {:.2f} waves over {} multiprocessors take {:.1f} µs, {}.",
                       trace.blocks, trace.waves(), trace.multiprocessors,
                       static_cast<double>(machine.span) * 1e-3, where);
  }
  return fmt::format(
      "{} by {} of a multiprocessor: {:.0f} cycles from issue to use on average, {}.",
      name_of(trace.kernel), lab::plural(trace.warps_per_sm, "warp"), shown_latency(trace), where);
}

}  // namespace

std::vector<lab::Table> tables_of(const Trace& trace) {
  const std::vector<Probe> probes = probes_of(trace.machine);
  return {steps_table(trace), probes_table(trace, probes), rows_table(trace, probes),
          occupancy_table(trace), counted_table(trace)};
}

lab::Report report_of(const Run& run) {
  lab::Report report;
  report.summary = summary_of(run.trace);
  report.tables = tables_of(run.trace);
  add_measurements(run.trace, report);
  report.add(lab::readout_table(report.measurements, 1));
  add_checks(run, report);
  report.trace = to_json(run.trace);
  return report;
}

}  // namespace tilestep::latency_hiding
