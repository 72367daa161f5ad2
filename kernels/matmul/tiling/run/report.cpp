#include "kernels/matmul/tiling/run/report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/timing.hpp"

namespace tilestep::tiling {
namespace {

using lab::column, lab::real, lab::whole;

// ---- checks -------------------------------------------------------------------------------------

/// The recorded partial sums against the same prefix of the product in double.
lab::Check partial_sums_check(std::string id, const Outcome& outcome, const BlockTrace& block) {
  const Trace& trace = outcome.trace;
  lab::Closest closest;
  for (int row = 0; row < trace.rows(); ++row) {
    for (int column = 0; column < trace.columns(); ++column) {
      double sum = 0;
      const auto bound = outcome.reference.bound[static_cast<std::size_t>(
          (trace.first_row() + row) * trace.n + trace.first_column() + column)];
      for (int kk = 0; kk < trace.k; ++kk) {
        sum += static_cast<double>(trace.a_band[static_cast<std::size_t>(row * trace.k + kk)]) *
               static_cast<double>(
                   trace.b_band[static_cast<std::size_t>(kk * trace.columns() + column)]);
        if ((kk + 1) % trace.tile != 0 && kk + 1 != trace.k) continue;
        const KTile& tile = block.k_tiles[static_cast<std::size_t>(kk / trace.tile)];
        closest.add(tile.sums[static_cast<std::size_t>(row * trace.tile + column)], sum, bound);
      }
    }
  }
  return closest.check(std::move(id),
                       fmt::format("Every thread's partial sum after each k-tile, as {} "
                                   "recorded it, against double.",
                                   name_of(block.variant)));
}

std::int64_t expected_loads(const Outcome& outcome) {
  if (outcome.tile_m == 1) return untiled_loads(outcome.shape);
  return tiled_loads(outcome.shape, outcome.tile_m, outcome.tile_n);
}

std::vector<lab::Check> checks_of(const Outcome& outcome) {
  const Trace& trace = outcome.trace;
  const std::string bound =
      trace.variant == Variant::tensor_core
          ? "Against double; tolerance: in each mma 16 products and the sum so far lose less than "
            "2^-23 of the largest, added up along k."
          : "Against double; tolerance: each product and each sum along k is rounded to FP32 by at "
            "most 2^-24 of itself, added up along k.";
  const numeric::AllBounded& exact = outcome.reference;
  std::vector<lab::Check> all = {
      lab::compared(outcome.timed, exact.value, exact.bound).check("result", bound),
      lab::compared(outcome.counted, outcome.timed, exact.bound)
          .check("counted_equals_timed",
                 "The counting run and the timed run give the same C, up to the tolerance of "
                 "`result`."),
      lab::equal(
          "global_loads", trace.global_loads, expected_loads(outcome),
          "Loads counted by the kernel's own accesses equal those that its tiles imply; exact."),
      lab::equal("global_loads_naive", trace.naive_global_loads, untiled_loads(outcome.shape),
                 "naive loads two per product; exact.")};
  if (!trace.rungs.empty()) {
    all.push_back(lab::none_wrong(
        "one_owner", outcome.uneven,
        "In the drawn block each element of C is stored once; all threads store equally many, and "
        "the first threads of its warps read equally many; exact."));
    return all;
  }
  const lab::Check of_block[] = {
      lab::compared(outcome.recorded, trace.exact, block_of(trace, exact.bound))
          .check("recorded_block", "The block that recorded itself. " + bound),
      partial_sums_check("partial_sums", outcome, trace.block),
      partial_sums_check("partial_sums_naive", outcome, trace.naive)};
  all.insert(all.begin() + 2, std::begin(of_block), std::end(of_block));
  return all;
}

// ---- measurements -------------------------------------------------------------------------------

void add_load_measurements(const Outcome& outcome, lab::Report& report) {
  const Trace& trace = outcome.trace;
  const GemmShape& s = outcome.shape;
  const std::string_view name = name_of(trace.variant);
  const auto loads = static_cast<double>(trace.global_loads);
  const auto naive = static_cast<double>(trace.naive_global_loads);
  const double outputs = static_cast<double>(s.m) * s.n;
  const int input_bytes = trace.variant == Variant::tensor_core ? 2 : 4;
  const double ideal = ideal_bytes(s, input_bytes);
  const double asked = loads * input_bytes + outputs * 4;
  const std::string formula =
      outcome.tile_m == 1 ? fmt::format("2·m·n·k = 2·{}·{}·{}", s.m, s.n, s.k)
                          : fmt::format("⌈n/{1}⌉·m·k + ⌈m/{0}⌉·k·n with m = {2}, n = {3}, k = {4}",
                                        outcome.tile_m, outcome.tile_n, s.m, s.n, s.k);
  report.add(lab::traced("global_loads", name, loads, "elements",
                         fmt::format("elements of A and B that all threads loaded from global "
                                     "memory; the tiles imply {} = {}",
                                     formula, expected_loads(outcome))));
  report.add(lab::traced("global_loads_naive", "naive", naive, "elements",
                         fmt::format("2·m·n·k = 2·{}·{}·{}", s.m, s.n, s.k)));
  report.add(lab::derived("loads_per_output", name, loads / outputs, "loads/output",
                          fmt::format("global_loads / (m·n) = {} / {}", loads, outputs)));
  report.add(lab::derived("reuse_factor", name, naive / loads, "products/load",
                          fmt::format("global_loads of naive / global_loads = {} / {}: how many "
                                      "products' operands come from one load",
                                      naive, loads)));
  report.add(
      lab::derived("ideal_bytes", name, ideal, "B",
                   fmt::format("{0}·(m·k + k·n) + 4·m·n = {0}·({1}·{3} + {3}·{2}) + 4·{1}·{2}: "
                               "A and B once from HBM, C once to it",
                               input_bytes, s.m, s.n, s.k)));
  report.add(lab::derived("arithmetic_intensity", name, flops_of(s) / asked, "FLOP/B",
                          fmt::format("2·m·n·k / ({0}·global_loads + 4·m·n) = {1} / {2}: of the "
                                      "threads' requests, before any cache",
                                      input_bytes, flops_of(s), asked)));
  report.add(lab::derived("ideal_intensity", name, flops_of(s) / ideal, "FLOP/B",
                          fmt::format("2·m·n·k / ideal_bytes = {} / {}", flops_of(s), ideal)));
}

void add_launch_measurements(const Outcome& outcome, lab::Report& report) {
  const Trace& trace = outcome.trace;
  const std::string_view name = name_of(trace.variant);
  if (has_picture(trace.variant)) {
    const bool tiled = trace.variant == Variant::shared_tile;
    const int floats = tiled ? trace.tile * (trace.tile + trace.padding + trace.tile) : 0;
    report.add(lab::derived(
        "shared_bytes_per_block", name, 4.0 * floats, "B",
        tiled ? fmt::format("4·(tile·(tile + padding) + tile·tile) = 4·({0}·{1} + {0}·{0})",
                            trace.tile, trace.tile + trace.padding)
              : std::string("the kernel uses no shared memory")));
  } else {
    const Resources& r = outcome.resources;
    report.add(lab::derived("shared_bytes_per_block", name,
                            r.dynamic_shared_bytes + r.static_shared_bytes, "B", "of the launch"));
  }
  if (trace.variant == Variant::shared_tile) {
    const BankWays& ways = trace.bank_ways;
    report.add(
        lab::traced("bank_conflict_ways", "shared-tile", ways.worst(), "goes/access",
                    fmt::format("the most different words that a warp's access needs from one of "
                                "32 banks: {} storing A, {} storing B, {} reading A, {} "
                                "reading B",
                                ways.store_a, ways.store_b, ways.read_a, ways.read_b)));
  }
  const Races& races = trace.races;
  if (races.orders > 0) {
    const std::string detail =
        fmt::format("{}; barrier removed: {}", races.where, name_of(outcome.params.remove_barrier));
    report.add(lab::traced("race_orders", "shared-tile", races.orders, "orders", detail));
    report.add(lab::traced("race_share", "shared-tile",
                           static_cast<double>(races.wrong_orders) / races.orders, "",
                           fmt::format("{} of {} orders gave a wrong C ({})", races.wrong_orders,
                                       races.orders, detail)));
  }
  const Resources& r = outcome.resources;
  if (!r.compiled) return;
  const std::string source = fmt::format(
      "from the compiled kernel and the device's limits, {} threads a block", r.threads);
  report.add(lab::derived("registers_per_thread", name, r.registers, "registers", source));
  report.add(lab::derived("blocks_per_multiprocessor", name, r.blocks_per_multiprocessor, "blocks",
                          source));
  report.add(
      lab::derived("occupancy_limit", name, r.occupancy(), "",
                   fmt::format("{} blocks · {} warps / {} warps", r.blocks_per_multiprocessor,
                               r.warps(), r.warps_per_multiprocessor)));
}

// ---- tables -------------------------------------------------------------------------------------

double total(const std::vector<int>& values) {
  double sum = 0;
  for (const int value : values) sum += value;
  return sum;
}

lab::Table k_tile_table(const Trace& trace) {
  lab::Table table{"k_tiles",
                   fmt::format("The chosen block (row {}, column {} of blocks), k-tile by k-tile",
                               trace.block_row, trace.block_col),
                   {whole("k_tile", "k-tile"), whole("loads_a", "loads of A"),
                    whole("loads_b", "loads of B"), whole("shared_reads", "reads of shared memory"),
                    whole("loads_so_far", "global loads so far"),
                    whole("naive_loads_so_far", "naive: global loads so far")}};
  for (int i = 0; i < trace.k_tiles(); ++i) {
    const KTile& tile = trace.block.k_tiles[static_cast<std::size_t>(i)];
    const KTile& naive = trace.naive.k_tiles[static_cast<std::size_t>(i)];
    table.add({i, total(tile.a.loads), total(tile.b.loads),
               total(tile.a.reads) + total(tile.b.reads), tile.loads_so_far, naive.loads_so_far});
  }
  return table;
}

lab::Table rung_table(const Trace& trace) {
  lab::Table table{
      "shares",
      "One block of each rung: a thread's elements of C, and its shared reads per k-tile",
      {"rung", whole("rows"), whole("columns"), whole("depth"), whole("threads"),
       whole("owned", "elements per thread"), whole("reads"),
       whole("requests", "read instructions"), whole("fmas", "FMAs"),
       real("reads_per_fma", "reads per FMA", "", 3)}};
  for (const Rung& r : trace.rungs) {
    table.add({r.variant, r.rows, r.columns, r.depth, r.threads, r.owned, r.reads, r.requests,
               r.fmas(), r.reads_per_fma()});
  }
  return table;
}

lab::Table race_table(const Outcome& outcome) {
  const Races& races = outcome.trace.races;
  lab::Table table{"races",
                   fmt::format("shared-tile with a barrier removed ({})", races.where),
                   {column("barrier", "removed barrier"), whole("orders", "thread orders"),
                    whole("wrong", "with a wrong C"), whole("row", "first wrong row"),
                    whole("column"), real("got", "", "", 4), real("want", "", "", 4)}};
  const auto found = [&](auto value) { return races.order >= 0 ? lab::Cell(value) : lab::Cell(); };
  table.add({outcome.params.remove_barrier, races.orders, races.wrong_orders, found(races.row),
             found(races.column), found(races.got), found(races.want)});
  return table;
}

// ---- summary ------------------------------------------------------------------------------------

std::string summary_of(const Outcome& outcome) {
  const Trace& trace = outcome.trace;
  const Races& races = trace.races;
  std::string text = fmt::format(
      "{} loads {} elements of A and B from global memory for {} x {} outputs, {:.3g} times fewer "
      "than the {} of naive.",
      name_of(trace.variant), trace.global_loads, trace.m, trace.n,
      static_cast<double>(trace.naive_global_loads) / static_cast<double>(trace.global_loads),
      trace.naive_global_loads);
  if (trace.global_loads == trace.naive_global_loads) {
    text = fmt::format("{} loads {} elements of A and B from global memory: two for every product.",
                       name_of(trace.variant), trace.global_loads);
  }
  if (races.orders > 0 && races.wrong_orders == 0) {
    text += fmt::format(" Without the barrier {}, none of {} runs went wrong.",
                        name_of(outcome.params.remove_barrier), races.orders);
  } else if (races.orders > 0) {
    text += fmt::format(" Without the barrier {}, {} of {} runs went wrong, first at C[{}][{}].",
                        name_of(outcome.params.remove_barrier), races.wrong_orders, races.orders,
                        races.row, races.column);
  } else if (outcome.params.remove_barrier != RemovedBarrier::none) {
    text += fmt::format(" {} has no barrier to remove.", name_of(trace.variant));
  }
  return text;
}

}  // namespace

lab::Table ladder_table() {
  lab::Table table{
      "ladder",
      "The ladder, slowest idea first",
      {"rung", column("what_changed", "what changed, and why it is faster"), "source"}};
  for (const Variant variant : all_of<Variant>()) {
    table.add({variant, reason_of(variant), source_path(variant)});
  }
  return table;
}

std::vector<lab::Table> tables_of(const Trace& trace) {
  return {trace.rungs.empty() ? k_tile_table(trace) : rung_table(trace)};
}

lab::Report report_of(const Outcome& outcome) {
  lab::Report report;
  report.summary = summary_of(outcome);
  report.checks = checks_of(outcome);
  add_load_measurements(outcome, report);
  add_launch_measurements(outcome, report);
  report.add(lab::readout_table(report.measurements, 3));
  for (lab::Table& table : tables_of(outcome.trace)) report.add(std::move(table));
  if (outcome.trace.races.orders > 0) report.add(race_table(outcome));
  report.add(ladder_table());
  report.trace = to_json(outcome.trace);
  return report;
}

}  // namespace tilestep::tiling
