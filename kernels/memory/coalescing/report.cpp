#include "kernels/memory/coalescing/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/memory/coalescing/reference.hpp"

namespace tilestep::coalescing {
namespace {

constexpr std::int64_t kComparedWarps = 64;

// ---- tables -------------------------------------------------------------------------------------

lab::Table requests_table(const Trace& trace) {
  lab::Table table{"requests",
                   "Requests of the traced warps",
                   {{"block", "block", "", 0},
                    {"warp", "warp", "", 0},
                    {"site", "address by", "", -1},
                    {"kind", "access", "", -1},
                    {"lanes", "lanes", "", 0},
                    {"sectors", "sectors", "", 0},
                    {"lines", "lines", "", 0},
                    {"bytes_used", "used", "B", 0},
                    {"bytes_fetched", "moved", "B", 0},
                    {"efficiency", "efficiency", "%", 1}},
                   {}};
  for (const WarpRequest& request : trace.requests) {
    const RequestStats stats = request_stats(request, trace.element_bytes);
    table.rows.push_back({static_cast<double>(request.block), static_cast<double>(request.warp),
                          std::string(request.site == Site::pattern ? "pattern" : "plain"),
                          std::string(to_text(request.kind)), static_cast<double>(stats.lanes),
                          static_cast<double>(stats.sectors), static_cast<double>(stats.lines),
                          static_cast<double>(stats.bytes_used),
                          static_cast<double>(stats.bytes_fetched), stats.efficiency()});
  }
  return table;
}

/// Every pattern with the other knobs as they are: from its definition, not from a trace.
lab::Table patterns_table(const Params& params) {
  lab::Table table{"patterns",
                   fmt::format("Every pattern with elements of {} bytes (derived from the "
                               "patterns' definitions, first {} warps)",
                               params.element_bytes(), kComparedWarps),
                   {{"pattern", "pattern", "", -1},
                    {"index", "statement", "", -1},
                    {"sectors_per_request", "sectors per request", "", 2},
                    {"efficiency", "efficiency", "%", 1}},
                   {}};
  for (const Pattern pattern : kPatterns) {
    Params other = params;
    other.pattern = pattern;
    // No array is made here, so that no size is too large.
    const PatternCost cost = reference_cost(shape_of(other), kComparedWarps);
    table.rows.push_back({std::string(to_text(pattern)), statement(other),
                          cost.sectors_per_request(), cost.efficiency()});
  }
  return table;
}

lab::Table bank_table(const Trace& trace) {
  lab::Table table{"bank_conflicts",
                   "Shared memory requests of the transposes with a 32 x 32 tile (traced)",
                   {{"rung", "transpose", "", -1},
                    {"kind", "access", "", -1},
                    {"lane_distance", "distance of neighbouring lanes", "B", 0},
                    {"ways", "ways", "", 0}},
                   {}};
  for (const TileRequest& request : trace.tile_requests) {
    table.rows.push_back({request.rung, std::string(to_text(request.kind)),
                          static_cast<double>(request.byte_offset[1] - request.byte_offset[0]),
                          static_cast<double>(request.ways)});
  }
  return table;
}

// ---- measurements -------------------------------------------------------------------------------

lab::Measurement number(const char* id, std::string_view variant, lab::Provenance provenance,
                        double value, const char* unit, std::string detail) {
  lab::Measurement m;
  m.id = id;
  m.variant = variant;
  m.provenance = provenance;
  m.value = value;
  m.unit = unit;
  m.detail = std::move(detail);
  return m;
}

void add_traced(lab::Report& report, const Outcome& outcome, const TraceTotals& totals) {
  using enum lab::Provenance;
  const auto requests = static_cast<double>(totals.requests);
  const std::string of =
      fmt::format("mean over the {} traced of {} requests", totals.requests, outcome.trace.warps);
  const std::string sum =
      fmt::format("sum over the {} traced of {} requests", totals.requests, outcome.trace.warps);
  auto& m = report.measurements;
  const double best_bytes = totals.best_sectors * kSectorBytes;
  m.push_back(number("sectors_per_request", "", traced, totals.sectors / requests, "", of));
  m.push_back(number("lines_per_request", "", traced, totals.lines / requests, "", of));
  m.push_back(number("bytes_fetched", "", traced, totals.bytes_fetched, "B", sum));
  m.push_back(number("bytes_used", "", traced, totals.bytes_used, "B", sum));
  m.push_back(number("efficiency", "", traced, 100 * totals.bytes_used / totals.bytes_fetched, "%",
                     "bytes used / bytes moved"));
  m.push_back(number("best_sectors_per_request", "", derived, totals.best_sectors / requests, "",
                     "bytes used by a request / 32, rounded up"));
  m.push_back(number("best_lines_per_request", "", derived, totals.best_lines / requests, "",
                     "bytes used by a request / 128, rounded up"));
  m.push_back(
      number("best_bytes_fetched", "", derived, best_bytes, "B", "best sectors x 32 bytes"));
  m.push_back(number("best_efficiency", "", derived, 100 * totals.bytes_used / best_bytes, "%",
                     "bytes used / bytes of the best sectors"));
  m.push_back(number("requests", "", derived, static_cast<double>(outcome.trace.warps), "",
                     "elements / 32, rounded up"));
  for (const TileRequest& request : outcome.trace.tile_requests) {
    m.push_back(number("bank_ways", fmt::format("{}/{}", request.rung, to_text(request.kind)),
                       traced, request.ways, "ways",
                       "most different words that one bank delivers for one request"));
  }
}

double counted_sectors(const Outcome& outcome) {
  return outcome.params.access == Access::load ? outcome.counted->load_sectors_per_request()
                                               : outcome.counted->store_sectors_per_request();
}

void add_counted(lab::Report& report, const Outcome& outcome) {
  if (!outcome.counted.has_value()) return;
  using enum lab::Provenance;
  const simt::GlobalTraffic& traffic = *outcome.counted;
  const bool load = outcome.params.access == Access::load;
  const char* op = load ? "ld" : "st";
  auto& m = report.measurements;
  m.push_back(number("sectors_per_request", "hardware", counted, counted_sectors(outcome), "",
                     fmt::format("l1tex__t_sectors_pipe_lsu_mem_global_op_{0}.sum / "
                                 "l1tex__t_requests_pipe_lsu_mem_global_op_{0}.sum, whole launch",
                                 op)));
  m.push_back(number("requests", "hardware", counted,
                     load ? traffic.load_requests : traffic.store_requests, "",
                     fmt::format("l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum", op)));
  m.push_back(number("dram_bytes_read", "hardware", counted, traffic.dram_bytes_read, "B",
                     "dram__bytes_read.sum; what L2 already holds is not read again"));
  m.push_back(number("dram_bytes_written", "hardware", counted, traffic.dram_bytes_written, "B",
                     "dram__bytes_write.sum; what stays in L2 is written later"));
}

// ---- checks -------------------------------------------------------------------------------------

lab::Check exact(const char* id, std::int64_t wrong, const char* detail) {
  return {id, wrong == 0, static_cast<double>(wrong), 0, detail};
}

void add_checks(lab::Report& report, const Outcome& outcome, const TraceTotals& totals) {
  auto& checks = report.checks;
  checks.push_back(exact("output", outcome.wrong_timed,
                         "Elements of the timed kernel's output that are not a copy of the right "
                         "element; copying is exact, so the tolerance is 0."));
  checks.push_back(exact("traced_output", outcome.wrong_traced,
                         "The same for the traced kernel and its blocks."));
  checks.push_back(exact("traced_equals_timed", outcome.differ,
                         "Elements that the two kernels, which are the same source, left "
                         "different."));
  checks.push_back(exact("traced_addresses", outcome.wrong_offsets,
                         "Traced addresses that are not the ones that the pattern's definition "
                         "gives when it is walked step by step."));
  checks.push_back(exact("transposed_tiles", outcome.wrong_transposed,
                         "Elements of the traced transposes that are in the wrong place."));
  const bool all_traced = outcome.trace.traced_warps == outcome.trace.warps;
  if (!outcome.counted.has_value() || !all_traced) return;
  const double expected = totals.sectors / static_cast<double>(totals.requests);
  const double off = std::abs(counted_sectors(outcome) - expected) / expected;
  checks.push_back({"counted_equals_traced", off <= kCountTolerance, off, kCountTolerance,
                    "Relative difference of sectors per request as the hardware counted and as "
                    "the traced addresses give them."});
}

std::string summary_of(const Outcome& outcome, const TraceTotals& totals) {
  const auto requests = static_cast<double>(totals.requests);
  const double sectors = totals.sectors / requests;
  const double best = totals.best_sectors / requests;
  const std::string_view knob = knob_of(outcome.params.pattern);
  std::string with;
  if (!knob.empty()) {
    const lab::Settings settings = knob_table().settings(outcome.params);
    with = fmt::format(" ({} {})", knob, lab::to_text(settings.find(knob)->second));
  }
  std::string text = fmt::format(
      "{}{}: a warp's {} of {}-byte elements touches {:.4g} sectors of 32 bytes where {:.4g} would "
      "do, and uses {:.4g} % of the bytes that it moves.",
      to_text(outcome.params.pattern), with, to_text(outcome.params.access),
      outcome.params.element_bytes(), sectors, best,
      100 * totals.bytes_used / totals.bytes_fetched);
  if (outcome.counted.has_value()) {
    text += fmt::format(" The hardware counted {:.4g}.", counted_sectors(outcome));
  }
  return text;
}

}  // namespace

lab::Report make_report(const Outcome& outcome, const simt::DeviceInfo& device) {
  const TraceTotals totals = pattern_totals(outcome.trace.requests, outcome.trace.element_bytes);
  lab::Report report;
  report.lesson = kLessonId;
  report.params = knob_table().settings(outcome.params);
  report.device = device;
  report.summary = summary_of(outcome, totals);
  report.tables = {requests_table(outcome.trace), patterns_table(outcome.params),
                   bank_table(outcome.trace)};
  add_traced(report, outcome, totals);
  add_counted(report, outcome);
  add_checks(report, outcome, totals);
  report.trace = to_json(outcome.trace);
  return report;
}

}  // namespace tilestep::coalescing
