// The Measured tab of the lesson on latency hiding: the ladder, bytes in flight against bandwidth, the latency under
// load, chains of FMAs, the memory ladder, registers, branches, the tail, and probes beside counters.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "scenes/machine/latency_hiding/scene.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {
namespace {

/// "16 B a load", "bulk copy": the name of a curve.
lab::Table with_kinds(lab::Table table) {
  add_column(table, "name", [&](std::size_t row) -> lab::Cell {
    const std::string kind = text_in(table, row, "kind");
    return kind == "bulk" ? "bulk copy" : kind + " B a load";
  });
  return table;
}

/// The fastest row for each kind and number of bytes in flight: one curve per kind.
lab::Table with_best(lab::Table table) {
  std::vector<std::string> kinds;
  std::map<std::pair<std::ptrdiff_t, double>, std::size_t> best;
  const auto rate = [&](std::size_t row) { return number_in(table, row, "bandwidth").value_or(0); };
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const auto in_flight = number_in(table, row, "in_flight");
    if (!in_flight) continue;
    const std::string kind = text_in(table, row, "kind");
    const auto found = std::find(kinds.begin(), kinds.end(), kind);
    const std::pair key(found - kinds.begin(), *in_flight);
    if (found == kinds.end()) kinds.push_back(kind);
    std::size_t& kept = best.try_emplace(key, row).first->second;
    if (rate(row) > rate(kept)) kept = row;
  }
  std::vector<std::vector<lab::Cell>> rows;
  for (const auto& [key, row] : best) rows.push_back(table.rows[row]);
  table.rows = std::move(rows);
  return with_kinds(std::move(table));
}

/// Rows that have a loaded latency: bulk copies' waits are not probed.
lab::Table with_latency(lab::Table table) {
  std::erase_if(table.rows, [&](const auto& row) {
    const auto index = static_cast<std::size_t>(&row - table.rows.data());
    return !number_in(table, index, "latency");
  });
  return with_best(std::move(table));
}

/// Warps × ilp: a multiprocessor's chains.
lab::Table with_chains(lab::Table table) {
  add_column(table, "chains", [&](std::size_t row) -> lab::Cell {
    const auto ilp = number_in(table, row, "ilp"), warps = number_in(table, row, "warps_per_sm");
    return ilp && warps ? lab::Cell(*ilp * *warps) : lab::Cell();
  });
  add_column(table, "name",
             [&](std::size_t row) -> lab::Cell { return "ilp " + text_in(table, row, "ilp"); });
  return table;
}

Role rung_role(std::string_view rung) {
  return rung == "bulk-copy" ? Role::purple : rung == "one-load" ? Role::muted : Role::sky;
}

Role kind_role(std::string_view name) {
  return name == "bulk copy"    ? Role::purple
         : name == "4 B a load" ? Role::yellow
         : name == "8 B a load" ? Role::sky
                                : Role::green;
}

/// Bars without a spread, and of no peer.
measured::Bars plain(measured::Bars bars) {
  bars.low = bars.high = bars.fraction = {};
  return bars;
}

}  // namespace

