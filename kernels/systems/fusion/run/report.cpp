// The report of a run: summary, checks, measurements, and the trace as tables.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/timing.hpp"
#include "kernels/systems/fusion/run/run.hpp"

namespace tilestep::fusion {
namespace {

using lab::real, lab::whole;

// ---- tables ---------------------------------------------------------------------------------------

double per_number(const Trace& trace, const Lane& lane, int step, bool stored) {
  std::int64_t bytes = 0;
  for (const Move& one : lane.moves) {
    if (one.step == step && one.stored == stored && is_counted(one.tensor)) bytes += one.bytes;
  }
  return static_cast<double>(bytes) / trace.width;
}

lab::Table chain_table(const Trace& trace) {
  lab::Table table{
      "chain",
      "The chain's steps: bytes per number that the recorded row's launches moved",
      {"step", whole("launch", "fused: launch"), real("unfused_read", "unfused: read", "B", 2),
       real("unfused_written", "unfused: written", "B", 2), real("read", "fused: read", "B", 2),
       real("written", "fused: written", "B", 2)}};
  for (int step = 0; step < kChain; ++step) {
    table.add({static_cast<Step>(step), trace.fused.launch[static_cast<std::size_t>(step)] + 1,
               per_number(trace, trace.unfused, step, false),
               per_number(trace, trace.unfused, step, true),
               per_number(trace, trace.fused, step, false),
               per_number(trace, trace.fused, step, true)});
  }
  return table;
}

lab::Table number_table(const Trace& trace) {
  lab::Table table{
      "numbers",
      fmt::format("The first {} of the recorded row", lab::plural(trace.shown(), "number")),
      {whole("number"), real("x", "", "", 3), real("residual", "", "", 3), real("h", "", "", 3),
       real("n", "", "", 4), real("code", "", "", 4), real("decoded", "code · scale", "", 4)}};
  for (int i = 0; i < trace.shown(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    table.add({i, trace.x[at], trace.residual[at], trace.fused.held[at], trace.fused.normed[at],
               trace.fused.codes[at],
               static_cast<double>(trace.fused.codes[at]) *
                   static_cast<double>(trace.fused.stats.scale)});
  }
  return table;
}

lab::Table kernel_table(const Trace& trace) {
  lab::Table table{"kernels",
                   "The block's kernels: bytes per number of the width and token, beside weights "
                   "and cache (derived)",
                   {whole("kernel"), lab::column("operations", ""), real("read", "", "B", 2),
                    real("written", "", "B", 2), real("saved", "", "B", 2)}};
  for (int kernel = 0; kernel < trace.kernels(); ++kernel) {
    std::string names;
    double read = 0, written = 0, saved = 0;
    for (int op = 0; op < kOps; ++op) {
      const OpTrace& one = trace.ops[static_cast<std::size_t>(op)];
      if (one.kernel != kernel) continue;
      names += (names.empty() ? "" : " + ") + std::string(name_of(static_cast<Op>(op)));
      for (const Traffic& each : one.traffic)
        (each.saved ? saved : each.stored ? written : read) += each.bytes;
    }
    table.add({kernel + 1, names, read, written, saved});
  }
  return table;
}

std::string list_text(const std::vector<int>& seams) {
  std::string text;
  for (const int one : seams) text += (text.empty() ? "" : ",") + std::to_string(one);
  return text.empty() ? "none" : text;
}

lab::Table score_table(const Trace& trace) {
  lab::Table table{"score",
                   fmt::format("The block's kernels for {} of {} numbers (derived)",
                               lab::plural(trace.batch, "token"), trace.width),
                   {"fusions", whole("launches"), real("bytes", "bytes per number", "B", 2),
                    real("time", "predicted", "µs", 1), "seams"}};
  std::vector<int> own;
  for (int i = 0; i < kSeams; ++i) {
    if (trace.seams[static_cast<std::size_t>(i)].fused) own.push_back(i + 1);
  }
  const auto add = [&](const char* name, const Score& score, const std::string& seams) {
    table.add(
        {name, score.launches, score.bytes, score.microseconds(trace.width, trace.batch), seams});
  };
  add("none", trace.none, "none");
  add("yours", trace.own, list_text(own));
  add("best", trace.best, list_text(trace.best_list));
  return table;
}

// ---- checks -----------------------------------------------------------------------------------------

lab::Check check_sum(const Run& run) {
  const std::vector<float> got = unpacked(run.shape.type, run.fused.sum);
  lab::Closest closest;
  for (std::size_t i = 0; i < got.size(); ++i) closest.add(got[i], run.exact.sum[i], 0);
  return closest.check("sum", "x + residual, rounded once: exact.");
}

lab::Check check_normed(const Run& run) {
  const std::vector<float> got = unpacked(run.shape.type, run.unfused.normed);
  lab::Closest closest;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double right = run.exact.normed.value[i];
    closest.add(got[i], right,
                run.exact.normed.bound[i] + half_spacing(run.shape.type, std::abs(right) * 1.01));
  }
  return closest.check("normed",
                       "Tolerance: the additions of a square on its way to the sum, times 2^-24 "
                       "and halved by the root; "
                       "five operations; and half a spacing of the format.");
}

lab::Check check_codes(const Run& run) {
  return compared_codes(run.shape, run.exact, run.fused)
      .check("codes",
             "code times scale against the norm in double. Tolerance: half a spacing of E4M3 and "
             "of the format, "
             "and the norm's own.");
}

lab::Check check_same(const char* id, const Results& a, const Results& b, const char* detail) {
  std::int64_t wrong = lab::differing(a.sum, b.sum) + lab::differing(a.codes, b.codes);
  for (std::size_t i = 0; i < a.scale.size(); ++i)
    wrong += lab::same_bits(a.scale[i], b.scale[i]) ? 0 : 1;
  return lab::none_wrong(id, wrong, detail);
}

/// The first row of the timed results.
Results first_row(const Run& run, const Results& all) {
  const auto width = static_cast<std::ptrdiff_t>(run.shape.width);
  return {{all.sum.begin(), all.sum.begin() + width * bytes_of(run.shape.type)},
          {},
          {all.codes.begin(), all.codes.begin() + width},
          {all.scale.front()}};
}

/// The traced bytes against a count of the tensors.
lab::Check check_bytes(const Run& run) {
  const Trace& trace = run.trace;
  const auto number = static_cast<std::int64_t>(bytes_of(trace.dtype));
  std::int64_t wrong = 0;
  for (const Lane* lane : {&trace.unfused, &trace.fused}) {
    const bool apart = lane->launch[1] != lane->launch[0], two = lane->launch[2] != lane->launch[1];
    // x, residual and h; h again; n out and in; codes.
    const std::int64_t numbers = 3 + (apart ? 1 : 0) + (two ? 2 : 0);
    wrong += std::abs(lane->bytes() - trace.width * (numbers * number + 1));
  }
  return lab::none_wrong("bytes", wrong,
                         "The launches' own accesses, against one crossing of each tensor.");
}

/// A mistake that can show must be found.
lab::Check check_found(const Run& run) {
  // The early sum is taken in the kernel that adds; apart, the norm reads the sum that is stored.
  const bool can = run.params.broken == Break::fp16_sum ||
                   run.trace.fused.launch[1] == run.trace.fused.launch[0];
  return lab::none_wrong(
      "found", can == (run.trace.result.wrong > 0) ? 0 : 1,
      "The comparison with double finds the mistake where the launch can make it.");
}

// ---- summary ------------------------------------------------------------------------------------------

std::string summary_of(const Run& run) {
  const Trace& trace = run.trace;
  if (trace.broken != Break::none)
    return fmt::format("{}: {}.", name_of(trace.broken), trace.result.outcome);
  const double before = trace.bytes_per_number(trace.unfused),
               now = trace.bytes_per_number(trace.fused);
  return fmt::format(
      "Residual, norm and quantization in {} move {:.4g} bytes per number, in three launches "
      "{:.4g}; the block has {} "
      "kernels, the best fusion {}.",
      lab::plural(trace.fused.launches(), "launch", "launches"), now, before, trace.own.launches,
      trace.best.launches);
}

void add_measurements(lab::Report& report, const Trace& trace) {
  const double before = trace.bytes_per_number(trace.unfused),
               now = trace.bytes_per_number(trace.fused);
  report.add(lab::traced("bytes_per_number", "unfused", before, "B",
                         "of the recorded row, in three launches"));
  report.add(lab::traced("bytes_per_number", "fused", now, "B",
                         fmt::format("of the recorded row, in {}", trace.fused.launches())));
  report.add(lab::derived("byte_ratio", "", before / now, "", "bytes unfused / bytes fused"));
  const double saved = trace.none.microseconds(trace.width, trace.batch) -
                       trace.own.microseconds(trace.width, trace.batch);
  report.add(lab::derived(
      "predicted_saving", "", saved, "µs",
      fmt::format("saved bytes / {:.1f} TB/s, a copy's rate, + saved launches · {:.1f} µs, what "
                  "one launch less saves one row in a graph; both measured on an H200",
                  kBytesPerMicrosecond / 1e6, kMicrosecondsPerLaunch)));
}

}  // namespace

std::vector<lab::Table> tables_of(const Trace& trace) {
  return {chain_table(trace), number_table(trace), kernel_table(trace), score_table(trace)};
}

lab::Report report_of(const Run& run) {
  lab::Report report;
  report.summary = summary_of(run);
  for (lab::Table& table : tables_of(run.trace)) report.add(std::move(table));
  add_measurements(report, run.trace);
  report.checks = {
      check_sum(run),
      check_normed(run),
      check_codes(run),
      check_same("fused_equals_unfused", run.fused, run.unfused,
                 "Fused and unfused launches agree bit for bit: what stays on the chip is rounded "
                 "as if it "
                 "had been stored."),
      check_same("traced_equals_timed", run.recorded, first_row(run, run.fused),
                 "The explained launches' first row is bit-identical to the timed ones'."),
      check_same("unfused_traced_equals_timed", run.recorded_unfused, first_row(run, run.unfused),
                 "The same in three launches."),
      check_bytes(run)};
  if (run.params.broken != Break::none) report.checks.push_back(check_found(run));
  report.trace = to_json(run.trace);
  return report;
}

}  // namespace tilestep::fusion
