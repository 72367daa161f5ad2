#include "kernels/experts/moe_routing/run/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/timing.hpp"

namespace tilestep::moe_routing {
namespace {

using lab::real, lab::whole;

// ---- checks -------------------------------------------------------------------------------------

/// Kept assignments whose slot is taken twice, or lies outside their expert's slots.
std::int64_t misplaced(const Placement& placed) {
  std::int64_t wrong = 0;
  std::vector<bool> taken(static_cast<std::size_t>(placed.slots()));
  for (std::size_t i = 0; i < placed.slot.size(); ++i) {
    const int slot = placed.slot[i];
    if (slot < 0) continue;
    const auto e = static_cast<std::size_t>(placed.expert[i]);
    const bool inside =
        slot >= placed.first_slot[e] && slot < placed.first_slot[e] + placed.kept[e];
    if (!inside || taken[static_cast<std::size_t>(slot)]) {
      ++wrong;
    } else {
      taken[static_cast<std::size_t>(slot)] = true;
    }
  }
  const auto kept =
      std::count_if(placed.slot.begin(), placed.slot.end(), [](int slot) { return slot >= 0; });
  std::int64_t counted = 0;
  for (const int k : placed.kept) counted += k;
  return wrong + std::abs(kept - counted);
}

std::int64_t over_capacity(const Trace& trace) {
  if (trace.capacity < 0) return 0;
  return std::count_if(trace.expert.begin(), trace.expert.end(),
                       [&](const ExpertTrace& e) { return e.kept > trace.capacity; });
}

/// Tiles that did not record themselves, or not one after another on their block's clock. A tile
/// that a block ran twice leaves a gap in the clock that counts mma instructions: there a block's
/// tiles abut, each with the instructions that its slots need, empty ones included.
std::int64_t tiles_misrecorded(const Outcome& outcome) {
  const Trace& trace = outcome.trace;
  const bool counted = trace.clock_unit == "mma";
  const double work = trace.tile / 8 * (kHidden / 16) * (kWidth / 16);
  std::vector<double> clocks(static_cast<std::size_t>(trace.blocks));
  std::int64_t wrong = 0;
  for (const TileTrace& tile : outcome.tiles) {
    if (tile.block < 0 || tile.block >= trace.blocks) {
      ++wrong;
      continue;
    }
    double& clock = clocks[static_cast<std::size_t>(tile.block)];
    const bool good = counted ? tile.begin == clock && tile.end == clock + work
                              : tile.begin >= clock && tile.end >= tile.begin;
    wrong += good ? 0 : 1;
    clock = tile.end;
  }
  return wrong;
}

std::vector<lab::Check> checks_of(const Outcome& outcome) {
  const Trace& trace = outcome.trace;
  lab::Closest gates;
  const double relative = gate_bound(outcome.params, outcome.inputs.logits);
  for (std::size_t i = 0; i < outcome.gate.size(); ++i) {
    gates.add(outcome.gate[i], outcome.host.gate[i], relative * outcome.host.gate[i]);
    gates.add(outcome.probability[i], outcome.host.probability[i],
              relative * outcome.host.probability[i]);
  }
  const Placement& device = outcome.device;
  const Placement& host = outcome.host;
  return {
      lab::compared(outcome.out, outcome.reference.value, outcome.reference.bound)
          .check("result",
                 "The layer's output against a dense product in double; tolerance: each mma loses "
                 "less than 17 · 2^-23 of its magnitudes, gates and sums are rounded."),
      gates.check("gates",
                  "Softmax and gates against double; tolerance: exp within 2 ulp, its "
                  "argument, the sum and two divisions rounded."),
      lab::none_wrong("choices", lab::differing(device.expert, host.expert),
                      "Chosen experts that differ from sorting the same logits."),
      lab::none_wrong("places",
                      lab::differing(device.rank, host.rank) +
                          lab::differing(device.slot, host.slot) +
                          lab::differing(device.first_slot, host.first_slot) +
                          lab::differing(device.first_tile, host.first_tile),
                      "Places, slots and tiles that differ from the host's count."),
      lab::none_wrong("permutation", misplaced(device),
                      "Kept assignments without their own slot in their expert."),
      lab::none_wrong("totals",
                      std::abs(trace.kept() + trace.dropped() -
                               std::int64_t{trace.tokens} * static_cast<std::int64_t>(trace.top_k)),
                      "Kept plus dropped assignments against tokens · top-k."),
      lab::none_wrong("capacity", over_capacity(trace),
                      "Experts that keep more than their capacity."),
      lab::none_wrong("tiles", tiles_misrecorded(outcome),
                      "Tiles that no block recorded, or that overlap on their block.")};
}

// ---- tables -------------------------------------------------------------------------------------

lab::Table expert_table(const Trace& trace) {
  lab::Table table{"experts",
                   fmt::format("The experts, in tiles of {} tokens", trace.tile),
                   {"expert", whole("kept_tokens", "kept tokens"), whole("tiles"),
                    whole("padded_slots", "padded slots"), whole("dropped")}};
  for (std::size_t e = 0; e < trace.expert.size(); ++e) {
    const ExpertTrace& one = trace.expert[e];
    table.add({fmt::format("E{}", e), one.kept, one.tiles, one.padded, one.dropped()});
  }
  return table;
}

lab::Table assignment_table(const Trace& trace) {
  lab::Table table{"assignments",
                   "Where the tokens go",
                   {whole("token"), whole("choice"), "expert", real("gate", "", "", 4), "slot"}};
  for (std::size_t t = 0; t < trace.token.size(); ++t) {
    const TokenTrace& token = trace.token[t];
    for (std::size_t choice = 0; choice < token.expert.size(); ++choice) {
      const int slot = token.slot[choice];
      table.add({t, choice, fmt::format("E{}", token.expert[choice]), token.gate[choice],
                 slot < 0 ? lab::Cell("dropped") : lab::Cell(slot)});
    }
  }
  return table;
}

lab::Table tile_table(const Trace& trace) {
  lab::Table table{
      "tiles",
      "The tiles in order of their start",
      {whole("tile", "tile of the expert"), "expert", whole("kept", "kept tokens"), whole("block"),
       whole("begin", "", trace.clock_unit), whole("end", "", trace.clock_unit)}};
  for (const TileTrace& tile : trace.tiles) {
    table.add({tile.number, fmt::format("E{}", tile.expert), tile.kept, tile.block, tile.begin,
               tile.end});
  }
  return table;
}

/// What each scheme would run for the same routing.
lab::Table scheme_table(const Outcome& outcome) {
  lab::Table table{"schemes",
                   "The same routing in each scheme",
                   {"scheme", whole("slots", "slots run"), real("useful", "", "%", 1),
                    whole("tiles"), real("busiest_share", "tiles of the busiest expert", "%", 1),
                    lab::column("what", "what it does")}};
  Placement placement = outcome.host;
  for (const Scheme scheme : all_of<Scheme>()) {
    lay_out_reference(outcome.params, scheme, placement);
    int most = 0;
    for (std::size_t e = 0; e + 1 < placement.first_tile.size(); ++e) {
      most = std::max(most, placement.first_tile[e + 1] - placement.first_tile[e]);
    }
    const double slots = static_cast<double>(placement.tiles()) * outcome.trace.tile;
    table.add({scheme, slots,
               slots > 0 ? 100 * static_cast<double>(outcome.trace.kept()) / slots : 100.0,
               placement.tiles(), placement.tiles() > 0 ? 100.0 * most / placement.tiles() : 0.0,
               reason_of(scheme)});
  }
  return table;
}

// ---- measurements, summary ----------------------------------------------------------------------

/// The share of the time until the last tile ended that the blocks spent in tiles; 1 without tiles.
double busy_share(const Outcome& outcome) {
  double last = 0, busy = 0;
  for (const TileTrace& tile : outcome.tiles) {
    last = std::max(last, tile.end);
    busy += tile.end - tile.begin;
  }
  const int blocks = outcome.trace.blocks;
  return last > 0 && blocks > 0 ? busy / (last * blocks) : 1;
}

void add_measurements(lab::Report& report, const Outcome& outcome) {
  const Trace& trace = outcome.trace;
  const auto kept = static_cast<double>(trace.kept());
  const auto slots = static_cast<double>(trace.slots());
  const std::vector<int> busiest = trace.with_most(&ExpertTrace::kept);
  const ExpertTrace& most = trace.expert[static_cast<std::size_t>(busiest.front())];
  report.add(lab::derived("useful_slots", "", 100 * trace.useful(), "%",
                          fmt::format("kept assignments / slots run = {} / {}", kept, slots)));
  report.add(lab::derived("slots_run", "", slots, "slots",
                          fmt::format("tiles · tile = {} · {}", trace.tiles_run, trace.tile)));
  report.add(lab::traced("kept_assignments", "", kept, "assignments",
                         "within their expert's capacity, counted by the kernels"));
  report.add(lab::traced("dropped_assignments", "", trace.dropped(), "assignments",
                         trace.capacity < 0
                             ? std::string("no capacity is set, nothing is dropped")
                             : fmt::format("beyond the {} slots of their expert", trace.capacity)));
  report.add(lab::traced(
      "busiest_expert", "", most.kept, "tokens",
      fmt::format("kept by {}{}; the even share is {:.4g}", experts_text(busiest, trace.experts),
                  busiest.size() > 1 ? " each" : "", kept / trace.experts)));
  report.add(lab::traced(
      "busy_share", "", 100 * busy_share(outcome), "%",
      fmt::format("time in tiles / (blocks · time until the last tile ended), {} blocks, in {}",
                  trace.blocks,
                  trace.clock_unit == "mma" ? "mma instructions issued" : "nanoseconds")));
  if (outcome.tensor_pipe) {
    report.add(lab::counted("tensor_pipe", "", *outcome.tensor_pipe, "%",
                            "sm__pipe_tensor_cycles_active of one launch of the picture's small "
                            "product: cycles in which the tensor pipe was active"));
  }
  if (outcome.tensor_instructions) {
    report.add(lab::counted("tensor_instructions", "", *outcome.tensor_instructions, "instructions",
                            "sm__inst_executed_pipe_tensor.sum of the same"));
  }
}

std::string summary_of(const Outcome& outcome) {
  const Trace& trace = outcome.trace;
  std::string busiest = busiest_text(trace);
  busiest.front() = static_cast<char>(std::toupper(busiest.front()));
  std::string routing(name_of(trace.routing));
  if (trace.routing == Routing::skewed) routing += fmt::format(" {:g}", outcome.params.skew);
  std::string text = fmt::format(
      "With {} routing to the top {} of {} experts the tensor cores run {} token-slots for {} real "
      "ones: {:.3g}% useful. {}.",
      routing, trace.top_k, trace.experts, trace.slots(), trace.kept(), 100 * trace.useful(),
      busiest);
  if (trace.dropped() > 0) {
    text += fmt::format(" {} of {} assignments found no room and are dropped.", trace.dropped(),
                        trace.kept() + trace.dropped());
  }
  return text;
}

}  // namespace

std::vector<lab::Table> tables_of(const Trace& trace) {
  return {expert_table(trace), assignment_table(trace), tile_table(trace)};
}

lab::Report report_of(const Outcome& outcome) {
  lab::Report report;
  report.summary = summary_of(outcome);
  report.checks = checks_of(outcome);
  add_measurements(report, outcome);
  report.add(expert_table(outcome.trace));
  report.add(lab::readout_table(report.measurements, 1));
  report.add(assignment_table(outcome.trace));
  report.add(tile_table(outcome.trace));
  report.add(scheme_table(outcome));
  report.trace = to_json(outcome.trace);
  return report;
}

}  // namespace tilestep::moe_routing
