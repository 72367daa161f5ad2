#include "kernels/matmul/tiling/report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>

namespace tilestep::tiling {
namespace {

// ---- checks -------------------------------------------------------------------------------------

/// Collects comparisons and remembers the one that is closest to its bound, or farthest past it.
class Comparison {
 public:
  void add(double actual, double expected, double bound) {
    double error = std::abs(actual - expected);
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    const double excess = error - bound;
    if (excess > excess_) {
      excess_ = excess;
      max_error_ = error;
      tolerance_ = bound;
    }
    ok_ = ok_ && error <= bound;
  }
  lab::Check check(std::string id, std::string detail) const {
    return {std::move(id), ok_, max_error_, tolerance_, std::move(detail)};
  }

 private:
  bool ok_ = true;
  double excess_ = -std::numeric_limits<double>::infinity();
  double max_error_ = 0, tolerance_ = 0;
};

lab::Check compare(std::string id, const std::vector<float>& got, const std::vector<double>& want,
                   const std::vector<double>& bound, std::string detail) {
  Comparison comparison;
  for (std::size_t i = 0; i < got.size(); ++i) {
    comparison.add(static_cast<double>(got[i]), want[i], bound[i]);
  }
  return comparison.check(std::move(id), std::move(detail));
}

lab::Check exact_check(std::string id, double got, double want, std::string detail) {
  return {std::move(id), got == want, std::abs(got - want), 0, std::move(detail)};
}

/// The recorded partial sums against the same prefix of the product in double.
lab::Check partial_sums_check(std::string id, const Outcome& outcome, const BlockTrace& block) {
  const Trace& trace = outcome.trace;
  Comparison comparison;
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
        comparison.add(
            static_cast<double>(tile.sums[static_cast<std::size_t>(row * trace.tile + column)]),
            sum, bound);
      }
    }
  }
  return comparison.check(std::move(id),
                          fmt::format("Every thread's partial sum after each k-tile, as {} "
                                      "recorded it, against double.",
                                      to_text(block.variant)));
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
  std::vector<double> timed(outcome.timed.begin(), outcome.timed.end());
  checks.push_back(compare("counted_equals_timed", outcome.counted, timed, outcome.reference.bound,
                           "The counting run and the run as it is timed give the same C, up to the "
                           "tolerance of `result`."));
  Comparison block;
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
  checks.push_back(exact_check(
      "global_loads", static_cast<double>(trace.global_loads),
      static_cast<double>(expected_loads(outcome)),
      "Loads counted by the kernel's own accesses equal those that its tiles imply; exact."));
  checks.push_back(exact_check("global_loads_naive", static_cast<double>(trace.naive_global_loads),
                               static_cast<double>(untiled_loads(outcome.shape)),
                               "naive makes two loads a product; exact."));
  return checks;
}

// ---- measurements -------------------------------------------------------------------------------

lab::Measurement traced(std::string id, std::string_view variant, double value, std::string unit,
                        std::string detail) {
  lab::Measurement m = derived(std::move(id), variant, value, std::move(unit), std::move(detail));
  m.provenance = lab::Provenance::traced;
  return m;
}

