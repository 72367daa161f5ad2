#include "kernels/machine/latency_hiding/run/run.hpp"

#include <cmath>
#include <set>

#include "kernels/base/lab/recording.hpp"
#include "tests/reports.hpp"
#include "tests/traces.hpp"

using namespace tilestep;
using namespace tilestep::latency_hiding;
using namespace tilestep::tests;

namespace {

const Runs run(lesson(), knob_table(), trace_from_json);

/// A run that is not recorded, so that its clocks are turns.
Params unrecorded(Params params = {}) {
  params.seed = 4711;
  return params;
}

std::string refusal(const Params& params) {
  return error_of([&] { knob_table().params(knob_table().settings(params)); });
}

void check_events(const Trace& trace) {
  const Machine& machine = trace.machine;
  std::map<std::pair<int, int>, std::int64_t> issued;
  std::int64_t before = 0;
  int step = 1;
  for (const Event& event : machine.events) {
    CHECK(event.clock >= before);
    CHECK(event.step >= step);
    before = event.clock, step = event.step;
    const Moment& moment = machine.moments.at(static_cast<std::size_t>(event.step) - 1);
    CHECK(event.clock <= moment.clock);
    if (event.step > 1)
      CHECK(event.clock > machine.moments.at(static_cast<std::size_t>(event.step) - 2).clock);
    const std::pair key(event.row, event.number);
    if (event.what == What::issue) {
      CHECK(issued.emplace(key, event.clock).second);
    } else {
      REQUIRE(issued.count(key) == 1);
      CHECK(event.clock > issued[key]);
    }
  }
  CHECK(machine.span == before);
  CHECK(machine.moments.back().clock == before);
  CHECK(machine.moments.back().in_flight == 0);
}

}  // namespace

