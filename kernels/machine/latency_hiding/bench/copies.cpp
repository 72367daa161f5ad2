// Copies by what they have in flight: rates, loaded latencies, and what the hardware counted of their waiting.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/simt/counters.hpp"
#include "kernels/machine/latency_hiding/bench/parts.hpp"
#include "kernels/machine/latency_hiding/run/counts.hpp"

namespace tilestep::latency_hiding {
namespace {

using lab::column, lab::real, lab::whole;

constexpr double kKnee = 0.9;           // of the most
constexpr double kKneeTolerance = 20;   // %
constexpr double kStallTolerance = 10;  // %
constexpr double kRoundTolerance = 15;  // %: of 32 loads a warp, in the midst of the copy
constexpr double kMostSlowdown = 1.15;
constexpr int kManyWarps = 8;  // with fewer, issuing several loads takes a good part of their round

/// Whether the probed kernel finds its registers, or a bulk copy its stages: what does not fit is left out.
bool fits(const Params& params) {
  const bool copy = params.kernel == Kernel::copy;
  return occupancy_of({.threads = threads_of(params.block),
                       .registers = copy ? copy_registers(params.loads_in_flight) : 0,
                       .dynamic_shared_bytes = copy ? 0 : bulk_shape(params).shared_bytes()})
             .resident >= blocks_per_sm(params);
}

std::vector<Params> points_of(const Parts& parts) {
  std::vector<Params> points;
  for (const Kernel kernel : {Kernel::copy, Kernel::bulk_copy}) {
    for (const LoadBytes bytes : all_of<LoadBytes>()) {
      if (kernel == Kernel::bulk_copy && bytes != LoadBytes::b16) continue;
      for (const Loads loads : all_of<Loads>()) {
        for (const int warps : parts.sizes.warps) {
          Params params = with_warps(
              {.kernel = kernel, .bytes_per_load = bytes, .loads_in_flight = loads}, warps);
          if (fits(params)) points.push_back(params);
        }
      }
    }
  }
  return points;
}

/// Copies by what they have in flight, by bytes a load.
using Curves = std::map<std::string, std::vector<CurvePoint>, std::less<>>;

void add_knees(Parts& parts, const Curves& curves) {
  lab::Table table{
      "knees",
      "Where nine tenths of the most are reached, and what the loaded latency there predicts",
      {column("kind", "bytes a load"), real("idle_latency", "idle latency", "ns", 0),
       real("loaded_latency", "loaded latency", "ns", 0),
       real("predicted_knee", "predicted", "KiB", 1), real("measured_knee", "measured", "KiB", 1),
       real("difference", "difference", "%", 1)}};
  double worst = 0;
  for (const LoadBytes bytes : all_of<LoadBytes>()) {
    const Knee knee = knee_of(curves.find(name_of(bytes))->second, parts.multiprocessors);
    const double off = 100 * (knee.predicted / knee.in_flight - 1);
    worst = std::isnan(off) ? off : std::max(worst, std::abs(off));
    table.add({name_of(bytes), knee.idle_ns, knee.latency_ns, knee.predicted / 1024,
               knee.in_flight / 1024, off});
    parts.report.add(
        lab::derived("knee", name_of(bytes), knee.in_flight / 1024, "KiB",
                     "bytes in flight of a multiprocessor where the copy reaches 0.9 of its most"));
  }
  parts.report.add(std::move(table));
  parts.report.add(
      lab::within("knee", worst, kKneeTolerance,
                  "Percent between the measured knee and rate × loaded latency there."));
}

struct StallRow {
  Params params;
  double eligible = 0, issue_active = 0;
  double counted = 0;  ///< cycles a load
  Means means;
  double round = 0;  ///< cycles, less the probe's cost
  double slowdown = 0;
  /// What the warp waited for all loads that it had in flight together.
  double waited() const { return counted * count_of(params.loads_in_flight); }
  double difference() const { return 100 * (round / waited() - 1); }
};

StallRow stalls_of(Parts& parts, Words& words, const Params& params) {
  StallRow row;
  row.params = params;
  const auto plain = [&] { words.copy(params); };
  ProbeRoom room(parts.device, parts.grid(params));
  const auto probed = [&] { words.copy(params, room.tape()); };
  const double plain_ms = parts.time(plain).median;
  row.slowdown = parts.time(probed).median / plain_ms;
  const Records records = room.records();
  row.means = means_of(records.warps);
  const int loads = count_of(params.loads_in_flight);
  row.round = loads == 1 ? row.means.latency : mean_round(records.kept, loads) - row.means.cost;
  row.counted = stalled_cycles_per_load(parts.device, plain);
  constexpr const char* kEligible = "smsp__warps_eligible.avg.per_cycle_active";
  constexpr const char* kIssue = "smsp__issue_active.avg.per_cycle_active";
  const auto counted = simt::count(parts.device, {kEligible, kIssue}, plain);
  row.eligible = counted.at(kEligible);
  row.issue_active = 100 * counted.at(kIssue);
  return row;
}

}  // namespace

Means means_of(const std::vector<WarpRecord>& warps) {
  Means means;
  double probes = 0, cycles = 0, ns = 0, written = 0;
  for (const WarpRecord& warp : warps) {
    if (warp.sm == kUnwritten) continue;
    means.latency += warp.latency;
    means.cost += warp.cost;
    probes += warp.probes;
    cycles += warp.end - warp.begin;
    ns += static_cast<double>(warp.end_ns - warp.begin_ns);
    ++written;
  }
  if (probes == 0) return {};
  means.cost /= written;
  means.latency = means.latency / probes - means.cost;
  means.clock_mhz = ns > 0 ? cycles / ns * 1e3 : 0;
  return means;
}

double mean_round(const std::vector<ProbeRecord>& kept, int loads) {
  double cycles = 0, rounds = 0;
  for (std::size_t i = 0; i + static_cast<std::size_t>(loads) <= kept.size();
       i += static_cast<std::size_t>(loads)) {
    const ProbeRecord &first = kept[i], &last = kept[i + static_cast<std::size_t>(loads) - 1];
    if (!first.written() || !last.written()) continue;
    cycles += last.use - first.issue;
    ++rounds;
  }
  return rounds > 0 ? cycles / rounds : 0;
}

Knee knee_of(std::vector<CurvePoint> points, int multiprocessors) {
  // The best of those that have the same in flight.
  std::map<double, CurvePoint> best;
  for (const CurvePoint& point : points) {
    CurvePoint& kept = best.emplace(point.in_flight, point).first->second;
    if (point.read_gbps > kept.read_gbps) kept = point;
  }
  Knee knee;
  if (best.empty()) return knee;
  knee.idle_ns = best.begin()->second.latency_ns;
  double most = 0;
  for (const auto& [bytes, point] : best) most = std::max(most, point.read_gbps);
  const double wanted = kKnee * most;
  const CurvePoint* before = nullptr;
  for (const auto& [bytes, point] : best) {
    if (point.read_gbps < wanted) {
      before = &point;
      continue;
    }
    const CurvePoint& from = before == nullptr ? point : *before;
    const double rise = point.read_gbps - from.read_gbps;
    const double part = rise > 0 ? (wanted - from.read_gbps) / rise : 1;
    knee.in_flight = std::lerp(from.in_flight, point.in_flight, part);
    knee.latency_ns = std::lerp(from.latency_ns, point.latency_ns, part);
    break;
  }
  knee.predicted = wanted * knee.latency_ns / multiprocessors;
  return knee;
}

void bench_bytes_in_flight(Parts& parts) {
  Words words(parts, parts.sizes.copy_bytes / 2);
  Curves curves;
  lab::Table table{"bytes_in_flight",
                   "Copies by what a multiprocessor has in flight; the latency is of the probed "
                   "loads under that load",
                   {column("kind", "bytes a load"), whole("loads"), whole("warps_per_sm", "warps"),
                    real("in_flight", "in flight", "KiB", 2), "bandwidth", "p10", "p90",
                    real("latency", "loaded latency", "ns", 0),
                    real("predicted", "by Little's law", "GB/s", 0)}};
  for (const Params& params : points_of(parts)) {
    parts.progress.check();
    const bool probed = params.kernel == Kernel::copy;
    const std::string kind(probed ? name_of(params.bytes_per_load) : "bulk");
    const double bytes = asked_bytes(params);
    const lab::Spread rate =
        lab::rate_of(parts.time([&] { words.copy(params); }), 2 * words.bytes());
    double ns = 0;
    if (probed) {
      ProbeRoom room(parts.device, parts.grid(params));
      words.copy(params, room.tape());
      parts.device.synchronize();
      ns = means_of(room.records().warps).latency_ns();
    }
    const auto if_probed = [&](double number) { return ns > 0 ? lab::Cell(number) : lab::Cell(); };
    table.add({kind, count_of(params.loads_in_flight), params.warps_per_sm, bytes / 1024,
               rate.median, rate.p10, rate.p90, if_probed(ns),
               if_probed(2 * bytes * parts.multiprocessors / ns)});
    curves[kind].push_back({bytes, rate.median / 2, ns});
  }
  parts.report.add(std::move(table));
  add_knees(parts, curves);
}

void bench_stalls(Parts& parts) {
  lab::Table table{
      "stalls",
      "Loads of 16 bytes: cycles that schedulers counted a warp as waiting, and by the probes",
      {whole("warps_per_sm", "warps"), whole("loads"),
       real("eligible", "eligible warps", "a cycle", 3),
       real("issue_active", "issue slots used", "%", 2),
       real("long_scoreboard", "counted wait a load", "cycles", 0),
       real("probed", "probed latency", "cycles", 0),
       real("waited", "counted wait for all loads", "cycles", 0),
       real("round", "probed, first issue to last use", "cycles", 0),
       real("difference", "difference", "%", 1),
       real("slowdown", "time with probes", "of without", 3)}};
  double off = 0, rounds_off = 0, slowdown = 0;
  if (parts.device.counters().available) {
    Words words(parts, parts.sizes.copy_bytes / 2);
    for (const Loads loads : {Loads::l1, Loads::l4}) {
      for (const int warps : {1, 4, 8, 16, 24}) {
        parts.progress.check();
        const StallRow row = stalls_of(parts, words, with_warps({.loads_in_flight = loads}, warps));
        const bool alone = loads == Loads::l1;
        table.add({warps, count_of(loads), row.eligible, row.issue_active, row.counted,
                   row.means.latency, row.waited(), row.round, row.difference(), row.slowdown});
        if (alone) off = std::max(off, std::abs(row.difference()));
        if (!alone && warps >= kManyWarps)
          rounds_off = std::max(rounds_off, std::abs(row.difference()));
        if (warps >= kSubPartitions) slowdown = std::max(slowdown, row.slowdown);
      }
    }
    parts.report.add(lab::within(
        "probed_equals_counted", off, kStallTolerance,
        "Percent between the mean probed latency, less the probe's cost, and the counted "
        "long-scoreboard cycles a load, with one load in flight a thread."));
    parts.report.add(lab::within(
        "rounds_equal_counted", rounds_off, kRoundTolerance,
        "The same of four loads in flight together, from the first one's issue to the last one's "
        "use, with two warps of each scheduler or more."));
    parts.report.add(lab::within(
        "probes_slow", slowdown, kMostSlowdown,
        "Time of the copy with probes over that without, with a warp of each scheduler or more."));
  }
  parts.report.add(std::move(table));
}

}  // namespace tilestep::latency_hiding
