#include "kernels/attention/shared/matrix.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/timing.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::attention {

using lab::column, lab::real, lab::whole;
using numeric::elements_of;

// ---- plans ------------------------------------------------------------------------------------------

void TilePlan::fill(int dim) {
  head_dim = dim;
  columns = filled_columns(dim);
  if (columns == dim) return;
  filled =
      fmt::format("tiles have {} columns, {} of them filled with zeros", columns, columns - dim);
}

void TilePlan::cut(int length) {
  q_tiles = (length + block_q - 1) / block_q;
  k_tiles = (length + block_k - 1) / block_k;
}

MaskRule Matrix::rule_of(int length) const {
  MaskRule rule;
  rule.mask = mask;
  rule.length = length;
  rule.window = std::min(window, length);
  rule.sinks = std::min(sinks, length);
  return rule;
}

// ---- visits -----------------------------------------------------------------------------------------

namespace {

long long first_clock(const Launched& of) {
  if (!of.from_first) return 0;
  long long first = std::numeric_limits<long long>::max();
  for (const Visit& visit : of.visits) {
    if (visit.block >= 0 && visit.begin >= 0) first = std::min(first, visit.begin);
  }
  return first;
}
std::int64_t clock_from(long long clock, long long first) {
  return clock < 0 ? -1 : clock - first;
}

template <class T>
simt::Buffer<T> filled(simt::Device& device, std::size_t count, const T& with) {
  const std::vector<T> host(count, with);
  return simt::Buffer<T>(device, std::span<const T>(host));
}

}  // namespace

std::vector<TileVisit> visits_of(const Launched& visited, int head) {
  const long long first = first_clock(visited);
  std::vector<TileVisit> visits(elements_of(visited.plan.q_tiles, visited.plan.k_tiles));
  for (std::size_t i = 0; i < visits.size(); ++i) {
    const Visit& from = visited.visits[static_cast<std::size_t>(head) * visits.size() + i];
    if (from.block < 0) continue;
    visits[i] = {static_cast<TileKind>(from.kind),
                 from.block,
                 from.order,
                 visited.counts_rescaled ? from.rescaled : -1,
                 from.o_reads,
                 from.o_writes,
                 clock_from(from.begin, first),
                 clock_from(from.end, first)};
  }
  return visits;
}

std::vector<BlockLane> lanes_of(const Launched& visited, int heads) {
  const long long first = first_clock(visited);
  const int q_tiles = visited.plan.q_tiles, k_tiles = visited.plan.k_tiles;
  std::map<int, BlockLane> lanes;
  for (int i = 0; i < heads * q_tiles * k_tiles; ++i) {
    const Visit& visit = visited.visits[static_cast<std::size_t>(i)];
    if (visit.block < 0) continue;
    const int head = i / k_tiles / q_tiles;
    const int tile = visited.owns == Owns::head       ? -1
                     : visited.owns == Owns::key_tile ? i % k_tiles
                                                      : i / k_tiles % q_tiles;
    const auto [place, fresh] =
        lanes.try_emplace(visit.block, BlockLane{visit.block, head, tile, 0, -1, -1});
    BlockLane& lane = place->second;
    if (!fresh && visit.order == 0 && visited.owns == Owns::query_tile) {
      lane.head = head;  // a block of flash-3 has several tiles of queries
      lane.tile = tile;
    }
    ++lane.visits;
    const std::int64_t begin = clock_from(visit.begin, first);
    if (begin >= 0 && (lane.begin < 0 || begin < lane.begin)) lane.begin = begin;
    lane.end = std::max(lane.end, clock_from(visit.end, first));
  }
  std::vector<BlockLane> all;
  for (const auto& [block, lane] : lanes) {
    if (all.size() < kShownBlocks) all.push_back(lane);
  }
  return all;
}

RecordBuffers::RecordBuffers(simt::Device& device, const TilePlan& plan, int heads, int row_count)
    : visits(filled(device, elements_of(heads * plan.q_tiles, plan.k_tiles),
                    Visit{-1, -1, 0, 0, 0, 0, 0, -1})),
      steps(filled(device, static_cast<std::size_t>(plan.k_tiles), StepRecord{{.order = -1}, 0})),
      asked(device, std::size_t{2} * kTensors),
      rows(filled(device, elements_of(row_count, plan.rule.length), 0.0f)) {
  asked.fill(0);
}

Ledger RecordBuffers::ledger() const {
  const std::vector<unsigned long long> bytes = asked.download();
  Ledger ledger{};
  for (std::size_t i = 0; i < kTensors; ++i) ledger[i] = {bytes[2 * i], bytes[2 * i + 1]};
  return ledger;
}

// ---- bytes ------------------------------------------------------------------------------------------

