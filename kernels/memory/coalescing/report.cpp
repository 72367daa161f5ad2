#include "kernels/memory/coalescing/report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/timing.hpp"
#include "kernels/memory/coalescing/reference.hpp"

namespace tilestep::coalescing {
namespace {

using lab::column, lab::real, lab::whole;

constexpr std::int64_t kComparedWarps = 64;

// ---- tables -------------------------------------------------------------------------------------

lab::Table requests_table(const Trace& trace) {
  lab::Table table{
      "requests",
      "Requests of the traced warps",
      {whole("block"), whole("warp"), column("site", "address by"), column("kind", "access"),
       whole("lanes"), whole("sectors"), whole("lines"), whole("bytes_used", "used", "B"),
       whole("bytes_fetched", "moved", "B"), real("efficiency", "", "%", 1)}};
  for (const WarpRequest& request : trace.requests) {
    const RequestStats stats = request_stats(request, trace.element_bytes);
    table.add({request.block, request.warp, request.site == Site::pattern ? "pattern" : "plain",
               request.kind, stats.lanes, stats.sectors, stats.lines, stats.bytes_used,
               stats.bytes_fetched, stats.efficiency()});
  }
  return table;
}

/// Every pattern with the other knobs unchanged: from its definition, not from a trace.
lab::Table patterns_table(const Params& params) {
  lab::Table table{
      "patterns",
      fmt::format("Every pattern with elements of {} bytes (derived from the "
                  "patterns' definitions, first {} warps)",
                  params.element_bytes(), kComparedWarps),
      {"pattern", column("index", "statement"),
       real("sectors_per_request", "sectors per request", "", 2), real("efficiency", "", "%", 1)}};
  for (const Pattern pattern : kPatterns) {
    Params other = params;
    other.pattern = pattern;
    // No array is allocated here, so no size is too large.
    const RequestTotals cost = reference_cost(shape_of(other), kComparedWarps);
    table.add({pattern, statement(other), cost.per_request(cost.sectors), cost.efficiency()});
  }
  return table;
}

lab::Table bank_table(const Trace& trace) {
  lab::Table table{"bank_conflicts",
                   "Shared memory requests of the transposes with a 32 x 32 tile (traced)",
                   {column("rung", "transpose"), column("kind", "access"),
                    whole("lane_distance", "distance of neighbouring lanes", "B"), whole("ways")}};
  for (const TileRequest& request : trace.tile_requests) {
    table.add({request.rung, request.kind, request.byte_offset[1] - request.byte_offset[0],
               request.ways});
  }
  return table;
}

// ---- measurements -------------------------------------------------------------------------------

void add_traced(lab::Report& report, const Trace& trace, const RequestTotals& totals) {
  using lab::derived, lab::traced;
  const std::string requests =
      fmt::format("over the {} traced of {} requests", totals.requests, trace.warps);
  const std::int64_t best_bytes = totals.best_sectors * kSectorBytes;
  const auto per_request = [&](std::int64_t count) { return totals.per_request(count); };
  report.measurements = {
      traced("sectors_per_request", "", per_request(totals.sectors), "", "mean " + requests),
      traced("lines_per_request", "", per_request(totals.lines), "", "mean " + requests),
      traced("bytes_fetched", "", totals.bytes_fetched(), "B", "sum " + requests),
      traced("bytes_used", "", totals.bytes_used, "B", "sum " + requests),
      traced("efficiency", "", totals.efficiency(), "%", "bytes used / bytes moved"),
      derived("best_sectors_per_request", "", per_request(totals.best_sectors), "",
              "bytes used by a request / 32, rounded up"),
      derived("best_lines_per_request", "", per_request(totals.best_lines), "",
              "bytes used by a request / 128, rounded up"),
      derived("best_bytes_fetched", "", best_bytes, "B", "best sectors x 32 bytes"),
      derived("best_efficiency", "",
              100.0 * static_cast<double>(totals.bytes_used) / static_cast<double>(best_bytes), "%",
              "bytes used / bytes of the best sectors"),
      derived("requests", "", trace.warps, "", "elements / 32, rounded up")};
  for (const TileRequest& request : trace.tile_requests) {
    report.add(traced("bank_ways", fmt::format("{}/{}", request.rung, name_of(request.kind)),
                      request.ways, "ways",
                      "most different words that one bank delivers for one request"));
  }
}

double counted_sectors(const Outcome& outcome) {
  return outcome.params.access == Access::load ? outcome.counted->load_sectors_per_request()
                                               : outcome.counted->store_sectors_per_request();
}

void add_counted(lab::Report& report, const Outcome& outcome) {
  if (!outcome.counted.has_value()) return;
  const simt::GlobalTraffic& traffic = *outcome.counted;
  const bool load = outcome.params.access == Access::load;
  const char* op = load ? "ld" : "st";
  report.add(
      lab::counted("sectors_per_request", "hardware", counted_sectors(outcome), "",
                   fmt::format("l1tex__t_sectors_pipe_lsu_mem_global_op_{0}.sum / "
                               "l1tex__t_requests_pipe_lsu_mem_global_op_{0}.sum, whole launch",
                               op)));
  report.add(lab::counted("requests", "hardware",
                          load ? traffic.load_requests : traffic.store_requests, "",
                          fmt::format("l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum", op)));
  report.add(lab::counted("dram_bytes_read", "hardware", traffic.dram_bytes_read, "B",
                          "dram__bytes_read.sum; data already in L2 is not read again"));
  report.add(lab::counted("dram_bytes_written", "hardware", traffic.dram_bytes_written, "B",
                          "dram__bytes_write.sum; data kept in L2 is written later"));
}

// ---- checks -------------------------------------------------------------------------------------

void add_checks(lab::Report& report, const Outcome& outcome, const RequestTotals& totals) {
  report.add(
      lab::none_wrong("output", outcome.wrong_timed,
                      "Elements of the timed kernel's output that are not a copy of the right "
                      "element; copying is exact, so the tolerance is 0."));
  report.add(lab::none_wrong("traced_output", outcome.wrong_traced,
                             "The same for the traced kernel and its blocks."));
  report.add(
      lab::none_wrong("traced_equals_timed", outcome.differ,
                      "Elements that differ between the two kernels, which share one source."));
  report.add(lab::none_wrong(
      "traced_addresses", outcome.wrong_offsets,
      "Traced addresses that differ from a step-by-step walk of the pattern's definition."));
  report.add(lab::none_wrong("transposed_tiles", outcome.wrong_transposed,
                             "Elements of the traced transposes that are in the wrong place."));
  const bool all_traced = outcome.trace.traced_warps == outcome.trace.warps;
  if (!outcome.counted.has_value() || !all_traced) return;
  const double expected = totals.per_request(totals.sectors);
  const double off = std::abs(counted_sectors(outcome) - expected) / expected;
  report.add(lab::within("counted_equals_traced", off, kCountTolerance,
                         "Relative difference between counted and traced sectors per request."));
}

std::string summary_of(const Outcome& outcome, const RequestTotals& totals) {
  std::string with;
  if (const auto setting = setting_of(outcome.params)) {
    with = fmt::format(" ({} {})", knob_of(outcome.params.pattern), lab::to_text(*setting));
  }
  std::string text = fmt::format(
      "{}{}: a warp's {} of {}-byte elements touches {:.4g} sectors of 32 bytes where {:.4g} would "
      "do, and uses {:.4g} % of the bytes that it moves.",
      name_of(outcome.params.pattern), with, name_of(outcome.params.access),
      outcome.params.element_bytes(), totals.per_request(totals.sectors),
      totals.per_request(totals.best_sectors), totals.efficiency());
  if (outcome.counted.has_value()) {
    text += fmt::format(" The hardware counted {:.4g}.", counted_sectors(outcome));
  }
  return text;
}

}  // namespace

std::vector<lab::Table> tables_of(const Trace& trace) {
  return {requests_table(trace), bank_table(trace)};
}

lab::Report report_of(const Outcome& outcome) {
  const RequestTotals totals = pattern_totals(outcome.trace.requests, outcome.trace.element_bytes);
  lab::Report report;
  report.summary = summary_of(outcome, totals);
  report.tables = {requests_table(outcome.trace), patterns_table(outcome.params),
                   bank_table(outcome.trace)};
  add_traced(report, outcome.trace, totals);
  add_counted(report, outcome);
  add_checks(report, outcome, totals);
  report.trace = to_json(outcome.trace);
  return report;
}

}  // namespace tilestep::coalescing
