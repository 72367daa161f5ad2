// The report of a run: summary, checks, measurements, and the trace as tables.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kernels/attention/sparse_attention/cost.hpp"
#include "kernels/attention/sparse_attention/run/run.hpp"
#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/timing.hpp"

namespace tilestep::sparse_attention {
namespace {

using lab::real, lab::whole;

double square(int length) {
  return static_cast<double>(length) * length;
}

lab::Table row_table(const Trace& trace) {
  lab::Table table{
      "rows",
      fmt::format("Tiles of {0} × {0} pairs, by tiles of queries", trace.tile),
      {whole("queries", "tile of queries"), whole("full"), whole("partial"), whole("skipped"),
       whole("kept", "pairs seen"), whole("computed", "pairs computed")}};
  for (int row = 0; row < trace.tiles(); ++row) {
    int kinds[3] = {}, kept = 0, computed = 0;
    for (int t = 0; t < trace.tiles(); ++t) {
      ++kinds[static_cast<int>(trace.kind(row, t))];
      if (trace.computes(row, t)) computed += trace.pairs_of(row, t);
    }
    for (int q = row * trace.tile; q < std::min((row + 1) * trace.tile, trace.length); ++q) {
      for (int k = 0; k < trace.length; ++k) kept += trace.sees(q, k) ? 1 : 0;
    }
    table.add({row, kinds[2], kinds[1], kinds[0], kept, computed});
  }
  return table;
}

lab::Table size_table(const Trace& trace) {
  lab::Table table{
      "sizes",
      "The same rule in tiles of other sizes",
      {whole("tile"), whole("full"), whole("partial"), whole("skipped"),
       real("share", "pairs computed", "%", 1), real("times", "times as few as all", "", 2)}};
  for (const Tiling& one : trace.sizes) {
    table.add({one.tile, one.full, one.partial, one.skipped,
               100 * one.computed / square(trace.length),
               one.computed > 0 ? square(trace.length) / one.computed : INFINITY});
  }
  return table;
}

lab::Table token_table(const Trace& trace) {
  lab::Table table{
      "tokens",
      "Tokens as the last query finds them",
      {whole("token"), real("index", "index score", "", 3), "chosen",
       real("dense", "weight among all", "", 4), real("sparse", "weight among the chosen", "", 4)}};
  for (int t = 0; t < trace.length; ++t) {
    const auto at = static_cast<std::size_t>(t);
    const bool is = std::find(trace.chosen.begin(), trace.chosen.end(), t) != trace.chosen.end();
    table.add({t, trace.index[at], is ? "yes" : "no", trace.dense[at], trace.sparse[at]});
  }
  return table;
}

lab::Table stream_table(const Trace& trace) {
  lab::Table table{"stream",
                   fmt::format("Tiles of {} tokens, as they come by", trace.tile),
                   {whole("tile"), whole("passed", "above the floor"), whole("kept", "of it kept"),
                    whole("left", "kept until the end")}};
  const auto k = static_cast<std::size_t>(trace.top_k);
  const auto of_tile = [&](std::size_t row, int tile) {
    const auto first = trace.best.begin() + static_cast<std::ptrdiff_t>(row * k);
    return std::count_if(first, first + static_cast<std::ptrdiff_t>(k),
                         [&](int token) { return token >= 0 && token / trace.tile == tile; });
  };
  for (int tile = 0; tile < trace.tiles(); ++tile) {
    const auto at = static_cast<std::size_t>(tile);
    table.add({tile, trace.passed[at], of_tile(at, tile),
               of_tile(static_cast<std::size_t>(trace.tiles() - 1), tile)});
  }
  return table;
}

lab::Table method_table(const Trace& trace) {
  lab::Table table{
      "methods",
      fmt::format("What each keeps, in tiles of {0} × {0}; of dsa row by row", trace.tile),
      {"method", real("kept", "pairs seen", "%", 1), real("computed", "pairs computed", "%", 1),
       real("mass", "weight kept", "%", 1)}};
  for (const Kept& one : trace.methods) {
    table.add({one.method, 100 * one.pairs / square(trace.length),
               100 * one.computed / square(trace.length), 100 * one.mass});
  }
  return table;
}

lab::Table ledger_table() {
  lab::Table table{
      "ledger",
      "A token in a layer of DeepSeek-V3.2, by formula",
      {whole("context"), real("dense", "dense", "MFLOP", 1), real("index", "indexer", "MFLOP", 1),
       real("attention", "attention", "MFLOP", 1), real("times", "fewer FLOPs", "", 2),
       real("dense_bytes", "dense", "MB", 2), real("index_bytes", "indexer", "MB", 2),
       real("attention_bytes", "attention", "MB", 2), real("byte_times", "fewer bytes", "", 2)}};
  for (const int context : kContexts) {
    const Cost flops = flops_at(context), bytes = bytes_at(context);
    table.add({context, flops.dense / 1e6, flops.index / 1e6, flops.attention / 1e6, flops.times(),
               bytes.dense / 1e6, bytes.index / 1e6, bytes.attention / 1e6, bytes.times()});
  }
  return table;
}

/// Without numbers that hang on the last bit: a GPU's summary is the emulation's.
std::string summary_of(const Trace& trace) {
  if (!trace.result.outcome.empty()) {
    const std::string what(trace.indexes() ? name_of(trace.broken) : name_of(trace.finding));
    return fmt::format("{}: {}.", what,
                       trace.result.wrong > 0 ? "numbers of O are wrong" : trace.result.outcome);
  }
  if (trace.indexes()) {
    return fmt::format("dsa: of {} tokens {} are chosen, which have {:.0f} % of the weight.",
                       trace.length, std::min(trace.top_k, trace.length), 100 * trace.mass());
  }
  int computed = 0, kept = 0;
  for (int row = 0; row < trace.tiles(); ++row) {
    for (int t = 0; t < trace.tiles(); ++t)
      computed += trace.computes(row, t) ? trace.pairs_of(row, t) : 0;
  }
  for (const int one : trace.pairs) kept += one;
  return fmt::format(
      "{}: {:.0f} % of all pairs are seen, and {:.0f} % are computed in tiles of "
      "{}.",
      name_of(trace.method), 100 * kept / square(trace.length),
      100 * computed / square(trace.length), trace.tile);
}

}  // namespace

std::vector<lab::Table> tables_of(const Trace& trace) {
  if (trace.indexes())
    return {token_table(trace), stream_table(trace), method_table(trace), ledger_table()};
  return {row_table(trace), size_table(trace), method_table(trace)};
}

lab::Report report_of(const Run& run) {
  const Trace& trace = run.trace;
  lab::Report report;
  report.summary = summary_of(trace);
  report.tables = tables_of(trace);
  const Compared masked = compared(run, run.sound);
  report.add(masked.o.check("attention", "against double, over the pairs that the rule lets see"));
  report.add(masked.lse.check("log_sum_exp", "the same: of scores, exp and sums in FP32"));
  if (!trace.indexes()) {
    report.add(lab::none_wrong("rule", run.wrong_rules, "each pair by the method's definition"));
    report.add(lab::none_wrong("tiles", run.wrong_tiles, "each tile's kind is that of its pairs"));
  }
  const ComparedIndex chosen = compared(run, run.indexed);
  report.add(chosen.scores.check("index", "exact: the numbers have few bits"));
  report.add(lab::none_wrong("top_k", chosen.wrong_choices,
                             "the same tokens as a sort of all scores, equal ones by index"));
  report.add(chosen.o.check("sparse", "against double, over the tokens of that sort"));
  if (trace.indexes())
    report.add(lab::traced("mass", "dsa", trace.mass(), "", "weights of the chosen among all"));
  report.add(lab::derived("break_even", "", break_even(), "tokens",
                          "k · 278,528 / (278,528 − 16,384), FLOPs per token and row"));
  report.trace = to_json(trace);
  return report;
}

}  // namespace tilestep::sparse_attention