std::vector<LedgerRow> ledger_rows(const Ledger& asked, const Ledger& formula, const Ledger& all,
                                   const Held& held, const Held& kept) {
  const auto number = [](unsigned long long bytes) { return static_cast<std::int64_t>(bytes); };
  std::vector<LedgerRow> rows;
  for (std::size_t i = 0; i < kTensors; ++i) {
    if (held[i] == 0 && asked[i] == Asked{} && formula[i] == Asked{}) continue;
    rows.push_back({static_cast<Tensor>(i), number(asked[i].loaded), number(asked[i].stored),
                    number(formula[i].loaded), number(formula[i].stored), number(all[i].loaded),
                    number(all[i].stored), number(held[i]), number(kept[i])});
  }
  return rows;
}

std::int64_t asked_by(const Matrix& trace) {
  std::int64_t sum = 0;
  for (const LedgerRow& row : trace.ledger) sum += row.loaded + row.stored;
  return sum;
}
std::int64_t held_by(const Matrix& trace) {
  std::int64_t sum = 0;
  for (const LedgerRow& row : trace.ledger) sum += row.held;
  return sum;
}
int visited(const Matrix& trace) {
  return static_cast<int>(std::count_if(trace.visits.begin(), trace.visits.end(),
                                        [](const TileVisit& visit) { return visit.order >= 0; }));
}

std::string bytes_text(std::int64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  if (number < 1e7) return fmt::format("{:.1f} KB", number / 1e3);
  return number < 1e10 ? fmt::format("{:.1f} MB", number / 1e6)
                       : fmt::format("{:.1f} GB", number / 1e9);
}

// ---- what is wrong ----------------------------------------------------------------------------------

void BrokenResult::add(Tensor of, std::size_t element, double value, double exact, double bound,
                       int length, int columns) {
  if (std::abs(value - exact) <= bound) return;
  if (wrong++ == 0) {
    const int row = static_cast<int>(element) / columns;
    tensor = of;
    head = row / length;
    query = row % length;
    component = static_cast<int>(element) % columns;
    got = value;
    want = exact;
  }
  largest = std::max(largest, std::abs(value - exact));
}

void BrokenResult::add(Tensor of, const std::vector<float>& all, const numeric::AllBounded& exact,
                       int length, int columns) {
  elements += static_cast<int>(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    add(of, i, static_cast<double>(all[i]), exact.value[i], exact.bound[i], length, columns);
  }
}

void BrokenResult::judge() {
  outcome = wrong > 0 ? "wrong numbers" : more_bytes > 0 ? "more bytes" : "right";
}

std::vector<int> wrong_of_tiles(const std::vector<float>& got, const numeric::AllBounded& exact,
                                int first, int length, int columns, int size) {
  std::vector<int> wrong(static_cast<std::size_t>((length + size - 1) / size));
  for (int row = 0; row < length; ++row) {
    for (int c = 0; c < columns; ++c) {
      const std::size_t i = numeric::index_of(first + row, c, columns);
      const double off = std::abs(static_cast<double>(got[i]) - exact.value[i]);
      if (!(off <= exact.bound[i])) ++wrong[static_cast<std::size_t>(row / size)];
    }
  }
  return wrong;
}

// ---- tables -----------------------------------------------------------------------------------------

lab::Table ledger_table(const Matrix& trace, std::string_view who, bool kept) {
  lab::Table table{
      "ledger",
      fmt::format("Bytes that {} asked of memory, and what the formula says", who),
      {column("tensor", "tensor"), whole("loaded", "loaded", "B"), whole("stored", "stored", "B"),
       whole("formula_loaded", "formula: loaded", "B"),
       whole("formula_stored", "formula: stored", "B"),
       whole("whole_loaded", "whole problem: loaded", "B"),
       whole("whole_stored", "whole problem: stored", "B"), whole("held", "memory held", "B"),
       whole("kept", "of it kept from the forward pass", "B")}};
  if (!kept) table.columns.pop_back();
  for (const LedgerRow& row : trace.ledger) {
    std::vector<lab::Cell> cells{
        row.tensor,         row.loaded,       row.stored,       row.formula_loaded,
        row.formula_stored, row.whole_loaded, row.whole_stored, row.held};
    if (kept) cells.emplace_back(row.kept);
    table.add(std::move(cells));
  }
  return table;
}

lab::Table block_table(const Matrix& trace, Owns owns) {
  lab::Table table{"blocks",
                   "What each block had to do",
                   {whole("block"), whole("head"),
                    owns == Owns::key_tile ? whole("k_tile", "tile of keys")
                                           : whole("q_tile", "tile of queries"),
                    whole("visits", "tiles of scores"), whole("begin", "begin", trace.clock_unit),
                    whole("end", "end", trace.clock_unit)}};
  const auto known = [](std::int64_t clock) { return clock < 0 ? lab::Cell() : lab::Cell(clock); };
  for (const BlockLane& lane : trace.blocks) {
    table.add(
        {lane.block, lane.head, known(lane.tile), lane.visits, known(lane.begin), known(lane.end)});
  }
  return table;
}