TEST_CASE("every kernel's run: rows, probes and steps", "[latency_hiding]") {
  for (const Kernel kernel : all_of<Kernel>()) {
    INFO(name_of(kernel));
    const lab::Report report = run(unrecorded({.kernel = kernel}));
    CHECK(failed_checks(report).empty());
    const Trace trace = trace_from_json(report.trace);
    CHECK(trace.machine.unit == "turns");
    CHECK(contains(report.summary, "not recorded"));
    check_events(trace);
    if (kernel == Kernel::tail) {
      CHECK(trace.blocks == (100'000 + 127) / 128);
      CHECK(trace.machine.events.size() == 2 * static_cast<std::size_t>(trace.blocks));
      continue;
    }
    const std::size_t rows = kernel == Kernel::bulk_copy ? 4 : 16;
    CHECK(trace.machine.rows.size() == rows);
    CHECK(trace.machine.events.size() == rows * 2 * static_cast<std::size_t>(trace.probes()));
    CHECK(trace.steps() == 2 * trace.probes() + 1);
    for (const Row& row : trace.machine.rows) CHECK(row.sub_partition == row.slot % 4);
  }
}

TEST_CASE("loads are in flight by groups, and one at a time where they are serialized",
          "[latency_hiding]") {
  const auto most_in_flight = [](const Params& params) {
    int most = 0;
    for (const Moment& moment : run.trace(params).machine.moments)
      most = std::max(most, moment.in_flight);
    return most;
  };
  for (const Loads loads : all_of<Loads>()) {
    CHECK(most_in_flight(unrecorded({.loads_in_flight = loads})) == count_of(loads));
  }
  CHECK(most_in_flight(unrecorded({.broken = Break::serialize_loads})) == 1);
  CHECK(most_in_flight(unrecorded({.kernel = Kernel::chase})) == 1);
  // Each lane counts turns for itself; a warp takes the arms one after the other all the same.
  CHECK(most_in_flight(unrecorded({.kernel = Kernel::diverge, .divergence = Ways::w4})) == 1);
  // One stage has to be stored before it is filled again; with four the last one is still on its way out.
  CHECK(most_in_flight(unrecorded({.kernel = Kernel::bulk_copy, .loads_in_flight = Loads::l1})) ==
        1);
}

TEST_CASE("one warp's clocks are derived from recorded rates where no run was recorded",
          "[latency_hiding]") {
  const lab::Recording* recording = lab::recording(kLessonId);
  if (recording == nullptr) return;
  const Params alone{.warps_per_sm = 1, .block = Block::b32};
  Params serialized = alone, branch = alone, one_load = alone;
  serialized.broken = Break::serialize_loads;
  branch.broken = Break::divergent_branch;
  one_load.loads_in_flight = Loads::l1;
  CHECK_FALSE(known_machine(branch));
  CHECK_FALSE(known_machine({.warps_per_sm = 4, .block = Block::b32}));
  CHECK_FALSE(known_machine(one_load)->derived);  // it was recorded
  // Of the chip while it waits for memory: the last level of the table of latencies, in cycles and in ns.
  const lab::Table& levels = *recording->bench.table("latencies");
  const auto level = [&](const char* id) {
    for (std::size_t c = 0; c < levels.columns.size(); ++c) {
      if (levels.columns[c].id == id) return *std::get_if<double>(&levels.rows.back()[c]);
    }
    return 0.0;
  };
  REQUIRE(levels.text(levels.rows.size() - 1, 0) == "HBM");
  const double clock_ghz = level("cycles") / level("ns");
  CHECK(clock_ghz == Approx(1.98).epsilon(0.02));
  const auto cycles = [&](const lab::Table& table, std::size_t row) {
    return 2.0 * 512 * recording->bench.device.multiprocessors /
           *std::get_if<double>(&table.rows[row][4]) * clock_ghz;
  };
  const lab::Table& table = *recording->bench.table("bytes_in_flight");
  for (const bool apart : {false, true}) {
    const lab::Report report = run(apart ? serialized : alone);
    CHECK(contains(report.summary, "derived from rates measured on"));
    const Trace trace = trace_from_json(report.trace);
    CHECK(trace == trace_from_json(to_json(trace)));
    CHECK(trace.machine.derived);
    CHECK(trace.machine.has_clocks());
    check_events(trace);
    CHECK(report.measurement("mean_latency")->provenance == lab::Provenance::derived);
    // All sixteen loads take as long as their bytes do at the rate that was measured, but for the part of a lone load's
    // round that is not latency.
    const auto row_of = [&](double loads) {
      std::size_t row = 0;
      const auto is_row = [&] {
        return table.text(row, 0) == "16" && *std::get_if<double>(&table.rows[row][1]) == loads &&
               *std::get_if<double>(&table.rows[row][2]) == 1;
      };
      while (row < table.rows.size() && !is_row()) ++row;
      REQUIRE(row < table.rows.size());
      return row;
    };
    const std::size_t lone = row_of(1);
    REQUIRE(table.columns[7].id == "latency");
    const double latency = *std::get_if<double>(&table.rows[lone][7]) * clock_ghz;
    const double rest = std::max(cycles(table, lone) - latency, 0.0);
    const double want = 16 * cycles(table, row_of(apart ? 1 : 4)) - rest;
    CAPTURE(want, trace.machine.span);
    CHECK(std::abs(static_cast<double>(trace.machine.span) - want) < 5);
  }
}

TEST_CASE("what the knobs ask for, in bytes and blocks", "[latency_hiding]") {
  const Trace trace = run.trace(unrecorded());
  CHECK(trace.asked_bytes() == 16 * 32 * 4 * 16);
  CHECK(trace.blocks_per_sm == 4);
  // Four blocks of it fit, and not five.
  CHECK(4 * (trace.dynamic_shared_bytes + 1024) <= 228 * 1024);
  CHECK(5 * (trace.dynamic_shared_bytes + 1024) > 228 * 1024);
  CHECK(run.trace(unrecorded({.broken = Break::serialize_loads})).asked_bytes() == 16 * 32 * 16);
  const Trace branch =
      run.trace(unrecorded({.divergence = Ways::w4, .broken = Break::divergent_branch}));
  CHECK(branch.asked_bytes() == 16 * 8 * 4 * 16);
  REQUIRE(branch.arms.size() == 4);
  CHECK(branch.arms[1].voted == 0x22222222u);
  for (int warps : {1, 2, 3, 4, 7, 16, 31}) {
    const Params params{.warps_per_sm = warps, .block = Block::b32};
    CAPTURE(warps);
    const Occupancy all =
        occupancy_of({.threads = 32, .dynamic_shared_bytes = dynamic_shared_bytes(params)});
    CHECK(all.resident == warps);
  }
}

TEST_CASE("a kernel that no GPU ran is bound by the registers that it is compiled with",
          "[latency_hiding]") {
  const Trace trace = run.trace(unrecorded({.kernel = Kernel::spill}));
  CHECK(trace.machine.compiled.registers == 0);
  CHECK(trace.registers() == 128);
  const Occupancy all = trace.occupancy();
  CHECK(all.warps == 16);
  CHECK(all.binding == Limit::registers);
  const Trace other = run.trace(unrecorded({.kernel = Kernel::fma}));
  CHECK(other.registers() == 0);
}

TEST_CASE("impossible combinations are refused with what is allowed", "[latency_hiding]") {
  CHECK(contains(refusal({.warps_per_sm = 6}), "multiples of 4 up to 64"));
  CHECK(contains(refusal({.warps_per_sm = 33, .block = Block::b32}), "holds 32 blocks"));
  CHECK(contains(refusal({.warps_per_sm = 36, .loads_in_flight = Loads::l8}), "up to 28"));
  CHECK(contains(refusal({.kernel = Kernel::spill, .max_registers = Registers::r168}), "up to 12"));
  CHECK(run.trace({.kernel = Kernel::fma, .broken = Break::serialize_loads}).broken == Break::none);
  CHECK(contains(refusal({.kernel = Kernel::spill,
                          .warps_per_sm = 32,
                          .max_registers = Registers::r168,
                          .block = Block::b512}),
                 "block is 512"));
  CHECK(contains(
      refusal({.kernel = Kernel::bulk_copy, .warps_per_sm = 64, .loads_in_flight = Loads::l8}),
      "1, 2, 4"));
  CHECK(contains(refusal({.kernel = Kernel::tail, .block = Block::b64}), "128, 256"));
}

TEST_CASE("source lines of issue, use and arm", "[latency_hiding]") {
  const Trace copy = run.trace(unrecorded());
  check_lines(source_path(Kernel::copy), copy.lines,
              {"= __ldcg(&from[", "__stcg(&to[", "% ways == arm"});
  const Trace chase = run.trace(unrecorded({.kernel = Kernel::chase}));
  check_lines(source_path(Kernel::chase), std::span(chase.lines).first(2), {"next_of", "visited["});
}

TEST_CASE("rows and steps of clocks as a GPU would leave them", "[latency_hiding]") {
  // Two warps of SM 7 and one of SM 9; the clock comes round between them.
  Records records;
  records.warps = {{7, 5, 0, 90, 4, 2, 0, 0, 20'000},
                   {9, 0, 0, 90, 4, 2, 0, 0, 20'000},
                   {7, 2, 0, 40'000, 6, 2, 0, 0, 20'000}};
  records.kept.assign(3 * kMostProbes, {kUnwritten, kUnwritten, kUnwritten});
  records.kept[0] = {0xFFFFFFF0u, 20, 0};
  records.kept[1] = {30, 60, 0};
  records.kept[2 * kMostProbes] = {0xFFFFFFE0u, 0xFFFFFFF8u, 0};
  records.kept[2 * kMostProbes + 1] = {10, 50, 0};
  Machine machine;
  machine.unit = "cycles";
  fill_rows(machine, records, {3, 32, 0}, 2);
  REQUIRE(machine.rows.size() == 2);
  CHECK(machine.rows[0] == Row{7, 0, 0, 5, 1});
  CHECK(machine.rows[1] == Row{7, 2, 0, 2, 2});
  CHECK(machine.probe_cost == 4);
  CHECK(machine.span == 60 + 32);
  REQUIRE(machine.moments.size() == 5);
  // At clock 16 row 0 issues; row 1 has issued at 0 and uses at 24.
  CHECK(machine.moments[0] == Moment{What::issue, 0, 16, 2});
  CHECK(machine.moments[1] == Moment{What::use, 0, 52, 1});
  CHECK(machine.moments[4] == Moment{What::use, -1, 92, 0});
  CHECK(machine.events.front() == Event{1, 0, What::issue, 1, 0});
}

TEST_CASE("rows stand by sub-partition, then by slot", "[latency_hiding]") {
  Records records;
  for (const std::uint32_t slot : {4u, 3u, 1u, 0u}) {
    records.warps.push_back({7, slot, 0, 90, 4, 1, 0, 0, 20'000});
  }
  records.kept.assign(4 * kMostProbes, {kUnwritten, kUnwritten, kUnwritten});
  for (std::size_t warp = 0; warp < 4; ++warp) records.kept[warp * kMostProbes] = {10, 20, 0};
  Machine machine;
  machine.unit = "cycles";
  fill_rows(machine, records, {2, 64, 0}, 1);
  const std::vector<Row> want = {
      {7, 1, 1, 0, 0}, {7, 0, 0, 4, 0}, {7, 1, 0, 1, 1}, {7, 0, 1, 3, 3}};
  CHECK(machine.rows == want);
}

TEST_CASE("blocks of a tail by multiprocessor", "[latency_hiding]") {
  Records records;
  records.warps = {{3, 0, 0, 1, 0, 0, 0, 1000, 1500},
                   {3, 1, 0, 1, 0, 0, 0, 1010, 1600},
                   {1, 0, 0, 1, 0, 0, 0, 990, 1490},
                   {1, 1, 0, 1, 0, 0, 0, 1000, 1470}};
  Machine machine;
  machine.unit = "ns";
  fill_blocks(machine, records, {2, 64, 0});
  REQUIRE(machine.rows.size() == 2);
  CHECK(machine.rows[0].sm == 1);
  REQUIRE(machine.events.size() == 4);
  CHECK(machine.events[0] == Event{0, 1, What::issue, 1, 0});
  CHECK(machine.events[3].clock == 610);
  CHECK(machine.span == 610);
  CHECK(machine.moments.size() == 24);
}

TEST_CASE("damaged traces are refused", "[latency_hiding]") {
  const nlohmann::json good = to_json(run.trace(unrecorded()));
  check_refusals(good, trace_again,
                 {{"/kernel", "walk", "bulk-copy"},
                  {"/machine/unit", "hours", "none of cycles"},
                  {"/machine/events/step/0", 1000, "step"},
                  {"/machine/events/row/0", 16, "row"},
                  {"/machine/events/clock/0", -1, "clock"},
                  {"/machine/moments", kGone, "moments"},
                  {"/arms", 3, "arms"}});
}
