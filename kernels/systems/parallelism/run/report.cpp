// The report of a run: summary, checks, measurements, and the trace as tables.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/timing.hpp"
#include "kernels/systems/parallelism/run/run.hpp"

namespace tilestep::parallelism {
namespace {

using lab::real, lab::whole;

lab::Table sent_table(const Trace& trace) {
  lab::Table table{"sent",
                   "Chunks that ranks send, beat by beat",
                   {whole("beat"), whole("from"), whole("to"), "chunk"}};
  for (const Sent& one : trace.sent) {
    table.add({one.beat + 1, one.from, one.to,
               one.chunk < 0 ? std::string("all") : std::to_string(one.chunk)});
  }
  return table;
}

lab::Table link_table(const Trace& trace) {
  lab::Table table{"links",
                   "Bytes from rank to rank, by the kernels' own accesses",
                   {whole("from"), whole("to"), real("bytes", "", "B", 0)}};
  for (int from = 0; from < trace.ranks; ++from) {
    for (int to = 0; to < trace.ranks; ++to) {
      if (from != to) table.add({from, to, trace.link_at(from, to)});
    }
  }
  return table;
}

lab::Table wait_table(const Trace& trace) {
  lab::Table table{
      "waits",
      "Ranks that waited in vain, and the call that the other one was in",
      {whole("rank"), whole("call", "waits in call"), whole("from", "for rank"), "there"}};
  for (const Waits& one : trace.waits) {
    table.add({one.rank, one.call + 1, one.from,
               one.other_call < 0 ? std::string("none: it has ended")
                                  : fmt::format("call {}", one.other_call + 1)});
  }
  return table;
}

lab::Table memory_table(const Trace& trace) {
  lab::Table table{"memory", "Memory of each rank, as it was allocated", {whole("rank")}};
  for (const Kind kind : all_of<Kind>())
    table.columns.push_back(real(std::string(name_of(kind)), "", "B", 0));
  for (int rank = 0; rank < trace.ranks; ++rank) {
    std::vector<lab::Cell> row = {rank};
    for (int kind = 0; kind < kKinds; ++kind)
      row.emplace_back(trace.memory[static_cast<std::size_t>(kind * trace.ranks + rank)]);
    table.rows.push_back(std::move(row));
  }
  return table;
}

lab::Table call_table(const Trace& trace) {
  lab::Table table{"calls",
                   "What ranks do together in a step of the cut model, and the most that one sends",
                   {"call", "op", "pass", real("bytes", "", "B", 0)}};
  for (const CutCall& one : trace.calls) {
    table.add({one.name, one.op, one.backward ? "backward" : "forward",
               *std::max_element(one.bytes.begin(), one.bytes.end())});
  }
  return table;
}

lab::Table plan_table(const Trace& trace) {
  lab::Table table{
      "plan",
      "A step of a model of 32 layers, planned; many ranks have a sequence each",
      {"cut", whole("ranks"), real("memory", "", "GB", 1), real("compute", "", "ms", 1),
       real("wire", "", "ms", 1), real("idle", "", "ms", 1), real("step", "", "ms", 1)}};
  const auto add = [&](Cut cut, int ranks) {
    const PlannedStep step =
        planned(cut, ranks, trace.tokens, trace.schedule, trace.microbatches, trace.link);
    table.add({cut, ranks, step.memory() * 1e-9, step.compute * 1e3, step.wire * 1e3,
               step.idle * 1e3, step.seconds() * 1e3});
  };
  for (const Cut cut : all_of<Cut>()) add(cut, trace.ranks);
  for (const int ranks : {8, 64, 1024}) {
    for (const Cut cut : {Cut::data, Cut::fsdp}) add(cut, ranks);
  }
  return table;
}

double most_sent(const Trace& trace) {
  double most = 0;
  for (int rank = 0; rank < trace.ranks; ++rank) {
    double sent = 0;
    for (int to = 0; to < trace.ranks; ++to) sent += trace.link_at(rank, to);
    most = std::max(most, sent);
  }
  return most;
}

std::string summary_of(const Run& run) {
  const Trace& trace = run.trace;
  if (trace.broken != Break::none) {
    return fmt::format("{}: {}.", name_of(trace.broken),
                       !trace.waits.empty()      ? trace.outcome.text
                       : trace.outcome.wrong > 0 ? "numbers are wrong"
                                                 : trace.outcome.text);
  }
  return fmt::format(
      "{} on {} ranks: a message of {} bytes takes {} beats, and a rank sends {:.0f} bytes.",
      name_of(trace.algorithm), trace.ranks, trace.message, trace.beats(), most_sent(trace));
}

/// Bytes of memory and of calls that are not as planned.
int unplanned(const Run& run) {
  int wrong = static_cast<int>(lab::differing(run.cut.memory, run.plan.memory));
  for (const CutCall& call : run.cut.calls) {
    const auto planned =
        std::find_if(run.plan.calls.begin(), run.plan.calls.end(),
                     [&](const PlannedCall& one) { return one.name == call.name; });
    const bool same = planned != run.plan.calls.end() && planned->op == call.op &&
                      planned->backward == call.backward && planned->bytes == call.bytes;
    wrong += same ? 0 : 1;
  }
  return wrong +
         std::abs(static_cast<int>(run.cut.calls.size()) - static_cast<int>(run.plan.calls.size()));
}

}  // namespace

std::vector<lab::Table> tables_of(const Trace& trace) {
  return {sent_table(trace),   link_table(trace), wait_table(trace),
          memory_table(trace), call_table(trace), plan_table(trace)};
}

lab::Report report_of(const Run& run) {
  const Trace& trace = run.trace;
  lab::Report report;
  report.summary = summary_of(run);
  report.tables = tables_of(trace);
  int wrong = 0;
  report.add(compared(run.timed, wrong)
                 .check("sums", "all ranks against double: n − 1 additions in FP32"));
  std::int64_t differ = 0, apart = 0;
  for (std::size_t rank = 0; rank < run.timed.out.size(); ++rank) {
    differ += lab::differing(run.timed.out[rank], run.explained.out[rank]);
    apart += lab::differing(run.timed.out[rank], run.timed.out[0]);
  }
  report.add(lab::none_wrong("explained", differ, "the explained kernel leaves the same bits"));
  report.add(lab::none_wrong("ranks", apart, "all ranks have the same bits"));
  const char* detail =
      "against double: FP32 sums of as many products as there are tokens, through all layers";
  report.add(run.cut.outputs.check("outputs", detail));
  report.add(run.cut.inputs.check("input_gradients", detail));
  report.add(run.cut.gradients.check("gradients", detail));
  report.add(run.cut.weights.check("weights", "after a step of Adam, which divides by gradients"));
  report.add(lab::none_wrong("plan", unplanned(run),
                             "bytes of memory and of every call, as the formulas say"));
  report.add(lab::none_wrong(
      "waits", static_cast<std::int64_t>(run.cut.stuck.size() + run.timed.waits.size()),
      "no rank waited in vain"));
  // Where ranks wait in vain on a GPU, time decides how much was sent.
  if (trace.waits.empty())
    report.add(lab::traced("sent_bytes", "", most_sent(trace), "B",
                           "the most that a rank sends in the all-reduce"));
  report.add(lab::derived("bubble", "", bubble_of(trace.slots, trace.ranks), "",
                          "share of the ranks' time in which they do nothing; backward takes twice "
                          "as long as forward"));
  report.trace = to_json(trace);
  return report;
}

}  // namespace tilestep::parallelism