lab::Table broken_table(const Matrix& trace, std::string_view of, std::string_view row) {
  const BrokenResult& result = trace.result;
  lab::Table table{
      "broken",
      fmt::format("What came of {}", name_of(trace.broken)),
      {column("outcome", "outcome"), whole("wrong", fmt::format("wrong numbers of {}", of)),
       whole("elements", "of all"), column("tensor", "first wrong"), whole("head"),
       whole("query", row), whole("component"), real("got", "got", "", 4),
       real("want", "want", "", 4), real("largest", "largest error", "", 4),
       whole("more_bytes", "more bytes asked", "B")}};
  const auto found = [&](auto value) { return result.wrong > 0 ? lab::Cell(value) : lab::Cell(); };
  table.add({result.outcome, result.wrong, result.elements, found(result.tensor),
             found(result.head), found(result.query), found(result.component), found(result.got),
             found(result.want), found(result.largest), result.more_bytes});
  return table;
}

lab::Table answer_table(const Matrix& trace, const Answer& answer) {
  lab::Table table{"answer",
                   fmt::format("O of head {}, query {}", trace.chosen.head, trace.chosen.query),
                   {whole("component"), real("o", "O", "", 5), real("exact", "in double", "", 5),
                    real("error", "error", "", 6)}};
  for (std::size_t c = 0; c < answer.o.size(); ++c) {
    const auto o = static_cast<double>(answer.o[c]);
    table.add({c, o, answer.exact[c], o - answer.exact[c]});
  }
  return table;
}

// ---- measurements and words -------------------------------------------------------------------------

void add_tile_measurements(lab::Report& report, const Matrix& trace, std::string_view variant,
                           std::string_view by, std::string_view held) {
  report.add(lab::traced("asked_bytes", variant, asked_by(trace), "B", std::string(by)));
  report.add(lab::derived("held_bytes", variant, held_by(trace), "B",
                          fmt::format("{}, of the whole problem", held)));
  report.add(lab::traced("visited_tiles", variant, visited(trace), "tiles",
                         fmt::format("of {} of the chosen head", trace.visits.size())));
}

std::string summary_of(const Matrix& trace, std::string_view who, std::string_view of,
                       const std::string& more) {
  const BrokenResult& result = trace.result;
  std::string text;
  if (trace.broken != Break::none) {
    text = fmt::format("{} with {}: {}", who, name_of(trace.broken), result.outcome);
    if (result.wrong > 0) {
      text += fmt::format(", {} of {} numbers of {}", result.wrong, result.elements, of);
    }
    if (result.more_bytes > 0) text += fmt::format(", {} more", bytes_text(result.more_bytes));
    return text + ".";
  }
  text = fmt::format("{}: {} of {} of scores a head, {} asked of memory{}", who, visited(trace),
                     lab::plural(static_cast<std::int64_t>(trace.visits.size()), "tile"),
                     bytes_text(asked_by(trace)), more);
  if (!trace.plan.cut.empty()) text += "; " + trace.plan.cut;
  return text + ".";
}

// ---- checks -----------------------------------------------------------------------------------------

void require_steps(const Matrix& trace, std::size_t steps) {
  std::size_t seen = 0;
  for (int tile = 0; tile < trace.plan.k_tiles; ++tile) {
    seen += trace.visit(trace.chosen.q_tile, tile).order >= 0 ? 1 : 0;
  }
  if (steps < seen) simt::refuse_unrecorded("the chosen query's steps", steps, seen);
}

lab::Check check_asked(const Matrix& trace) {
  int wrong = 0;
  for (const LedgerRow& row : trace.ledger) {
    wrong += row.loaded != row.formula_loaded || row.stored != row.formula_stored ? 1 : 0;
  }
  return lab::none_wrong("asked", wrong, "Tensors whose requested bytes differ from the formula.");
}

lab::Check check_visits(const Matrix& trace, const std::vector<int>& begins, Hidden hidden) {
  const MaskRule rule = trace.rule();
  const auto last = [&](int tile, int size) {
    return std::min((tile + 1) * size, trace.shape.length) - 1;
  };
  int wrong = 0;
  for (int q = 0; q < trace.plan.q_tiles; ++q) {
    for (int k = 0; k < trace.plan.k_tiles; ++k) {
      const int q0 = q * trace.plan.block_q;
      const int k0 = k * trace.plan.block_k;
      const TileKind kind =
          rule.kind(q0, last(q, trace.plan.block_q), k0, last(k, trace.plan.block_k), begins);
      const TileVisit& visit = trace.visit(q, k);
      const bool seen = kind != TileKind::skipped, visited = visit.order >= 0;
      const bool due = seen || hidden == Hidden::visited;
      const bool spare = !seen && hidden == Hidden::perhaps;
      wrong += visit.kind != kind || (!spare && due != visited) ? 1 : 0;
    }
  }
  return lab::none_wrong("visits", wrong,
                         "Tiles of scores that were not visited as the mask says, each once.");
}

}  // namespace tilestep::attention