measured::Spec LatencyHidingScene::measured_spec() const {
  using namespace measured;
  return {"ladder",
          {{.name = "Ladder",
            .how = "16 of 64 warps, 25 % occupancy; bytes read and written over time",
            .plots = {Bars{.id = "latency_ladder",
                           .unit = "GB/s",
                           .rows = {.table = "ladder"},
                           .label = "rung",
                           .value = "bandwidth",
                           .of = "the device's copy",
                           .roof = {"copy_bandwidth", "device", "device copy"},
                           .role = rung_role}}},
           {.name = "Bytes in flight",
            .how = "the fastest copy at each number of bytes in flight per multiprocessor",
            .plots = {Lines{.id = "bytes_in_flight",
                            .title = "Bandwidth",
                            .x_label = "KiB in flight",
                            .y_label = "GB/s",
                            .x_log = true,
                            .rows = {.table = "bytes_in_flight", .prepare = with_best},
                            .x = "in_flight",
                            .series = "name",
                            .y = "bandwidth",
                            .roof = {"copy_bandwidth", "device", "device copy"},
                            .role = kind_role},
                      Lines{.id = "loaded_latency",
                            .title = "Loaded latency",
                            .x_label = "KiB in flight",
                            .y_label = "ns",
                            .x_log = true,
                            .rows = {.table = "bytes_in_flight", .prepare = with_latency},
                            .x = "in_flight",
                            .series = "name",
                            .y = "latency",
                            .low = "",
                            .high = "",
                            .role = kind_role}},
            .needs = "bytes_in_flight"},
           {.name = "Latency",
            .how = "a pointer chase: each load's address is the last load's result",
            .plots = {Lines{.id = "memory_ladder",
                            .title = "A hop, by footprint",
                            .x_label = "KiB",
                            .y_label = "cycles",
                            .x_log = true,
                            .y_log = true,
                            .rows = {.table = "memory_ladder"},
                            .x = "footprint",
                            .curves = {{.column = "cycles", .label = "measured"}}}},
            .needs = "memory_ladder"},
           {.name = "Levels",
            .how = "the same chase, with a footprint that one level holds",
            .plots = {plain({.id = "latencies",
                             .title = "By level",
                             .unit = "cycles",
                             .rows = {.table = "latencies"},
                             .label = "level",
                             .value = "cycles",
                             .note = "{ns} ns"})},
            .needs = "latencies"},
           {.name = "L2",
            .how = "hops that hit L2, each timed: near and far slices",
            .plots = {Lines{.id = "l2_distribution",
                            .title = "Hops by their cycles",
                            .x_label = "cycles",
                            .y_label = "hops",
                            .rows = {.table = "l2_distribution"},
                            .x = "cycles",
                            .curves = {{.column = "hops", .label = "hops"}}}},
            .needs = "l2_distribution"},
           {.name = "FLOP/s",
            .how = "FP32, two per FMA; all chains of a multiprocessor count alike",
            .plots = {Lines{.id = "chains",
                            .title = "Rate",
                            .x_label = "warps × ilp",
                            .y_label = "TFLOP/s",
                            .x_log = true,
                            .rows = {.table = "flops", .prepare = with_chains},
                            .x = "chains",
                            .series = "name",
                            .y = "tflops"}},
            .needs = "flops"},
           {.name = "Registers",
            .how = "one source, compiled for eight limits, with as many warps as fit",
            .plots = {plain({.id = "register_limits",
                             .title = "Rate",
                             .unit = "TFLOP/s",
                             .rows = {.table = "registers"},
                             .label = "{max_registers} registers",
                             .value = "tflops",
                             .note = "{warps_per_sm} warps"}),
                      plain({.id = "spills",
                             .title = "Local-memory loads per thread and round",
                             .rows = {.table = "registers"},
                             .label = "{max_registers} registers",
                             .value = "local_loads",
                             .note = "{local_bytes} B"})},
            .needs = "registers"},
           {.name = "Branches",
            .how = "the same work, each warp's lanes split over n arms",
            .plots = {plain({.id = "ways",
                             .title = "Times as long",
                             .unit = "×",
                             .rows = {.table = "divergence"},
                             .label = "{ways|way}",
                             .value = "slowdown",
                             .note = "{threads_per_instruction} lanes/instruction"})},
            .needs = "divergence"},
           {.name = "Tail",
            .how = "more and more blocks of the same work",
            .plots = {Lines{.id = "tail_efficiency",
                            .title = "Rate, relative to full waves",
                            .x_label = "blocks",
                            .y_label = "%",
                            .rows = {.table = "tail"},
                            .x = "blocks",
                            .curves = {{.column = "efficiency", .label = "used"}}},
                      Lines{.id = "tail_time",
                            .title = "Time",
                            .x_label = "blocks",
                            .y_label = "ms",
                            .rows = {.table = "tail"},
                            .x = "blocks",
                            .curves = {{.column = "time", .label = "time"}}}},
            .needs = "tail"},
           {.name = "Stalls",
            .how = "dashed: counted; first issue to last use",
            .plots = {plain({.id = "stalls",
                             .unit = "cycles",
                             .rows = {.table = "stalls"},
                             .label = "{warps_per_sm|warp}, {loads|load}",
                             .value = "round",
                             .expected = "waited",
                             .note = "{eligible} eligible, probes {slowdown} ×"})},
            .needs = "stalls"},
           {.name = "Schedulers",
            .how = "two warps of one block, n slots apart: four apart share a scheduler",
            .plots = {plain({.id = "same_scheduler",
                             .title = "Slowdown relative to one block alone",
                             .unit = "×",
                             .rows = {.table = "subpartitions"},
                             .label = "{distance|slot} apart",
                             .value = "slowdown"})},
            .needs = "subpartitions"}}};
}

}  // namespace tilestep::scenes
