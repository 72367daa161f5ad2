#include "kernels/matmul/hopper_gemm/run/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/timing.hpp"
#include "kernels/base/simt/hopper.hpp"

namespace tilestep::hopper_gemm {
namespace {

using lab::column, lab::real, lab::whole;

// ---- from the events ------------------------------------------------------------------------------

/// Clock spent between two kinds of a lane's events, for each number.
std::int64_t spent(const Trace& trace, int lane, What from, What to) {
  std::int64_t sum = 0;
  for (const Event& end : trace.events) {
    if (end.what != to || end.lane != lane) continue;
    for (const Event& begin : trace.events) {
      if (begin.what == from && begin.lane == lane && begin.number == end.number) {
        sum += end.clock - begin.clock;
      }
    }
  }
  return sum;
}

/// The share of a lane's time from its first event to its last.
double share(const Trace& trace, int lane, What from, What to) {
  std::int64_t first = -1;
  std::int64_t last = 0;
  for (const Event& event : trace.events) {
    if (event.lane != lane) continue;
    if (first < 0) first = event.clock;
    last = event.clock;
  }
  if (first < 0 || last == first) return 0;
  return static_cast<double>(spent(trace, lane, from, to)) / static_cast<double>(last - first);
}

/// The most k-tiles whose copies were issued and which were not yet released.
int most_ahead(const Trace& trace) {
  int ahead = 0;
  int most = 0;
  for (const Event& event : trace.events) {
    if (event.what == What::copies) most = std::max(most, ++ahead);
    if (event.what == What::releases && event.lane == (trace.reads(0, event.number) ? 1 : 2))
      --ahead;
  }
  return most;
}

void add_measurements(lab::Report& report, const Outcome& outcome) {
  const Trace& trace = outcome.trace;
  const auto name = name_of(trace.variant);
  const std::string clock = trace.clock_unit == "cycles"
                                ? "of the block's cycles"
                                : "of the emulation's clock, which is order, not time";
  report.add(lab::derived(
      "stage_bytes", name, trace.stage_bytes, "B",
      fmt::format("({} rows of A + {} rows of B) x 128 B of k", trace.rows, trace.columns)));
  report.add(lab::derived("shared_bytes", name, trace.shared_bytes, "B",
                          "stages, tiles of C to be stored, barriers"));
  if (has_producer(trace.variant)) {
    report.add(lab::traced("producer_waiting", name,
                           100 * share(trace, 0, What::waits_empty, What::expects), "%", clock));
  }
  report.add(lab::traced("consumer_waiting", name,
                         100 * share(trace, 1, What::waits_full, What::issues), "%", clock));
  report.add(lab::traced("most_ahead", name, most_ahead(trace), "k-tiles",
                         "copies issued, and the stage not yet released"));
}

// ---- tables ---------------------------------------------------------------------------------------

std::string lane_name(const Trace& trace, int lane) {
  if (lane == -1) return "TMA";
  if (lane == 0) return has_producer(trace.variant) ? "producer" : "copies";
  return fmt::format("consumer {}", lane - 1);
}

lab::Table event_table(const Trace& trace) {
  lab::Table table{"events",
                   fmt::format("Events in block {}, in clock order", trace.block),
                   {whole("event"), column("lane", "by"), column("what", "step"),
                    whole("number", "k-tile or tile"), whole("stage"), whole("parity"),
                    whole("clock", "clock", trace.clock_unit), whole("bytes", "bytes", "B"),
                    whole("pending", "pending", "B")}};
  int number = 0;
  for (const Event& event : trace.events) {
    const bool of_stage = event.what < What::stores;
    table.add({++number, lane_name(trace, event.lane), event.what, event.number,
               of_stage ? lab::Cell(event.stage) : lab::Cell(),
               of_stage ? lab::Cell(event.parity) : lab::Cell(), event.clock,
               event.bytes > 0 ? lab::Cell(event.bytes) : lab::Cell(),
               event.what == What::lands ? lab::Cell(event.pending) : lab::Cell()});
  }
  return table;
}

lab::Table tile_table(const Trace& trace) {
  lab::Table table{"tiles",
                   fmt::format("Tiles of C of block {}", trace.block),
                   {whole("number", "launch order"), whole("row", "row of tiles"),
                    whole("column", "column of tiles"), whole("first_row", "first row of C"),
                    whole("first_column", "first column of C")}};
  for (const BlockTile& tile : trace.tiles) {
    table.add(
        {tile.number, tile.row, tile.column, tile.row * trace.rows, tile.column * trace.columns});
  }
  return table;
}

/// The place of chunk `chunk` of row `row`, in chunks of 16 bytes from the tile's start.
int chunk_place(int row, int chunk, int row_bytes, int swizzle) {
  const auto plain = static_cast<unsigned>(row * row_bytes + chunk * 16);
  return static_cast<int>(simt::hopper::swizzled_address(plain, swizzle) / 16);
}

/// The most of 8 rows' chunks with the same number in the same banks: the passes to read them.
int ways(int row_bytes, int swizzle) {
  int most = 0;
  for (int chunk = 0; chunk < row_bytes / 16; ++chunk) {
    std::array<int, 8> rows{};
    for (int row = 0; row < 8; ++row) {
      const int place = chunk_place(row, chunk, row_bytes, swizzle) % 8;
      most = std::max(most, ++rows[static_cast<std::size_t>(place)]);
    }
  }
  return most;
}

lab::Table swizzle_table() {
  lab::Table table{
      "swizzles",
      "Eight rows of a tile in the 32 banks: passes to read one chunk of each",
      {whole("swizzle", "swizzle", "B"), whole("row", "row bytes", "B"), whole("ways", "passes"),
       whole("plain_ways", "passes without the swizzle"), whole("extra", "extra bytes", "B")}};
  for (const int swizzle : {0, 32, 64, 128}) {
    const int row = swizzle == 0 ? 16 : swizzle;
    table.add({swizzle, row, ways(row, swizzle), ways(row, 0), 0});
  }
  return table;
}

lab::Table roof_table(const Trace& trace) {
  lab::Table table{
      "roofs",
      fmt::format("One wgmma of 64 x n and 32 bytes of k, {} consumer{} per stage", trace.readers(),
                  trace.readers() == 1 ? "" : "s"),
      {column("tile", "tile"), whole("tensor_cycles", "tensor cores", "cycles"),
       whole("read_cycles", "shared memory: reads", "cycles"),
       whole("write_cycles", "its share of TMA's writes", "cycles"), column("bound", "bound by")}};
  for (const WarpgroupTile tile : all_of<WarpgroupTile>()) {
    const int n = columns_of(tile);
    const int writes = write_cycles(n, trace.readers());
    table.add({tile, tensor_cycles(n), read_cycles(n), writes,
               read_cycles(n) + writes > tensor_cycles(n) ? "shared memory" : "tensor cores"});
  }
  return table;
}

lab::Table broken_table(const Trace& trace) {
  const Broken& broken = trace.broken;
  lab::Table table{
      "broken",
      broken.where.empty() ? "Outcome" : fmt::format("Outcome ({})", broken.where),
      {column("outcome", "outcome"), whole("wrong", "wrong elements of C"),
       whole("row", "first wrong row"), whole("column", "column"), real("got", "got", "", 4),
       real("want", "want", "", 4), column("report", "report")}};
  const auto found = [&](auto value) { return broken.wrong > 0 ? lab::Cell(value) : lab::Cell(); };
  table.add({broken.outcome, broken.wrong, found(broken.row), found(broken.column),
             found(broken.got), found(broken.want), broken.report});
  return table;
}

// ---- words ----------------------------------------------------------------------------------------

std::string summary_of(const Outcome& outcome) {
  const Trace& trace = outcome.trace;
  if (outcome.params.broken != Break::none) {
    return fmt::format("{} with {}: {}{}.", name_of(trace.variant), name_of(outcome.params.broken),
                       trace.broken.outcome,
                       trace.broken.wrong > 0 ? fmt::format(", {} of {} elements of C",
                                                            trace.broken.wrong, trace.m * trace.n)
                                              : "");
  }
  if (!trace.broken.outcome.empty()) {
    return fmt::format("{} has no such wait or fence: nothing was omitted.",
                       name_of(trace.variant));
  }
  std::string stages = fmt::format("{} stage{} of {} KiB", trace.stages,
                                   trace.stages == 1 ? "" : "s", trace.stage_bytes / 1024);
  if (!has_one_stage(trace.variant) && outcome.params.stages > trace.stages) {
    stages += fmt::format(" (of {} requested; more do not fit)", outcome.params.stages);
  }
  const int k_tiles = trace.k_tiles() * static_cast<int>(trace.tiles.size());
  return fmt::format(
      "{}: block {} brought {} k-tile{} through {}, at most {} ahead of those "
      "released.",
      name_of(trace.variant), trace.block, k_tiles, k_tiles == 1 ? "" : "s", stages,
      most_ahead(trace));
}

}  // namespace

double traced_passes(const std::vector<int>& places) {
  int passes = 0;
  for (std::size_t matrix = 0; matrix < places.size(); matrix += 8) {
    std::array<int, 8> groups{};  // of four banks
    for (std::size_t row = matrix; row < matrix + 8; ++row) {
      ++groups[static_cast<std::size_t>(places[row] / 16 % 8)];
    }
    passes += *std::max_element(groups.begin(), groups.end());
  }
  return 8.0 * passes / static_cast<double>(places.size());
}

lab::Table ladder_table() {
  lab::Table table{"ladder", "The ladder", {"rung", column("what_changed", "what changed")}};
  for (const Variant variant : all_of<Variant>()) table.add({variant, reason_of(variant)});
  return table;
}

lab::Report report_of(const Outcome& outcome) {
  lab::Report report;
  report.summary = summary_of(outcome);
  report.add(event_table(outcome.trace));
  report.add(tile_table(outcome.trace));
  report.add(swizzle_table());
  report.add(roof_table(outcome.trace));
  if (!outcome.trace.broken.outcome.empty()) report.add(broken_table(outcome.trace));
  report.add(ladder_table());
  add_measurements(report, outcome);
  report.add(lab::compared(outcome.c, outcome.reference.value, outcome.reference.bound)
                 .check("result",
                        "The unbroken kernel against double on the same rounded numbers; "
                        "tolerance: in each addition every product and the sum so far lose less "
                        "than a unit of the largest, 2^-23 (E4M3: 2^-13), and so does each "
                        "group's sum."));
  report.device_lost = outcome.device_lost;
  report.trace = to_json(outcome.trace);
  return report;
}

}  // namespace tilestep::hopper_gemm
