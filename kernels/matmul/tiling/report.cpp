#include "kernels/matmul/tiling/report.hpp"

#include <fmt/format.h>

#include <string>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/timing.hpp"

namespace tilestep::tiling {
namespace {

// ---- checks -------------------------------------------------------------------------------------

template <class Want>
lab::Check compare(std::string id, const std::vector<float>& got, const std::vector<Want>& want,
                   const std::vector<double>& bound, std::string detail) {
  lab::Closest closest;
  for (std::size_t i = 0; i < got.size(); ++i) {
    closest.add(static_cast<double>(got[i]), static_cast<double>(want[i]), bound[i]);
  }
  return closest.check(std::move(id), std::move(detail));
}

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
        closest.add(
            static_cast<double>(tile.sums[static_cast<std::size_t>(row * trace.tile + column)]),
            sum, bound);
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
  std::vector<lab::Check> checks;
  checks.push_back(
      compare("result", outcome.timed, outcome.reference.c, outcome.reference.bound, bound));
  checks.push_back(compare("counted_equals_timed", outcome.counted, outcome.timed,
                           outcome.reference.bound,
                           "The counting run and the run as it is timed give the same C, up to the "
                           "tolerance of `result`."));
  lab::Closest block;
  for (std::size_t i = 0; i < trace.exact.size(); ++i) {
    const auto row =
        static_cast<std::size_t>(trace.first_row()) + i / static_cast<std::size_t>(trace.columns());
    const auto column = static_cast<std::size_t>(trace.first_column()) +
                        i % static_cast<std::size_t>(trace.columns());
    block.add(static_cast<double>(outcome.recorded[i]), trace.exact[i],
              outcome.reference.bound[row * static_cast<std::size_t>(trace.n) + column]);
  }
  checks.push_back(block.check("recorded_block", "The block that recorded itself. " + bound));
  checks.push_back(partial_sums_check("partial_sums", outcome, trace.block));
  checks.push_back(partial_sums_check("partial_sums_naive", outcome, trace.naive));
  checks.push_back(lab::equal(
      "global_loads", static_cast<double>(trace.global_loads),
      static_cast<double>(expected_loads(outcome)),
      "Loads counted by the kernel's own accesses equal those that its tiles imply; exact."));
  checks.push_back(lab::equal("global_loads_naive", static_cast<double>(trace.naive_global_loads),
                              static_cast<double>(untiled_loads(outcome.shape)),
                              "naive makes two loads a product; exact."));
  return checks;
}

// ---- measurements -------------------------------------------------------------------------------

void add_load_measurements(const Outcome& outcome, std::vector<lab::Measurement>& out) {
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
  out.push_back(lab::traced("global_loads", name, loads, "elements",
                            fmt::format("elements of A and B that all threads loaded from global "
                                        "memory; the tiles imply {} = {}",
                                        formula, expected_loads(outcome))));
  out.push_back(lab::traced("global_loads_naive", "naive", naive, "elements",
                            fmt::format("2·m·n·k = 2·{}·{}·{}", s.m, s.n, s.k)));
  out.push_back(lab::derived("loads_per_output", name, loads / outputs, "loads/output",
                             fmt::format("global_loads / (m·n) = {} / {}", loads, outputs)));
  out.push_back(lab::derived("reuse_factor", name, naive / loads, "products/load",
                             fmt::format("global_loads of naive / global_loads = {} / {}: how many "
                                         "products' operands come from one load",
                                         naive, loads)));
  out.push_back(
      lab::derived("ideal_bytes", name, ideal, "B",
                   fmt::format("{0}·(m·k + k·n) + 4·m·n = {0}·({1}·{3} + {3}·{2}) + 4·{1}·{2}: "
                               "A and B once from HBM, C once to it",
                               input_bytes, s.m, s.n, s.k)));
  out.push_back(
      lab::derived("arithmetic_intensity", name, flops_of(s) / asked, "FLOP/B",
                   fmt::format("2·m·n·k / ({0}·global_loads + 4·m·n) = {1} / {2}: of what the "
                               "threads ask for, before any cache",
                               input_bytes, flops_of(s), asked)));
  out.push_back(lab::derived("ideal_intensity", name, flops_of(s) / ideal, "FLOP/B",
                             fmt::format("2·m·n·k / ideal_bytes = {} / {}", flops_of(s), ideal)));
}

void add_launch_measurements(const Outcome& outcome, std::vector<lab::Measurement>& out) {
  const Trace& trace = outcome.trace;
  const std::string_view name = name_of(trace.variant);
  if (has_picture(trace.variant)) {
    const bool tiled = trace.variant == Variant::shared_tile;
    const int floats = tiled ? trace.tile * (trace.tile + trace.padding + trace.tile) : 0;
    out.push_back(lab::derived(
        "shared_bytes_per_block", name, 4.0 * floats, "B",
        tiled ? fmt::format("4·(tile·(tile + padding) + tile·tile) = 4·({0}·{1} + {0}·{0})",
                            trace.tile, trace.tile + trace.padding)
              : std::string("the kernel uses no shared memory")));
  } else {
    const Resources& r = outcome.resources;
    out.push_back(lab::derived("shared_bytes_per_block", name,
                               static_cast<double>(r.dynamic_shared_bytes + r.static_shared_bytes),
                               "B", "of the launch"));
  }
  if (trace.block.variant == Variant::shared_tile) {
    const BankWays& ways = trace.bank_ways;
    out.push_back(
        lab::traced("bank_conflict_ways", "shared-tile", ways.worst(), "goes/access",
                    fmt::format("the most different words that a warp's access wants from one "
                                "of 32 banks: {} storing A, {} storing B, {} reading A, {} "
                                "reading B",
                                ways.store_a, ways.store_b, ways.read_a, ways.read_b)));
  }
  const Races& races = trace.races;
  if (races.orders > 0) {
    const std::string detail =
        fmt::format("{}; barrier removed: {}", races.where, name_of(outcome.params.remove_barrier));
    out.push_back(lab::traced("race_orders", "shared-tile", races.orders, "orders", detail));
    out.push_back(lab::traced("race_share", "shared-tile",
                              static_cast<double>(races.wrong_orders) / races.orders, "",
                              fmt::format("{} of {} orders gave a wrong C ({})", races.wrong_orders,
                                          races.orders, detail)));
  }
  const Resources& r = outcome.resources;
  if (!r.compiled) return;
  const std::string source = fmt::format(
      "from the compiled kernel and the device's limits, {} threads a block", r.threads);
  out.push_back(lab::derived("registers_per_thread", name, r.registers, "registers", source));
  out.push_back(lab::derived("blocks_per_multiprocessor", name, r.blocks_per_multiprocessor,
                             "blocks", source));
  out.push_back(lab::derived(
      "occupancy_limit", name,
      r.blocks_per_multiprocessor * (r.threads / 32.0) / r.warps_per_multiprocessor, "",
      fmt::format("{} blocks · {} warps / {} warps", r.blocks_per_multiprocessor, r.threads / 32.0,
                  r.warps_per_multiprocessor)));
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
                   {{"k_tile", "k-tile", "", 0},
                    {"loads_a", "loads of A", "", 0},
                    {"loads_b", "loads of B", "", 0},
                    {"shared_reads", "reads of shared memory", "", 0},
                    {"loads_so_far", "global loads so far", "", 0},
                    {"naive_loads_so_far", "naive: global loads so far", "", 0}},
                   {}};
  for (int i = 0; i < trace.k_tiles(); ++i) {
    const KTile& tile = trace.block.k_tiles[static_cast<std::size_t>(i)];
    const KTile& naive = trace.naive.k_tiles[static_cast<std::size_t>(i)];
    table.add({i, total(tile.a_loads), total(tile.b_loads),
               total(tile.a_reads) + total(tile.b_reads), tile.loads_so_far, naive.loads_so_far});
  }
  return table;
}