void add_load_measurements(const Outcome& outcome, std::vector<lab::Measurement>& out) {
  const Trace& trace = outcome.trace;
  const GemmShape& s = outcome.shape;
  const std::string_view name = to_text(trace.variant);
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
  out.push_back(traced("global_loads", name, loads, "elements",
                       fmt::format("elements of A and B that all threads loaded from global "
                                   "memory; the tiles imply {} = {}",
                                   formula, expected_loads(outcome))));
  out.push_back(traced("global_loads_naive", "naive", naive, "elements",
                       fmt::format("2·m·n·k = 2·{}·{}·{}", s.m, s.n, s.k)));
  out.push_back(derived("loads_per_output", name, loads / outputs, "loads/output",
                        fmt::format("global_loads / (m·n) = {} / {}", loads, outputs)));
  out.push_back(derived("reuse_factor", name, naive / loads, "products/load",
                        fmt::format("global_loads of naive / global_loads = {} / {}: how many "
                                    "products' operands come from one load",
                                    naive, loads)));
  out.push_back(
      derived("ideal_bytes", name, ideal, "B",
              fmt::format("{0}·(m·k + k·n) + 4·m·n = {0}·({1}·{3} + {3}·{2}) + 4·{1}·{2}: "
                          "A and B once from HBM, C once to it",
                          input_bytes, s.m, s.n, s.k)));
  out.push_back(derived("arithmetic_intensity", name, flops_of(s) / asked, "FLOP/B",
                        fmt::format("2·m·n·k / ({0}·global_loads + 4·m·n) = {1} / {2}: of what the "
                                    "threads ask for, before any cache",
                                    input_bytes, flops_of(s), asked)));
  out.push_back(derived("ideal_intensity", name, flops_of(s) / ideal, "FLOP/B",
                        fmt::format("2·m·n·k / ideal_bytes = {} / {}", flops_of(s), ideal)));
}

void add_launch_measurements(const Outcome& outcome, std::vector<lab::Measurement>& out) {
  const Trace& trace = outcome.trace;
  const std::string_view name = to_text(trace.variant);
  if (has_picture(trace.variant)) {
    const bool tiled = trace.variant == Variant::shared_tile;
    const int floats = tiled ? trace.tile * (trace.tile + trace.padding + trace.tile) : 0;
    out.push_back(
        derived("shared_bytes_per_block", name, 4.0 * floats, "B",
                tiled ? fmt::format("4·(tile·(tile + padding) + tile·tile) = 4·({0}·{1} + {0}·{0})",
                                    trace.tile, trace.tile + trace.padding)
                      : std::string("the kernel uses no shared memory")));
  } else {
    const Resources& r = outcome.resources;
    out.push_back(derived("shared_bytes_per_block", name,
                          static_cast<double>(r.dynamic_shared_bytes + r.static_shared_bytes), "B",
                          "of the launch"));
  }
  if (trace.block.variant == Variant::shared_tile) {
    const BankWays& ways = trace.bank_ways;
    out.push_back(traced("bank_conflict_ways", "shared-tile", ways.worst(), "goes/access",
                         fmt::format("the most different words that a warp's access wants from one "
                                     "of 32 banks: {} storing A, {} storing B, {} reading A, {} "
                                     "reading B",
                                     ways.store_a, ways.store_b, ways.read_a, ways.read_b)));
  }
  const Races& races = trace.races;
  if (races.orders > 0) {
    const std::string detail =
        fmt::format("{}; barrier removed: {}", races.where, to_text(outcome.params.remove_barrier));
    out.push_back(traced("race_orders", "shared-tile", races.orders, "orders", detail));
    out.push_back(traced("race_share", "shared-tile",
                         static_cast<double>(races.wrong_orders) / races.orders, "",
                         fmt::format("{} of {} orders gave a wrong C ({})", races.wrong_orders,
                                     races.orders, detail)));
  }
  const Resources& r = outcome.resources;
  if (!r.compiled) return;
  const std::string source = fmt::format(
      "from the compiled kernel and the device's limits, {} threads a block", r.threads);
  out.push_back(derived("registers_per_thread", name, r.registers, "registers", source));
  out.push_back(
      derived("blocks_per_multiprocessor", name, r.blocks_per_multiprocessor, "blocks", source));
  out.push_back(
      derived("occupancy_limit", name,
              r.blocks_per_multiprocessor * (r.threads / 32.0) / r.warps_per_multiprocessor, "",
              fmt::format("{} blocks · {} warps / {} warps", r.blocks_per_multiprocessor,
                          r.threads / 32.0, r.warps_per_multiprocessor)));
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
    table.rows.push_back({static_cast<double>(i), total(tile.a_loads), total(tile.b_loads),
                          total(tile.a_reads) + total(tile.b_reads),
                          static_cast<double>(tile.loads_so_far),
                          static_cast<double>(naive.loads_so_far)});
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
  std::vector<lab::Cell> row = {std::string(to_text(outcome.params.remove_barrier)),
                                static_cast<double>(races.orders),
                                static_cast<double>(races.wrong_orders)};
  if (races.order >= 0) {
    row.insert(row.end(), {static_cast<double>(races.row), static_cast<double>(races.column),
                           static_cast<double>(races.got), races.want});
  }
  row.resize(table.columns.size());
  table.rows.push_back(std::move(row));
  return table;
}

