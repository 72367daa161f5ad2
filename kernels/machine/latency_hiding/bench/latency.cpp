// The memory ladder: how long a hop of a pointer chase takes, by what the nodes take together.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "kernels/base/lab/check.hpp"
#include "kernels/machine/latency_hiding/bench/parts.hpp"
#include "kernels/machine/latency_hiding/run/node_ring.hpp"

namespace tilestep::latency_hiding {
namespace {

using lab::column, lab::real, lab::whole;

constexpr std::int64_t kNodeBytes = sizeof(Node);
constexpr std::int64_t kHopsTimed = 16384;
constexpr std::int64_t kMostWarm = 1
                                   << 19;  // nodes that are walked before: what could be in a cache
constexpr int kRuns = 3;
constexpr std::size_t kL1Bytes = 16 << 10, kL2Bytes = 4 << 20, kSpreadBytes = 8 << 20;
constexpr int kBin = 4;                    // cycles
constexpr double kStable = 5, kNear = 20;  // %
constexpr const char* kSource = "RRZE-HPC, gpu-benches, gpu-latency/gh200.txt: GH200 at 1980 MHz";

NodeRing ring_of(const Parts& parts, std::size_t bytes) {
  return NodeRing(parts.device,
                  std::max<std::int64_t>(2, static_cast<std::int64_t>(bytes) / kNodeBytes), 11);
}
/// Hops that bring what a cache can hold into it.
std::int64_t warm_of(const NodeRing& ring) {
  return std::min(ring.count(), kMostWarm);
}

struct Hop {
  double cycles = 0, ns = 0;
};
Hop hop_of(const Walked& walked, std::int64_t hops) {
  return {static_cast<double>(walked.cycles) / static_cast<double>(hops),
          static_cast<double>(walked.nanoseconds) / static_cast<double>(hops)};
}

/// A hop of a walk through the ring; walks that end elsewhere count as wrong.
/// Where no cache holds the ring, each run times nodes that no other one has seen.
Hop walk(Parts& parts, const NodeRing& ring, bool past_l1, std::int64_t& wrong, int run = 0) {
  simt::Buffer<Walked> walked(parts.device, 1);
  const std::int64_t warm = warm_of(ring) + 2 * run * kHopsTimed;
  parts.kernels.walk(parts.device, past_l1, ring.nodes(), warm, kHopsTimed, walked.span());
  const Walked there = walked.download().front();
  wrong += there.node != ring.node_at(warm + kHopsTimed) ? 1 : 0;
  return hop_of(there, kHopsTimed);
}

Hop walk_shared(Parts& parts) {
  simt::Buffer<Walked> walked(parts.device, 1);
  parts.kernels.walk_shared(parts.device, kHopsTimed, walked.span());
  return hop_of(walked.download().front(), kHopsTimed);
}

void add_memory_ladder(Parts& parts, std::int64_t& wrong) {
  lab::Table table{"memory_ladder",
                   "A hop of a pointer chase by one thread, by what its nodes take together",
                   {whole("footprint", "footprint", "KiB"), real("cycles", "a hop", "cycles", 1),
                    real("ns", "a hop", "ns", 1)}};
  for (std::size_t kib = 4; kib * 1024 <= parts.sizes.most_footprint; kib *= 2) {
    for (const std::size_t footprint : {kib, kib + kib / 2}) {
      if (footprint * 1024 > parts.sizes.most_footprint) continue;
      parts.progress.check();
      const NodeRing ring = ring_of(parts, footprint * 1024);
      const Hop hop = walk(parts, ring, false, wrong);
      table.add({footprint, hop.cycles, hop.ns});
    }
  }
  parts.report.add(std::move(table));
}

/// A level, and what others have measured of it.
struct LevelRow {
  Level level;
  std::size_t bytes;  ///< 0: shared memory
  bool past_l1;
  double published = 0;  ///< 0: none
  bool in_ns = false;
};

void add_latencies(Parts& parts, std::int64_t& wrong) {
  const LevelRow rows[] = {{Level::shared, 0, false},
                           {Level::l1, kL1Bytes, false, 32.1},
                           {Level::l2, std::min(kL2Bytes, parts.sizes.most_footprint), true, 280.5},
                           {Level::dram, parts.sizes.most_footprint, true, 689.0 / 1.98, true}};
  lab::Table table{
      "latencies",
      "Latency of each level: median of three runs, and what others have published",
      {column("level", "level"), real("cycles", "a hop", "cycles", 1), real("ns", "a hop", "ns", 1),
       real("clock", "SM clock", "MHz", 0), real("spread", "spread of three runs", "%", 2),
       real("published", "published", "", 1), column("published_unit", ""),
       column("source", "source")}};
  double spread = 0, off = 0;
  for (const LevelRow& row : rows) {
    parts.progress.check();
    std::array<Hop, kRuns> runs;
    if (row.bytes == 0) {
      for (Hop& run : runs) run = walk_shared(parts);
    } else {
      const NodeRing ring = ring_of(parts, row.bytes);
      for (int run = 0; run < kRuns; ++run) {
        runs[static_cast<std::size_t>(run)] = walk(parts, ring, row.past_l1, wrong, run);
      }
    }
    std::sort(runs.begin(), runs.end(),
              [](const Hop& a, const Hop& b) { return a.cycles < b.cycles; });
    const Hop& hop = runs[kRuns / 2];
    const double apart = 100 * (runs.back().cycles - runs.front().cycles) / hop.cycles;
    spread = std::max(spread, apart);
    const bool known = row.published > 0;
    if (known)
      off = std::max(off, 100 * std::abs((row.in_ns ? hop.ns : hop.cycles) / row.published - 1));
    const lab::Cell none;
    table.add({name_of(row.level), hop.cycles, hop.ns, hop.cycles / hop.ns * 1e3, apart,
               known ? lab::Cell(row.published) : none,
               known ? lab::Cell(row.in_ns ? "ns" : "cycles") : none,
               known ? lab::Cell(kSource) : none});
    parts.report.add(lab::traced(
        "latency", name_of(row.level), row.in_ns ? hop.ns : hop.cycles, row.in_ns ? "ns" : "cycles",
        "a hop of a pointer chase by one thread, median of three runs of 16384 hops"));
  }
  parts.report.add(std::move(table));
  parts.report.add(lab::within("latency_stable", spread, kStable,
                               "Percent between three runs of the same walk."));
  parts.report.add(
      lab::within("latency_published", off, kNear,
                  std::string("Percent between our latencies and those of ") + kSource + "."));
}

void add_distribution(Parts& parts) {
  const NodeRing ring = ring_of(parts, std::min(kSpreadBytes, parts.sizes.most_footprint));
  const auto hops = static_cast<std::size_t>(std::min<std::int64_t>(ring.count(), 8192));
  simt::Buffer<unsigned> visited(parts.device, hops), cycles(parts.device, hops + 1);
  parts.kernels.time_hops(parts.device, ring.nodes(), warm_of(ring), visited.span(), cycles.span());
  std::vector<unsigned> took = cycles.download();
  const unsigned cost = took.back();
  took.pop_back();
  std::map<int, int> bins;
  for (unsigned& one : took) {
    one -= std::min(cost, one);
    ++bins[static_cast<int>(one) / kBin * kBin];
  }
  lab::Table table{"l2_distribution",
                   "Hops that hit L2, by how long they took, less the probe's cost",
                   {whole("cycles", "cycles, from"), whole("hops")}};
  for (const auto& [from, count] : bins) {
    if (bins.size() < 400 || count > 1) table.add({from, count});
  }
  parts.report.add(std::move(table));
  std::sort(took.begin(), took.end());
  parts.report.add(lab::traced("latency", "L2-near", took[took.size() / 10], "cycles",
                               "the 10th percentile of single hops that hit L2"));
  parts.report.add(lab::traced("latency", "L2-far", took[took.size() * 9 / 10], "cycles",
                               "the 90th percentile of single hops that hit L2"));
}

}  // namespace

void bench_latency(Parts& parts) {
  std::int64_t wrong = 0;
  add_memory_ladder(parts, wrong);
  add_latencies(parts, wrong);
  add_distribution(parts);
  parts.report.add(
      lab::none_wrong("walks", wrong, "Walks that ended at another node than the list says."));
}

}  // namespace tilestep::latency_hiding
