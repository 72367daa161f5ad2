// The report of a run: summary, checks, measurements, and the trace as tables.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/timing.hpp"
#include "kernels/systems/launches/run/run.hpp"

namespace tilestep::launches {
namespace {

using lab::plural, lab::real, lab::whole;

lab::Table step_table(const Trace& trace) {
  lab::Table table{
      "steps",
      "The decode steps, and how the host had them done",
      {whole("step"), whole("batch", "tokens"), whole("rows", "rows computed"), "how",
       whole("calls", "calls of the host"), whole("kernels"), whole("wrong", "wrong numbers")}};
  int number = 0;
  for (const StepTrace& step : trace.steps) {
    table.add({++number, step.batch, step.rows, step.how, step.calls, step.kernels, step.wrong});
  }
  return table;
}

lab::Table call_table(const Trace& trace) {
  lab::Table table{"calls",
                   "The host's calls, in order",
                   {whole("call"), whole("beat"), "kind", "what", whole("stream"), "effect"}};
  int number = 0;
  for (const CallTrace& call : trace.calls) {
    table.add({++number, call.beat, call.kind, call.what, call.stream + 1,
               call.captured ? "part of a graph" : ""});
  }
  return table;
}

lab::Table work_table(const Trace& trace) {
  lab::Table table{"works",
                   "What the device did, and what each had to come after",
                   {whole("work"), whole("beat"), "what", whole("stream"),
                    whole("call", "submitted by call"), "after"}};
  for (std::size_t i = 0; i < trace.works.size(); ++i) {
    const WorkTrace& work = trace.works[i];
    std::string after;
    for (const int each : work.after) {
      after += (after.empty() ? "" : ", ") + std::to_string(each + 1);
    }
    table.add({i + 1, work.beat, work.what, work.stream + 1, work.call + 1, after});
  }
  return table;
}

/// What the dispatcher chooses, for the knobs' shape and others.
lab::Table choice_table(const Trace& trace) {
  lab::Table table{"choices",
                   "Which kernel runs a product Y = X · W^T: X is m x k, W n x k",
                   {"format", whole("m"), whole("n"), whole("k"),
                    whole("offset", "W begins at", "B"), "kernel", lab::column("why", "why")}};
  const ShapeTrace& own = trace.shape;
  const Product products[] = {
      {Dtype::bf16, own.m, own.n, own.k, 0}, {Dtype::bf16, 4096, 4096, 4096, 0},
      {Dtype::fp8, 4096, 4096, 4096, 0},     {Dtype::fp32, 4096, 4096, 4096, 0},
      {Dtype::bf16, 4096, 4096, 4095, 0},    {Dtype::fp8, 4096, 4096, 4088, 0},
      {Dtype::bf16, 4096, 4096, 4096, 2},    {Dtype::bf16, 8, 4096, 4096, 0}};
  for (const Product& one : products) {
    const Choice choice = chosen_for(one);
    table.add({one.dtype, one.m, one.n, one.k, one.offset, choice.kernel, choice.why});
  }
  return table;
}

lab::Table amdahl_table() {
  lab::Table table{"amdahl",
                   "Times as long as a model takes of which a share falls back",
                   {real("share", "of its time", "%", 0), real("five", "5x slower", "", 2),
                    real("eight", "8x slower", "", 2), real("twenty", "20x slower", "", 2)}};
  for (const double share : {0.0, 0.05, 0.1, 0.2, 0.4, 1.0}) {
    table.add({100 * share, slowdown(share, 5), slowdown(share, 8), slowdown(share, 20)});
  }
  return table;
}

std::string summary_of(const Trace& trace) {
  int calls = 0, kernels = 0, wrong = 0;
  for (const StepTrace& step : trace.steps) {
    calls += step.calls;
    kernels += step.kernels;
    wrong += step.wrong;
  }
  std::string said =
      fmt::format("{} of {} took {} and {} ({})",
                  plural(static_cast<std::int64_t>(trace.steps.size()), "decode step"),
                  plural(trace.layers, "layer"), plural(calls, "call"), plural(kernels, "kernel"),
                  name_of(trace.mode));
  if (trace.broken == Break::none) return said + ".";
  said += wrong > 0
              ? fmt::format("; with {} {} wrong", name_of(trace.broken),
                            wrong == 1 ? "1 number is" : std::to_string(wrong) + " numbers are")
              : fmt::format("; {} changes no number here", name_of(trace.broken));
  return said + ".";
}

lab::Closest compared_steps(const Run& run) {
  lab::Closest closest;
  for (std::size_t step = 0; step < run.exact.size(); ++step) {
    for (std::size_t i = 0; i < run.exact[step].size(); ++i) {
      closest.add(run.sound.h[step][i], run.exact[step][i], run.bound,
                  [&] { return fmt::format("step {}, number {}", step + 1, i); });
    }
  }
  return closest;
}

/// Every piece of work comes behind what it hangs on, in the order in which the device did it.
std::int64_t out_of_order(const StepsDone& done) {
  std::int64_t count = 0;
  for (const auto& work : done.log.works) {
    for (const int before : work.after) {
      count += done.log.works[static_cast<std::size_t>(before)].tick < work.tick ? 0 : 1;
    }
  }
  return count;
}

}  // namespace

std::vector<lab::Table> tables_of(const Trace& trace) {
  return {step_table(trace), call_table(trace), work_table(trace), choice_table(trace),
          amdahl_table()};
}

lab::Report report_of(const Run& run) {
  const Trace& trace = run.trace;
  lab::Report report;
  report.summary = summary_of(trace);
  report.add(compared_steps(run).check("steps",
                                       "h of all steps, without a mistake, against double; FP32 "
                                       "sums of products, layer after layer, "
                                       "of numbers as large as the largest."));
  report.add(lab::none_wrong("orders", run.orders_differ,
                             "Numbers that differ where the device does the same calls' work in "
                             "another order that they allow; none may."));
  report.add(lab::none_wrong("ordered",
                             static_cast<std::int64_t>(findings_of(run.sound.log).size()),
                             "Without a mistake: pairs of launches that use the same memory and "
                             "are not ordered, and launches that use memory that was replaced."));
  report.add(lab::none_wrong("dependencies", out_of_order(run.shown),
                             "Work that was done before work that it has to come after."));
  report.add(run.product.check("product",
                               "The product of the shape's knobs, at most 16 rows of W and 8 of X, "
                               "against double; FP32 sums of k products of numbers up to 1."));
  if (trace.mode == Mode::persistent) {
    report.add(lab::none_wrong("noted", run.phases_differ,
                               "Numbers that the kernel with a tape has otherwise than the one "
                               "without."));
  }
  for (lab::Table& table : tables_of(trace)) report.add(std::move(table));

  const Tiling tiling = trace.shape.tiling();
  report.add(lab::derived(
      "tiles", "", tiling.tiles(), "",
      fmt::format("⌈{} / {}⌉ · ⌈{} / {}⌉", trace.shape.m, kTileM, trace.shape.n, kTileN)));
  report.add(
      lab::derived("waves", "", tiling.waves, "",
                   fmt::format("⌈{} / {} multiprocessors⌉", tiling.tiles(), kMultiprocessors)));
  report.add(lab::readout_table(report.measurements, 0));
  report.trace = to_json(trace);
  return report;
}

}  // namespace tilestep::launches