lab::Table readout_table(const std::vector<lab::Measurement>& measurements) {
  lab::Table table{"readouts",
                   "What the run says, and how",
                   {{"quantity", "quantity", "", -1},
                    {"value", "value", "", 3},
                    {"unit", "unit", "", -1},
                    {"source", "source", "", -1},
                    {"how", "how", "", -1}},
                   {}};
  for (const lab::Measurement& m : measurements) {
    table.rows.push_back({m.id, m.value, m.unit, std::string(to_text(m.provenance)), m.detail});
  }
  return table;
}

// ---- summary ------------------------------------------------------------------------------------

std::string summary_of(const Outcome& outcome) {
  const Trace& trace = outcome.trace;
  const Races& races = trace.races;
  std::string text = fmt::format(
      "{} loads {} elements of A and B from global memory for {} x {} outputs, {:.3g} times fewer "
      "than the {} of naive.",
      to_text(trace.variant), trace.global_loads, trace.m, trace.n,
      static_cast<double>(trace.naive_global_loads) / static_cast<double>(trace.global_loads),
      trace.naive_global_loads);
  if (trace.global_loads == trace.naive_global_loads) {
    text = fmt::format("{} loads {} elements of A and B from global memory: two for every product.",
                       to_text(trace.variant), trace.global_loads);
  }
  if (races.orders > 0 && races.wrong_orders == 0) {
    text += fmt::format(" Without the barrier {}, none of {} runs went wrong.",
                        to_text(outcome.params.remove_barrier), races.orders);
  } else if (races.orders > 0) {
    text += fmt::format(" Without the barrier {}, {} of {} runs went wrong, first at C[{}][{}].",
                        to_text(outcome.params.remove_barrier), races.wrong_orders, races.orders,
                        races.row, races.column);
  } else if (outcome.params.remove_barrier != RemovedBarrier::none) {
    text += fmt::format(" {} has no barrier to remove.", to_text(trace.variant));
  }
  return text;
}

}  // namespace

lab::Measurement derived(std::string id, std::string_view variant, double value, std::string unit,
                         std::string detail) {
  lab::Measurement m;
  m.id = std::move(id);
  m.variant = variant;
  m.provenance = lab::Provenance::derived;
  m.value = value;
  m.unit = std::move(unit);
  m.detail = std::move(detail);
  return m;
}

lab::Table ladder_table() {
  lab::Table table{"ladder",
                   "The ladder, slowest idea first",
                   {{"rung", "rung", "", -1},
                    {"what_changed", "what changed, and why it is faster", "", -1},
                    {"source", "source", "", -1}},
                   {}};
  for (int i = 0; i < kVariants; ++i) {
    const auto variant = static_cast<Variant>(i);
    table.rows.push_back({std::string(to_text(variant)), std::string(what_changed(variant)),
                          std::string(source_path(variant))});
  }
  return table;
}

lab::Report make_report(const Outcome& outcome, const simt::DeviceInfo& device) {
  lab::Report report;
  report.lesson = kLessonId;
  report.params = knob_table().settings(outcome.params);
  report.device = device;
  report.summary = summary_of(outcome);
  report.checks = checks_of(outcome);
  add_load_measurements(outcome, report.measurements);
  add_launch_measurements(outcome, report.measurements);
  report.tables.push_back(readout_table(report.measurements));
  report.tables.push_back(k_tile_table(outcome.trace));
  if (outcome.trace.races.orders > 0) report.tables.push_back(race_table(outcome));
  report.tables.push_back(ladder_table());
  report.trace = to_json(outcome.trace);
  return report;
}

}  // namespace tilestep::tiling