lab::Table race_table(const Outcome& outcome) {
  const Races& races = outcome.trace.races;
  lab::Table table{"races",
                   fmt::format("shared-tile with a barrier removed ({})", races.where),
                   {{"barrier", "removed barrier", "", -1},
                    {"orders", "thread orders", "", 0},
                    {"wrong", "with a wrong C", "", 0},
                    {"row", "first wrong row", "", 0},
                    {"column", "column", "", 0},
                    {"got", "got", "", 4},
                    {"want", "want", "", 4}},
                   {}};
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
  lab::Table table{"ladder",
                   "The ladder, slowest idea first",
                   {{"rung", "rung", "", -1},
                    {"what_changed", "what changed, and why it is faster", "", -1},
                    {"source", "source", "", -1}},
                   {}};
  for (const Variant variant : all_of<Variant>()) {
    table.add({variant, what_changed(variant), source_path(variant)});
  }
  return table;
}

lab::Report report_of(const Outcome& outcome) {
  lab::Report report;
  report.summary = summary_of(outcome);
  report.checks = checks_of(outcome);
  add_load_measurements(outcome, report.measurements);
  add_launch_measurements(outcome, report.measurements);
  report.tables.push_back(lab::readout_table(report.measurements, 3));
  report.tables.push_back(k_tile_table(outcome.trace));
  if (outcome.trace.races.orders > 0) report.tables.push_back(race_table(outcome));
  report.tables.push_back(ladder_table());
  report.trace = to_json(outcome.trace);
  return report;
}

}  // namespace tilestep::tiling
