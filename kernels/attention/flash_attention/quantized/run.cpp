// Runs the explained kernels with scores of 8 bits, brings home what they wrote, and counts what the bits cost.

#include "kernels/attention/flash_attention/run/run.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/attention/flash_attention/quantized/buffers.hpp"
#include "kernels/attention/flash_attention/quantized/reference.hpp"
#include "kernels/attention/flash_attention/run/explained.hpp"
#include "kernels/base/lab/closest.hpp"

namespace tilestep::flash_attention {
namespace {

/// Errors of O, for its own root mean square.
void count_errors(QuantizedRow& row, const std::vector<float>& got,
                  const std::vector<double>& exact) {
  double errors = 0, squares = 0, largest = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double off = std::abs(static_cast<double>(got[i]) - exact[i]);
    errors += off * off;
    squares += exact[i] * exact[i];
    largest = std::max(largest, off);
  }
  const double rms = std::sqrt(squares / static_cast<double>(exact.size()));
  row.o_rms = std::sqrt(errors / static_cast<double>(exact.size())) / rms;
  row.o_largest = largest / rms;
}

}  // namespace

void run_quantized(simt::Device& device, const Params& params, const Inputs& inputs,
                   const Chosen& chosen, Outcome& outcome) {
  const Plan& plan = outcome.plan;
  const Task task = task_of(params);
  const QuantizedProblem problem{task, params.dtype, params.smooth_k};
  QuantizedBuffers buffers(device, problem, quantized_sizes(task.head_dim, false), inputs);
  RecordBuffers records(device, plan, task.heads);
  kernels_of(device).explain(device, problem, params.broken, buffers.arrays(),
                             records.records(chosen));
  device.synchronize();
  outcome.o = buffers.o();
  outcome.lse = buffers.lse();
  outcome.numbers = buffers.numbers();
  outcome.visits = records.visits.download();
  outcome.steps = records.steps.download();
  outcome.asked = records.ledger();
  outcome.formula = ledger_of(plan, task, params.broken, inputs.begins);
}

QuantizedErrors quantized_errors(simt::Device& device, const Run& run, const Inputs& inputs,
                                 lab::Progress& progress) {
  const Params& part = run.excerpt.params;
  const Task task = task_of(part);
  QuantizedErrors all;
  const auto add = [&](DataType format, bool smooth_k) {
    progress.check();
    QuantizedRow row{format, smooth_k, 0, 0, 0};
    Params params = part;
    params.variant = Variant::flash_2;
    params.dtype = format;
    params.smooth_k = smooth_k;
    params.broken = Break::none;
    const bool shown = format == part.dtype && smooth_k == part.smooth_k;
    const Outcome outcome = shown ? run.sound : run_explained(device, params, inputs, run.chosen);
    count_errors(row, outcome.o, run.exact.o.value);
    if (is_quantized(format)) {
      const QuantizedNumbers& numbers = outcome.numbers;
      const ScoreErrors scores = score_errors(task, inputs, numbers, format);
      row.score_rms = scores.rms;
      all.wrong_scores += scores.wrong;
      all.wrong_numbers += wrong_numbers(task, inputs, numbers, format, smooth_k);
      const Reference due =
          shown ? run.exact : reference_quantized(task, inputs, numbers, format, progress);
      all.wrong_rows += lab::compared(outcome.o, due.o.value, due.o.bound).ok() &&
                                lab::compared(outcome.lse, due.lse.value, due.lse.bound).ok()
                            ? 0
                            : 1;
    }
    all.rows.push_back(row);
  };
  add(DataType::bf16, false);
  for (const DataType format : {DataType::fp8, DataType::int8}) {
    for (const bool smooth_k : {false, true}) add(format, smooth_k);
  }
  return all;
}

}  // namespace tilestep::flash_attention
