// The report of a run: summary, checks, and what the instruments showed as tables.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/timing.hpp"
#include "kernels/systems/triage/run/run.hpp"

namespace tilestep::triage {
namespace {

using lab::plural, lab::real, lab::whole;

lab::Table look_table(const Trace& trace) {
  lab::Table table{
      "looks", "The probes that were spent", {whole("probe"), "instrument", whole("step")}};
  int number = 0;
  for (const Probe& probe : trace.looks) table.add({++number, probe.instrument, probe.step});
  return table;
}

lab::Table reading_table(const Trace& trace) {
  lab::Table table{"readings",
                   "What the instruments showed",
                   {whole("row"), whole("probe"), "instrument", "what", lab::column("note", "of"),
                    "number", real("value", "", "", 3)}};
  int number = 0;
  for (const Row& row : trace.rows) {
    const Instrument instrument = trace.looks[static_cast<std::size_t>(row.look)].instrument;
    const double numbers[] = {row.count, row.value, row.second};
    const auto columns = columns_of(instrument);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].name.empty()) continue;
      // Without a clock a time is no number, but beats have an order.
      const bool has = !columns[i].timed || numbers[i] > 0 || instrument == Instrument::timeline;
      const bool beat = instrument == Instrument::timeline && trace.times_from.empty();
      table.add({++number, row.look + 1, instrument, row.what, row.note,
                 std::string(columns[i].name) + (columns[i].unit.empty() || beat
                                                     ? std::string()
                                                     : ", " + std::string(columns[i].unit)),
                 has ? lab::Cell(numbers[i]) : lab::Cell()});
    }
  }
  return table;
}

lab::Table diagnosis_table(const Trace& trace) {
  lab::Table table{"diagnosis", "The diagnosis", {"question", "said"}};
  table.add({"bottleneck", trace.bottleneck});
  table.add({"operator", trace.suspect});
  table.add({"cause", trace.cause});
  table.add({"fix", trace.fix});
  if (trace.which == Case::mixed) table.add({"second fix", trace.second});
  return table;
}

lab::Table verdict_table(const Trace& trace) {
  lab::Table table{"verdict", "What came of it", {"what", real("number", "", "", 2), "unit"}};
  const Verdict& verdict = trace.verdict;
  if (!verdict.applied) return table;
  if (verdict.before_us > 0) {
    table.add({"before", verdict.before_us, "µs"});
    table.add({"after", verdict.after_us, "µs"});
    table.add({"times as fast", verdict.gain(), ""});
    table.add({"share of the possible gain", 100 * verdict.share(), "%"});
  }
  table.add({"asked of memory before", verdict.before_mb, "MB in four steps"});
  table.add({"asked of memory after", verdict.after_mb, "MB in four steps"});
  table.add({"kernels before", verdict.before_launches, "in four steps"});
  table.add({"kernels after", verdict.after_launches, "in four steps"});
  table.add({"faults fixed", verdict.fixed, ""});
  table.add({"probes left", trace.probes_left(), ""});
  table.add({"points", verdict.points, "of 100"});
  return table;
}

std::string summary_of(const Trace& trace) {
  const int looks = static_cast<int>(trace.looks.size());
  std::string said =
      fmt::format("{}: {} of {} spent", name_of(trace.which), plural(looks, "probe"), kProbes);
  const Verdict& verdict = trace.verdict;
  if (!verdict.applied) return said + "; no fix is applied.";
  if (verdict.before_us <= 0) {
    return said + fmt::format("; {} of {} fixed, and there is no clock here.", verdict.fixed,
                              plural(verdict.faults, "fault"));
  }
  return said + fmt::format("; the step takes {:.0f} µs instead of {:.0f} ({:.2f} times as fast).",
                            verdict.after_us, verdict.before_us, verdict.gain());
}

}  // namespace

std::vector<lab::Table> tables_of(const Trace& trace) {
  return {look_table(trace), reading_table(trace), diagnosis_table(trace), verdict_table(trace)};
}

lab::Report report_of(const Run& run) {
  const Trace& trace = run.trace;
  lab::Report report;
  report.summary = summary_of(trace);
  report.add(run.before.check("before",
                              "h and logits of the case as it is, in both kinds of step, against "
                              "double; FP32 sums, and keys rounded to BF16."));
  report.add(run.after.check("after", "The same after the fixes."));
  report.add(lab::none_wrong("sampled", run.sampled_wrong,
                             "Tokens that are not those of the largest logit, or of the first."));
  for (lab::Table& table : tables_of(trace)) report.add(std::move(table));
  if (trace.verdict.applied) {
    // Kept with the learner's progress: which fixes were tried on the case, with how many points.
    report.add(
        lab::derived("case_points", run.tried, trace.verdict.points, "of 100",
                     "bottleneck 10, operator 15, cause 25, share of the gain 40, probes 10"));
  }
  report.trace = to_json(trace);
  return report;
}

}  // namespace tilestep::triage
