#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "kernels/base/lab/recording.hpp"
#include "kernels/machine/latency_hiding/run/run.hpp"
#include "scenes/machine/latency_hiding/scene.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/rows.hpp"
#include "tests/scenes/marks.hpp"

/// Runs of the lesson on latency hiding with clocks, and what their scene shows.
namespace tilestep::tests {

using latency_hiding::Event, latency_hiding::Moment, latency_hiding::Trace, latency_hiding::What;
using picture::Bars, picture::Cells, picture::Curve, picture::Picture, picture::Spans,
    picture::State;
using scenes::Cursor, scenes::LatencyHidingScene, scenes::Question;

inline std::int64_t whole(int value) {
  return value;
}
inline lab::Settings of(const char* kernel, lab::Settings more = {}) {
  more["kernel"] = std::string(kernel);
  return more;
}
inline const std::vector<lab::Settings> kRuns = {
    {},
    {{"loads_in_flight", std::string("1")}, {"bytes_per_load", std::string("4")}},
    {{"break", std::string("serialize-loads")}},
    {{"break", std::string("divergent-branch")}},
    {{"warps_per_sm", whole(1)}, {"block", std::string("32")}},
    of("bulk-copy"),
    of("chase", {{"warps_per_sm", whole(1)}, {"block", std::string("32")}}),
    of("fma", {{"warps_per_sm", whole(4)}}),
    of("spill", {{"warps_per_sm", whole(12)}}),
    of("diverge", {{"divergence", std::string("4")}}),
    of("tail")};

/// A run with the clocks that a GPU might have had: each warp a little later than the one before, each use some
/// hundred cycles behind its turn, every third one twice as long.
inline lab::Report with_clocks(lab::Report report) {
  Trace trace = latency_hiding::trace_from_json(report.trace);
  latency_hiding::Machine& machine = trace.machine;
  if (machine.counted.empty()) {
    machine.counted = {
        {"smsp__warps_active.avg.per_cycle_active", "", 4, ""},
        {"smsp__warps_eligible.avg.per_cycle_active", "", 0.05, ""},
        {"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", "", 70, ""},
        {"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", "", 2, ""}};
  }
  if (machine.has_clocks()) {
    report.trace = latency_hiding::to_json(trace);
    return report;
  }
  machine.unit = trace.kernel == latency_hiding::Kernel::tail ? "ns" : "cycles";
  machine.device = "NVIDIA H200";
  machine.probe_cost = 12;
  machine.compiled.registers = 40;
  constexpr int kTurn = 700, kWarp = 37, kUse = 90;
  for (Event& event : machine.events) {
    const bool use = event.what == What::use;
    event.clock = event.clock * kTurn + event.row * kWarp + (use ? kUse : 0) +
                  (use && event.number % 3 == 0 ? kTurn / 2 : 0);
  }
  order_events(machine, trace.kernel == latency_hiding::Kernel::tail ? latency_hiding::kSlices : 0);
  report.trace = latency_hiding::to_json(trace);
  for (lab::Table& table : latency_hiding::tables_of(trace)) {
    for (lab::Table& old : report.tables) {
      if (old.id == table.id) old = table;
    }
  }
  return report;
}

inline LatencyHidingScene scene_of(const lab::Settings& settings, bool clocks = false) {
  LatencyHidingScene scene;
  const lab::Report& report = report_of("latency-hiding", settings);
  scene.load(clocks ? with_clocks(report) : report);
  return scene;
}

/// Issue and use of each probe, as far as they are known at a step.
struct Known {
  std::int64_t issue = -1, use = -1;
};
inline std::map<std::pair<int, int>, Known> known_at(const Trace& trace, int step) {
  std::map<std::pair<int, int>, Known> known;
  for (const Event& event : trace.machine.events) {
    if (event.step > step) continue;
    Known& one = known[{event.row, event.number}];
    (event.what == What::issue ? one.issue : one.use) = event.clock;
  }
  return known;
}

/// Loads of a round: what a warp has in the picture at a time.
inline int group_of(const Trace& trace) {
  using latency_hiding::Break, latency_hiding::Kernel;
  if (trace.kernel == Kernel::diverge) return trace.divergence;
  if (!latency_hiding::is_copy(trace.kernel)) return 4;
  return std::max(
      4, trace.loads_in_flight * (trace.broken == Break::divergent_branch ? trace.divergence : 1));
}

/// The clock that bars count from at a step: the first issue of the followed warp's round, or of a hop's level.
inline std::int64_t zero_of(const Trace& trace, int step, std::pair<int, int> probe) {
  using latency_hiding::Kernel;
  std::int64_t zero = 0;
  for (const Event& event : trace.machine.events) {
    if (event.what != What::issue || event.step > step) continue;
    if (trace.kernel == Kernel::chase) {
      if (event.row == probe.first && event.number == probe.second / 4 * 4) zero = event.clock;
    } else if (trace.kernel != Kernel::tail) {
      if (event.row == 0 && event.number % group_of(trace) == 0) zero = event.clock;
    }
  }
  return zero;
}

/// The end of the axis that bars of time stand on.
inline double high_of(const LatencyHidingScene& scene) {
  return scene.extent().axes.front().high;
}

inline std::vector<Question> questions_of(const LatencyHidingScene& scene) {
  std::vector<Question> all;
  for (int step = 0; step < scene.steps().tiles; ++step) {
    if (const auto question = scene.question({Cursor{step, 0}})) all.push_back(*question);
  }
  return all;
}
inline std::optional<Question> asked(const LatencyHidingScene& scene, std::string_view kind) {
  for (const Question& question : questions_of(scene)) {
    if (question.id == kind) return question;
  }
  return std::nullopt;
}

inline std::string readout(const LatencyHidingScene& scene, std::string_view id, int step) {
  for (const scenes::Readout& each : scene.readouts({Cursor{step, 0}})) {
    if (each.id == id) return each.value;
  }
  return "none";
}

}  // namespace tilestep::tests
