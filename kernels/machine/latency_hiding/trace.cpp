// The trace as JSON, and what follows from it.

#include <algorithm>
#include <map>

#include "kernels/base/lab/fields.hpp"
#include "kernels/base/lab/source.hpp"
#include "kernels/machine/latency_hiding/lesson.hpp"

namespace tilestep::latency_hiding {
namespace {

constexpr std::int64_t kMostClock = std::int64_t{1} << 50;
constexpr int kMostMultiprocessors = 1024;
constexpr int kMostRows = 1024;
constexpr int kMostNumber = 1 << 20;
constexpr int kMostSharedBytes = 1 << 20;

lab::Fields<Row> row_fields() {
  return lab::Fields<Row>()
      .whole("sm", &Row::sm, 0, kMostMultiprocessors)
      .whole("block", &Row::block, -1, kMostNumber)
      .whole(TILESTEP_MEMBERS(Row, warp, slot), 0, kMostWarps - 1)
      .whole("sub_partition", &Row::sub_partition, 0, kSubPartitions - 1);
}

lab::Fields<Event> event_fields(const Machine& machine) {
  return lab::Fields<Event>()
      .whole("row", &Event::row, 0, static_cast<std::int64_t>(machine.rows.size()) - 1)
      .from(lab::kAhead)
      .whole("number", &Event::number, 0, kMostNumber)
      .from(lab::kAhead)
      .name("what", &Event::what)
      .from(lab::kAhead)
      .whole("step", &Event::step, 1, static_cast<std::int64_t>(machine.moments.size()))
      .from(lab::kAhead)
      .whole("clock", &Event::clock, 0, machine.span);
}

lab::Fields<Moment> moment_fields(const Machine& machine) {
  return lab::Fields<Moment>()
      .name("what", &Moment::what)
      .whole("number", &Moment::number, -1, kMostNumber)
      .whole("clock", &Moment::clock, 0, machine.span)
      .whole("in_flight", &Moment::in_flight, 0, kMostNumber);
}

lab::Fields<Counted> counted_fields() {
  return lab::Fields<Counted>()
      .text("metric", &Counted::metric)
      .from(lab::kAhead)
      .text("label", &Counted::label)
      .from(lab::kAhead)
      .real("value", &Counted::value)
      .text("unit", &Counted::unit)
      .from(lab::kAhead);
}

lab::Fields<Compiled> compiled_fields() {
  return lab::Fields<Compiled>()
      .whole("registers", &Compiled::registers, 0, 255)
      .whole(TILESTEP_MEMBERS(Compiled, static_shared_bytes, local_bytes), 0, kMostSharedBytes)
      .whole("runtime_blocks", &Compiled::runtime_blocks, 0, kMostBlocks);
}

lab::Fields<Arm> arm_fields() {
  return lab::Fields<Arm>()
      .whole("number", &Arm::number, 0, kLanes - 1)
      .whole("voted", &Arm::voted, 0, std::int64_t{0xFFFFFFFF});
}

lab::Fields<Machine> machine_fields(int steps) {
  return lab::Fields<Machine>()
      .text(TILESTEP_MEMBERS(Machine, unit, device, recorded_at))
      .flag("derived", &Machine::derived)
      .left_out_for(false)
      .whole("span", &Machine::span, 0, kMostClock)
      .columns("rows", &Machine::rows, row_fields(), lab::kAnyCount)
      .columns("moments", &Machine::moments, moment_fields, lab::kAnyCount)
      .known_each(lab::kOneAStep)
      .columns("events", &Machine::events, event_fields, lab::kAnyCount)
      .known_each([](const Machine& machine, std::size_t place) {
        return lab::When{machine.events[place].step, 0};
      })
      .real(TILESTEP_MEMBERS(Machine, probe_cost, clock_mhz))
      .object("compiled", &Machine::compiled, compiled_fields())
      .list("counted", &Machine::counted, counted_fields())
      .known_each([steps](const Machine&, std::size_t) {
        return lab::When{steps, 0};
      })
      .text("not_counted", &Machine::not_counted)
      .check([](const Machine& machine) -> std::string {
        if (machine.unit != "cycles" && machine.unit != "ns" && machine.unit != "turns") {
          return "the unit is none of cycles, ns, turns";
        }
        if (machine.moments.empty() || machine.rows.empty()) return "there is no step, or no row";
        return machine.rows.size() <= kMostRows ? "" : "there are more rows than any machine has";
      });
}

lab::Fields<Trace> trace_fields() {
  return lab::Fields<Trace>()
      .name(TILESTEP_MEMBERS(Trace, kernel, broken))
      .whole("warps_per_sm", &Trace::warps_per_sm, 1, kMostWarps)
      .whole("block", &Trace::block, kLanes, 512)
      .whole("bytes_per_load", &Trace::bytes_per_load, 4, 16)
      .whole(TILESTEP_MEMBERS(Trace, loads_in_flight, ilp), 1, 8)
      .whole("max_registers", &Trace::max_registers, 1, 255)
      .whole("divergence", &Trace::divergence, 1, kLanes)
      .whole("blocks_per_sm", &Trace::blocks_per_sm, 1, kMostBlocks)
      .whole(TILESTEP_MEMBERS(Trace, dynamic_shared_bytes, stage_bytes), 0, kMostSharedBytes)
      .whole("blocks", &Trace::blocks, 0, kMostNumber)
      .whole("multiprocessors", &Trace::multiprocessors, 1, kMostMultiprocessors)
      .list("arms", &Trace::arms, arm_fields())
      .lines("lines", &Trace::lines, [](const Trace& trace) { return step_lines(trace.kernel); })
      .object("machine", &Trace::machine,
              [](const Trace& trace) { return machine_fields(trace.steps()); });
}

}  // namespace

std::array<int, 3> step_lines(Kernel kernel) {
  const lab::SourceMarks marks = lab::source_marks(source_path(kernel));
  const bool arms = kernel == Kernel::copy || kernel == Kernel::diverge;
  return {marks.line("issue"), marks.line("use"), arms ? marks.line("arm") : 0};
}

std::vector<Probe> probes_of(const Machine& machine) {
  const int never = static_cast<int>(machine.moments.size()) + 1;
  std::map<std::pair<int, int>, Probe> found;
  for (const Event& event : machine.events) {
    const Probe blank{.row = event.row, .number = event.number, .use_step = never};
    Probe& probe = found.try_emplace({event.row, event.number}, blank).first->second;
    const bool issue = event.what == What::issue;
    (issue ? probe.issue : probe.use) = event.clock;
    (issue ? probe.issue_step : probe.use_step) = event.step;
  }
  std::vector<Probe> probes;
  for (const auto& [key, probe] : found) probes.push_back(probe);
  return probes;
}

int Trace::probes() const {
  if (kernel == Kernel::tail) return 0;
  return kernel == Kernel::diverge ? std::max(kProbes, divergence) : kProbes;
}

std::int64_t Trace::asked_bytes() const {
  if (!is_copy(kernel)) return 0;
  const int loads = broken == Break::serialize_loads ? 1 : loads_in_flight;
  const int lanes = broken == Break::divergent_branch ? kLanes / divergence : kLanes;
  return std::int64_t{warps_per_sm} * lanes * loads * bytes_per_load;
}

int Trace::registers() const {
  if (machine.compiled.registers > 0) return machine.compiled.registers;
  if (kernel == Kernel::spill) return max_registers;
  for (const Loads loads : all_of<Loads>()) {
    if (kernel == Kernel::copy && count_of(loads) == loads_in_flight) return copy_registers(loads);
  }
  return 0;
}

Demand Trace::demand() const {
  return {.threads = block,
          .registers = registers(),
          .static_shared_bytes = machine.compiled.static_shared_bytes,
          .dynamic_shared_bytes = (dynamic_shared_bytes + 15) / 16 * 16};
}

double Trace::waves() const {
  return static_cast<double>(blocks) / (multiprocessors * std::max(occupancy().resident, 1));
}

TILESTEP_TRACE_JSON("latency-hiding trace", trace_fields())

}  // namespace tilestep::latency_hiding
