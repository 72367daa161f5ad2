#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "kernels/attention/flash_attention/run/ledger.hpp"
#include "kernels/attention/flash_attention/run/run.hpp"

namespace tilestep::flash_attention {
namespace {

using lab::column, lab::real, lab::whole;

// ---- what a trace says ------------------------------------------------------------------------------

lab::Table step_table(const Trace& trace) {
  lab::Table table{
      "steps",
      fmt::format("Tile by tile: head {}, query {}, component {}", trace.chosen.head,
                  trace.chosen.query, trace.chosen.component),
      {whole("step"), whole("k_tile", "tile of keys"), column("kind", "mask"),
       real("tile_max", "tile max", "", 3), real("m", "", "", 3), real("rescale", "", "", 4),
       real("tile_sum", "tile sum", "", 3), real("l", "ℓ", "", 3), real("o", "O", "", 4),
       real("exact", "softmax so far", "", 4)}};
  const bool sums = trace.plan.runs != Variant::naive;
  const auto there = [](bool is, auto value) { return is ? lab::Cell(value) : lab::Cell(); };
  int number = 0;
  for (const Step& step : trace.steps) {
    const double exact = trace.answer.o_after[static_cast<std::size_t>(number++)];
    // A tile that was visited was not skipped: naive computes what is masked too, and a block of flash-3 visits one tile
    // even where it sees none.
    const lab::Cell kind =
        step.kind == TileKind::skipped ? lab::Cell("all masked") : lab::Cell(step.kind);
    table.add({number, step.k_tile, kind, step.tile_max, there(sums, step.m_after),
               there(sums, step.rescale), there(sums, step.tile_sum), there(sums, step.l),
               there(trace.o_recorded, step.o), exact});
  }
  return table;
}

lab::Table ledger_table(const Trace& trace) {
  const bool block = is_flash_3(trace.plan.runs);
  lab::Table table{
      "ledger",
      fmt::format("Bytes that {} asked of memory, and what the formula says",
                  block                 ? fmt::format("block {}", trace.chosen.block)
                  : trace.is_backward() ? "the kernels of the backward pass"
                                        : "the kernels"),
      {column("tensor", "tensor"), whole("loaded", "loaded", "B"), whole("stored", "stored", "B"),
       whole("formula_loaded", "formula: loaded", "B"),
       whole("formula_stored", "formula: stored", "B"),
       whole("whole_loaded", "whole problem: loaded", "B"),
       whole("whole_stored", "whole problem: stored", "B"), whole("held", "memory held", "B"),
       whole("kept", "of it kept from the forward pass", "B")}};
  if (!trace.is_backward()) table.columns.pop_back();
  for (const LedgerRow& row : trace.ledger) {
    std::vector<lab::Cell> cells{
        row.tensor,         row.loaded,       row.stored,       row.formula_loaded,
        row.formula_stored, row.whole_loaded, row.whole_stored, row.held};
    if (trace.is_backward()) cells.emplace_back(row.kept);
    table.add(std::move(cells));
  }
  return table;
}

lab::Table visit_table(const Trace& trace) {
  lab::Table table{
      "visits",
      fmt::format("Tiles of scores of head {}, by tile of queries", trace.chosen.head),
      {whole("q_tile", "tile of queries"), whole("block"), whole("visited"), whole("full"),
       whole("partial"), whole("skipped", "all masked"), whole("rescaled", "rows rescaled"),
       whole("o_reads", "rows of O read"), whole("o_writes", "rows of O written")}};
  for (int q = 0; q < trace.plan.q_tiles; ++q) {
    int kinds[3] = {};
    int seen = 0, rescaled = 0, reads = 0, writes = 0, block = -1;
    for (int k = 0; k < trace.plan.k_tiles; ++k) {
      const TileVisit& visit = trace.visit(q, k);
      ++kinds[static_cast<int>(visit.kind)];
      seen += visit.order >= 0 ? 1 : 0;
      block = block < 0 ? visit.block : block;
      rescaled += std::max(visit.rescaled, 0);
      reads += visit.o_reads;
      writes += visit.o_writes;
    }
    table.add({q, block < 0 ? lab::Cell() : lab::Cell(block), seen, kinds[2], kinds[1], kinds[0],
               trace.counts_rescaled() ? lab::Cell(rescaled) : lab::Cell(), reads, writes});
  }
  return table;
}

lab::Table block_table(const Trace& trace) {
  const bool of_keys = trace.is_backward();
  lab::Table table{"blocks",
                   "What each block had to do",
                   {whole("block"), whole("head"),
                    of_keys ? whole("k_tile", "tile of keys") : whole("q_tile", "tile of queries"),
                    whole("visits", "tiles of scores"), whole("begin", "begin", trace.clock_unit),
                    whole("end", "end", trace.clock_unit)}};
  const auto known = [](std::int64_t clock) { return clock < 0 ? lab::Cell() : lab::Cell(clock); };
  for (const BlockLane& lane : trace.blocks) {
    const int tile = of_keys ? lane.k_tile : lane.q_tile;
    table.add({lane.block, lane.head, tile < 0 ? lab::Cell() : lab::Cell(tile), lane.visits,
               known(lane.begin), known(lane.end)});
  }
  return table;
}

std::string lane_name(int lane) {
  return lane == 0 ? "producer" : lane < 0 ? "looks on" : fmt::format("warpgroup {}", lane);
}

/// What the lanes of flash-3's block were busy with; activities of a lane may run side by side.
lab::Table lane_table(const Trace& trace) {
  lab::Table table{
      "lanes",
      fmt::format("What the lanes of block {} were busy with", trace.chosen.block),
      {column("lane", "lane"), column("what", "what"), whole("spans"),
       whole("clock", "in all", trace.clock_unit), real("share", "of the block's time", "%", 1)}};
  std::map<std::pair<int, Activity>, std::pair<int, std::int64_t>> sums;
  for (const Span& span : spans_of(trace)) {
    auto& [count, clock] = sums[{span.lane, span.what}];
    ++count;
    clock += span.end - span.begin;
  }
  const std::int64_t all = std::max<std::int64_t>(trace.events.back().clock, 1);
  for (const auto& [key, sum] : sums) {
    table.add({lane_name(key.first), key.second, sum.first, sum.second,
               100 * static_cast<double>(sum.second) / static_cast<double>(all)});
  }
  return table;
}

lab::Table answer_table(const Trace& trace) {
  lab::Table table{"answer",
                   fmt::format("O of head {}, query {}", trace.chosen.head, trace.chosen.query),
                   {whole("component"), real("o", "O", "", 5), real("exact", "in double", "", 5),
                    real("error", "error", "", 6)}};
  for (std::size_t c = 0; c < trace.answer.o.size(); ++c) {
    const auto o = static_cast<double>(trace.answer.o[c]);
    table.add({c, o, trace.answer.exact[c], o - trace.answer.exact[c]});
  }
  return table;
}

lab::Table broken_table(const Trace& trace) {
  const BrokenResult& result = trace.result;
  lab::Table table{
      "broken",
      fmt::format("What came of {}", name_of(trace.broken)),
      {column("outcome", "outcome"),
       whole("wrong", trace.is_backward() ? "wrong numbers of dQ, dK, dV" : "wrong numbers of O"),
       whole("elements", "of all"), column("tensor", "first wrong"), whole("head"),
       whole("query", trace.is_backward() ? "row" : "query"), whole("component"),
       real("got", "got", "", 4), real("want", "want", "", 4),
       real("largest", "largest error", "", 4), whole("more_bytes", "more bytes asked", "B")}};
  const auto found = [&](auto value) { return result.wrong > 0 ? lab::Cell(value) : lab::Cell(); };
  table.add({result.outcome, result.wrong, result.elements, found(result.tensor),
             found(result.head), found(result.query), found(result.component), found(result.got),
             found(result.want), found(result.largest), result.more_bytes});
  return table;
}

}  // namespace

std::vector<lab::Table> tables_of(const Trace& trace) {
  const bool backward = trace.is_backward();
  std::vector<lab::Table> tables{
      backward ? backward_step_table(trace) : step_table(trace), ledger_table(trace),
      backward ? backward_visit_table(trace) : visit_table(trace), block_table(trace)};
  if (!trace.events.empty()) tables.push_back(lane_table(trace));
  tables.push_back(backward ? backward_answer_table(trace) : answer_table(trace));
  if (trace.broken != Break::none) tables.push_back(broken_table(trace));
  return tables;
}

// ---- what follows from formulas ---------------------------------------------------------------------

lab::Table ladder_table() {
  lab::Table table{"ladder", "The ladder", {"rung", column("what_changed", "what changed")}};
  for (const Variant variant : all_of<Variant>()) table.add({variant, reason_of(variant)});
  return table;
}

lab::Table lengths_table(const Params& params) {
  lab::Table table{
      "lengths",
      fmt::format("What a length comes to: {} head{} of {}, {}", params.heads,
                  params.heads == 1 ? "" : "s", name_of(params.head_dim), name_of(params.dtype)),
      {whole("length"), real("scores", "scores a head", "million", 2),
       real("naive_held", "naive holds", "MB", 1), real("flash_held", "flash-2 holds", "MB", 1),
       real("naive_asked", "naive asks", "MB", 1), real("flash_asked", "flash-2 asks", "MB", 1),
       column("fits", "naive in 141 GB")}};
  for (int length = 1024; length <= kMostLength; length *= 2) {
    Params p = params;
    p.seq = length;
    p.pass = Pass::forward;
    p.broken = Break::none;
    p.dtype = DataType::bf16;  // naive has no scores in 8 bits
    double held[2] = {};
    double asked[2] = {};
    const std::vector<int> begins = begins_of(document_lengths(length, p.seed));
    for (const int i : {0, 1}) {
      p.variant = i == 0 ? Variant::naive : Variant::flash_2;
      // A row of naive's scores must fit shared memory; the formula does not mind.
      const Plan plan = formula_plan_of(p);
      for (const auto bytes : held_by(plan, task_of(p), p.broken)) {
        held[i] += static_cast<double>(bytes);
      }
      for (const Asked& one : ledger_of(plan, task_of(p), p.broken, begins)) {
        asked[i] += static_cast<double>(one.loaded + one.stored);
      }
    }
    constexpr double kMemory = 141e9;  // an H200's
    table.add({length, static_cast<double>(length) * length / 1e6, held[0] / 1e6, held[1] / 1e6,
               asked[0] / 1e6, asked[1] / 1e6, held[0] <= kMemory ? "fits" : "does not fit"});
  }
  return table;
}

}  // namespace tilestep::flash_attention
