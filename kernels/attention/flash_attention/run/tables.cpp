#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/attention/flash_attention/run/explained.hpp"
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
  const bool sums = trace.runs != Variant::naive;
  const auto there = [](bool is, auto value) { return is ? lab::Cell(value) : lab::Cell(); };
  int number = 0;
  for (const Step& step : trace.steps) {
    const double exact = trace.answer.o_after[static_cast<std::size_t>(number++)];
    // A tile that was visited was not skipped: naive computes what is masked too.
    const lab::Cell kind =
        step.kind == TileKind::skipped ? lab::Cell("all masked") : lab::Cell(step.kind);
    table.add({number, step.k_tile, kind, step.tile_max, there(sums, step.m_after),
               there(sums, step.rescale), there(sums, step.tile_sum), there(sums, step.l),
               there(trace.o_recorded, step.o), exact});
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

}  // namespace

std::vector<lab::Table> tables_of(const Trace& trace) {
  std::vector<lab::Table> tables{
      step_table(trace), ledger_table(trace, "the kernels"), visit_table(trace),
      block_table(trace, trace.runs == Variant::flash_1 ? Owns::head : Owns::query_tile)};
  tables.push_back(answer_table(trace, trace.answer));
  if (trace.broken != Break::none) tables.push_back(broken_table(trace, "O", "query"));
  return tables;
}

// ---- what follows from formulas ---------------------------------------------------------------------

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
