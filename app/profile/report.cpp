// A trace's numbers as tables, for the command line, JSON and the page.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/profile/numbers.hpp"
#include "kernels/base/lab/plural.hpp"

namespace tilestep::profile {
namespace {

double us(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-3;
}
double ms(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-6;
}

lab::Table device_table(const Trace& trace, const Numbers& numbers) {
  lab::Table table{"devices",
                   "Devices and streams",
                   {lab::column("what", "what"), lab::whole("works", "works"),
                    lab::real("busy_ms", "busy", "ms", 3), lab::real("busy", "busy", "%", 1),
                    lab::real("idle", "idle", "%", 1)}};
  const double all = ms(std::max<std::int64_t>(numbers.stretch.ns(), 1));
  const auto add = [&](const std::string& what, std::int64_t works, std::int64_t busy_ns) {
    table.add({what, works, ms(busy_ns), 100 * ms(busy_ns) / all, 100 - 100 * ms(busy_ns) / all});
  };
  for (const DeviceUse& use : numbers.devices) {
    std::int64_t works = 0;
    for (const StreamUse& stream : use.streams) works += stream.works;
    const auto device = trace.devices.find(use.device);
    add(fmt::format("GPU {} {}", use.device,
                    device == trace.devices.end() ? "" : device->second.name),
        works, use.busy_ns);
    for (const StreamUse& stream : use.streams)
      add("  " + trace.tracks[static_cast<std::size_t>(stream.track)].name, stream.works,
          stream.busy_ns);
  }
  return table;
}

lab::Table gap_table(const Trace& trace, const Numbers& numbers) {
  lab::Table table{
      "gaps",
      "Gaps: a device was idle",
      {lab::column("why", "why"), lab::whole("gaps", "gaps"),
       lab::real("total_us", "total", "µs", 1), lab::real("longest_us", "longest", "µs", 1),
       lab::real("at_ms", "at", "ms", 3)}};
  const auto add = [&](const std::string& why, const GapSum& sum) {
    if (sum.count == 0) return table.add({why, 0, 0.0, lab::Cell(), lab::Cell()});
    const Stretch& longest = numbers.gaps[static_cast<std::size_t>(sum.longest)].idle;
    table.add({why, sum.count, us(sum.ns), us(longest.ns()), ms(longest.from_ns)});
  };
  add("any", numbers.all_gaps);
  if (!numbers.has_calls) return table;
  add("the host had not launched the next work", numbers.late_gaps);
  std::vector<std::pair<int, GapSum>> after(numbers.gaps_after.begin(), numbers.gaps_after.end());
  std::stable_sort(after.begin(), after.end(),
                   [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
  for (const auto& [call, sum] : after) {
    add(call < 0 ? "  with its first call"
                 : fmt::format("  after {}", trace.names[static_cast<std::size_t>(call)]),
        sum);
  }
  return table;
}

std::string three(const std::int64_t (&of)[3]) {
  if (of[0] < 0) return {};
  return fmt::format("{}×{}×{}", of[0], std::max<std::int64_t>(of[1], 1),
                     std::max<std::int64_t>(of[2], 1));
}

lab::Table kernel_table(const Trace& trace, const Numbers& numbers, std::size_t top) {
  lab::Table table{
      "kernels",
      "Kernels by time",
      {lab::column("kernel", "kernel"), lab::whole("launches", "launches"),
       lab::real("total_us", "total", "µs", 1), lab::real("mean_us", "mean", "µs", 2),
       lab::real("share", "of the time", "%", 1), lab::real("bound", "Amdahl's bound", "×", 2),
       lab::whole("graph", "of graphs"), lab::column("grid", "grid"), lab::column("block", "block"),
       lab::whole("registers", "registers"), lab::whole("shared", "shared memory", "bytes"),
       lab::real("occupancy", "occupancy (estimate)", "%", 0), lab::column("operator", "operator"),
       lab::column("operands", "operands"), lab::column("types", "types")}};
  for (std::size_t i = 0; i < numbers.kernels.size() && i < top; ++i) {
    const KernelUse& use = numbers.kernels[i];
    const Launch launch =
        use.launch < 0 ? Launch() : trace.launches[static_cast<std::size_t>(use.launch)];
    // Of its longest launch, as its grid is.
    const int op = trace.events[static_cast<std::size_t>(use.longest)].op;
    const Event* by = op < 0 ? nullptr : &trace.events[static_cast<std::size_t>(op)];
    const Shape given = by == nullptr || by->shape < 0
                            ? Shape()
                            : trace.shapes[static_cast<std::size_t>(by->shape)];
    const auto known = [](auto value) { return value < 0 ? lab::Cell() : lab::Cell(value); };
    table.add({short_name(trace.names[static_cast<std::size_t>(use.name)]), use.launches,
               us(use.ns), us(use.ns) / static_cast<double>(use.launches), 100 * use.share,
               use.bound() < 1000 ? lab::Cell(use.bound()) : lab::Cell(), use.of_graph,
               three(launch.grid), three(launch.block), known(launch.registers),
               known(launch.shared_bytes), known(launch.occupancy_percent),
               by == nullptr ? std::string() : trace.name_of(*by), given.dims, given.types});
  }
  return table;
}

lab::Table copy_table(const Numbers& numbers) {
  lab::Table table{"copies",
                   "Copies and fills",
                   {lab::column("direction", "direction"), lab::whole("count", "count"),
                    lab::whole("bytes", "bytes"), lab::real("total_us", "total", "µs", 1),
                    lab::real("rate", "rate", "GB/s", 1)}};
  for (const CopyUse& copy : numbers.copies) {
    const bool rated = copy.all_sized && copy.ns > 0;
    table.add({copy.direction, copy.count, copy.all_sized ? lab::Cell(copy.bytes) : lab::Cell(),
               us(copy.ns),
               rated ? lab::Cell(static_cast<double>(copy.bytes) / static_cast<double>(copy.ns))
                     : lab::Cell()});
  }
  return table;
}

lab::Table host_table(const Trace& trace, const Numbers& numbers) {
  lab::Table table{
      "host",
      "Host: calls that wait for a device",
      {lab::column("call", "call"), lab::whole("calls", "calls"),
       lab::real("total_us", "total", "µs", 1), lab::real("longest_us", "longest", "µs", 1)}};
  for (const WaitUse& wait : numbers.waits) {
    table.add({trace.names[static_cast<std::size_t>(wait.name)], wait.count, us(wait.ns),
               us(trace.events[static_cast<std::size_t>(wait.longest)].ns())});
  }
  return table;
}

lab::Table step_table(const Numbers& numbers) {
  lab::Table table{
      "steps",
      "Steps and launches",
      {lab::column("what", "what"), lab::column("value", "value"), lab::column("unit", "unit")}};
  if (!numbers.steps.each.empty()) {
    table.add({fmt::format("steps “{}”", numbers.steps.name), std::ssize(numbers.steps.each), ""});
    table.add({"a step, median", ms(numbers.steps.median_ns), "ms"});
    table.add({"kernels per step, median", numbers.steps.kernels, ""});
  }
  table.add({"kernels", numbers.kernel_count, ""});
  table.add({"of them from CUDA graphs", numbers.graph_kernels, ""});
  if (numbers.has_calls) {
    table.add({"CUDA calls of the host", numbers.calls, ""});
    table.add({"of them launches of graphs", numbers.graph_launches, ""});
  }
  return table;
}

lab::Table question_table(const std::vector<Answer>& answers) {
  lab::Table table{
      "questions",
      "The six questions",
      {lab::column("question", "question"), lab::column("known", "the trace says it"),
       lab::column("answer", "answer"), lab::column("record", "to know more, record with")}};
  for (const Answer& each : answers)
    table.add({each.title, each.known ? "yes" : "no", each.text, each.record});
  return table;
}

}  // namespace

lab::Report report_of(const Trace& trace, const Numbers& numbers, std::size_t top) {
  lab::Report report;
  report.lesson = "profile";
  report.recorded_at = trace.recorded_at;
  report.device.backend = "recorded";
  for (const auto& [number, device] : trace.devices) {
    if (!device.name.empty() && report.device.name.find(device.name) == std::string::npos)
      report.device.name += (report.device.name.empty() ? "" : ", ") + device.name;
  }
  const DeviceUse& use = numbers.busiest();
  const double busy = static_cast<double>(use.busy_ns) /
                      static_cast<double>(std::max<std::int64_t>(numbers.stretch.ns(), 1));
  report.summary = fmt::format(
      "{} in {}, GPU {} busy {} of it; {}.", lab::plural(numbers.kernel_count, "kernel"),
      time_of(numbers.stretch.ns()), use.device, percent_of(busy), trace.origin());
  report.add(question_table(answers_of(trace, numbers)));
  for (lab::Table& table :
       std::vector<lab::Table>{device_table(trace, numbers), kernel_table(trace, numbers, top),
                               gap_table(trace, numbers), copy_table(numbers),
                               host_table(trace, numbers), step_table(numbers)}) {
    if (!table.rows.empty()) report.add(std::move(table));
  }
  report.trace = nlohmann::json{{"file", trace.file},
                                {"origin", trace.origin()},
                                {"from_ms", ms(numbers.stretch.from_ns)},
                                {"to_ms", ms(numbers.stretch.to_ns)},
                                {"notes", trace.notes}};
  return report;
}

}  // namespace tilestep::profile
