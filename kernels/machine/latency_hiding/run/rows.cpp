// The probes' records as rows, events and steps of the picture.

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "kernels/machine/latency_hiding/run/run.hpp"

namespace tilestep::latency_hiding {
namespace {

constexpr double kLeastClockNs = 10'000;  // for the clock's rate; the timer ticks in up to 1024 ns

double median(std::vector<std::uint32_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// By the two clocks of the warp that ran longest.
double clock_mhz(const Records& records) {
  double longest = 0, mhz = 0;
  for (const WarpRecord& warp : records.warps) {
    if (warp.sm == kUnwritten) continue;
    const double ns = static_cast<double>(warp.end_ns - warp.begin_ns);
    if (ns <= longest) continue;
    longest = ns;
    mhz = static_cast<double>(warp.end - warp.begin) / ns * 1e3;
  }
  return longest >= kLeastClockNs ? mhz : 0;
}

void add_costs(Machine& machine, const Records& records) {
  if (!machine.has_clocks()) return;
  std::vector<std::uint32_t> costs;
  for (const WarpRecord& warp : records.warps) {
    if (warp.sm != kUnwritten) costs.push_back(warp.cost);
  }
  machine.probe_cost = median(std::move(costs));
  machine.clock_mhz = clock_mhz(records);
}

/// Each lane counts its own turns, so the arms of a branch would seem to begin together. A warp runs one after another:
/// a probe that begins no later than the one before it belongs to the next arm.
class ArmsInTurn {
 public:
  explicit ArmsInTurn(bool turns) : turns_(turns) {}
  /// How much later the probe between these turns has to be put.
  std::int64_t later(std::int64_t issue, std::int64_t use) {
    if (!turns_) return 0;
    if (issue <= issue_) later_ = end_ + 1 - issue;
    issue_ = issue;
    end_ = std::max(end_, use + later_);
    return later_;
  }

 private:
  bool turns_;
  std::int64_t issue_ = -1, end_ = -1, later_ = 0;
};

/// The step of each event, and the probes in flight at each moment. Turns of different warps are unrelated: then only
/// the followed row counts.
void number_steps(Machine& machine) {
  std::size_t step = 0;
  int in_flight = 0;
  for (Event& event : machine.events) {
    while (event.clock > machine.moments[step].clock) machine.moments[step++].in_flight = in_flight;
    event.step = static_cast<int>(step) + 1;
    if (machine.has_clocks() || event.row == 0) in_flight += event.what == What::issue ? 1 : -1;
  }
  for (; step < machine.moments.size(); ++step) machine.moments[step].in_flight = in_flight;
}

}  // namespace

void order_events(Machine& machine, int slices) {
  std::sort(machine.events.begin(), machine.events.end(), [](const Event& a, const Event& b) {
    return std::tuple(a.clock, a.row, a.number, a.what) <
           std::tuple(b.clock, b.row, b.number, b.what);
  });
  machine.span = machine.events.empty() ? 0 : machine.events.back().clock;
  machine.moments.clear();
  for (const Event& event : machine.events) {
    if (event.row == 0 && slices == 0)
      machine.moments.push_back({event.what, event.number, event.clock, 0});
  }
  for (int slice = 1; slice <= slices; ++slice) {
    machine.moments.push_back({What::use, -1, machine.span * slice / slices, 0});
  }
  if (slices == 0) machine.moments.push_back({What::use, -1, machine.span, 0});
  number_steps(machine);
}

void fill_rows(Machine& machine, const Records& records, const Grid& grid, int probes) {
  add_costs(machine, records);
  const int warps_of_block = grid.threads / kLanes;
  std::vector<std::pair<Row, std::size_t>> rows;
  for (std::size_t i = 0; i < records.warps.size(); ++i) {
    const WarpRecord& warp = records.warps[i];
    if (warp.sm == kUnwritten || warp.sm != records.warps.front().sm) continue;
    const int number = static_cast<int>(i);
    const int slot = static_cast<int>(warp.slot);
    rows.push_back({{static_cast<int>(warp.sm), number / warps_of_block, number % warps_of_block,
                     slot, slot % kSubPartitions},
                    i});
  }
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.sub_partition, a.first.slot) <
           std::pair(b.first.sub_partition, b.first.slot);
  });
  // Clocks have 32 bits and wrap around; the part shown is short.
  const std::uint32_t origin =
      rows.empty() ? 0 : records.kept[rows.front().second * kMostProbes].issue;
  const auto clock = [&](std::uint32_t at) {
    return std::int64_t{static_cast<std::int32_t>(at - origin)};
  };
  std::int64_t least = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    machine.rows.push_back(rows[r].first);
    ArmsInTurn arms{!machine.has_clocks()};
    for (int p = 0; p < probes; ++p) {
      const ProbeRecord& probe =
          records.kept[rows[r].second * kMostProbes + static_cast<std::size_t>(p)];
      if (!probe.written()) continue;
      const std::int64_t later = arms.later(clock(probe.issue), clock(probe.use));
      const std::int64_t issue = clock(probe.issue) + later, use = clock(probe.use) + later;
      machine.events.push_back({static_cast<int>(r), p, What::issue, 1, issue});
      machine.events.push_back({static_cast<int>(r), p, What::use, 1, use});
      least = std::min(least, issue);
    }
  }
  for (Event& event : machine.events) event.clock -= least;
  order_events(machine, 0);
}

void fill_blocks(Machine& machine, const Records& records, const Grid& grid) {
  add_costs(machine, records);
  const int warps_of_block = grid.threads / kLanes;
  const bool turns = !machine.has_clocks();
  std::map<std::uint32_t, int> row_of;
  for (const WarpRecord& warp : records.warps) {
    if (warp.sm != kUnwritten) row_of.emplace(warp.sm, 0);
  }
  for (auto& [sm, row] : row_of) {
    row = static_cast<int>(machine.rows.size());
    machine.rows.push_back({static_cast<int>(sm), -1, 0, 0, 0});
  }
  std::int64_t first = 0;
  for (std::size_t i = 0; i < records.warps.size(); ++i) {
    if (records.warps[i].sm == kUnwritten) continue;
    first = i == 0 ? records.warps[i].begin_ns : std::min(first, records.warps[i].begin_ns);
  }
  for (std::int64_t block = 0; block < grid.blocks; ++block) {
    const auto of_block = static_cast<std::size_t>(block * warps_of_block);
    const WarpRecord& warp = records.warps[of_block];
    std::int64_t begin = warp.begin_ns, end = warp.end_ns;
    for (int w = 1; w < warps_of_block; ++w) {
      begin = std::min(begin, records.warps[of_block + static_cast<std::size_t>(w)].begin_ns);
      end = std::max(end, records.warps[of_block + static_cast<std::size_t>(w)].end_ns);
    }
    if (turns) begin = 2 * block, end = begin + 1, first = 0;
    const int row = row_of.at(warp.sm);
    const int number = static_cast<int>(block);
    machine.events.push_back({row, number, What::issue, 1, begin - first});
    machine.events.push_back({row, number, What::use, 1, end - first});
  }
  order_events(machine, kSlices);
}

}  // namespace tilestep::latency_hiding
