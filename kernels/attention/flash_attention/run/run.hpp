#pragma once

#include "kernels/attention/flash_attention/backward/explained.hpp"
#include "kernels/attention/flash_attention/backward/reference.hpp"
#include "kernels/attention/flash_attention/run/excerpt.hpp"
#include "kernels/attention/flash_attention/run/explained.hpp"
#include "kernels/attention/flash_attention/shared/reference.hpp"

/// The parts that the lesson's answers are put together from.
namespace tilestep::flash_attention {

/// What 8 bits cost, and whether that is what it must be: quantized/run.cpp.
struct QuantizedErrors {
  std::vector<QuantizedRow> rows;  ///< kQuantizedRows
  int wrong_numbers =
      0;  ///< 8-bit numbers, scales and means of all rows that are not what they should be
  int wrong_scores = 0;  ///< further off than half a step of each number explains
  int wrong_rows = 0;    ///< whose O or log-sum-exp is not what the numbers come to
};

/// What a run has gathered.
struct Run {
  Params params;    ///< as asked for
  Excerpt excerpt;  ///< what of it ran
  Chosen chosen;
  /// Of the kernel with nothing left out; of a backward pass the forward pass before it.
  Outcome sound;
  Reference exact;            ///< and what it should be
  QuantizedErrors quantized;  ///< of fp8 and int8
  BackwardOutcome backward;  ///< of a backward pass with nothing left out, but for its forward pass
  BackwardReference exact_backward;
  Trace trace;  ///< of what was asked for: of the broken kernel, where one is
};

/// Runs the explained kernels: run.cpp.
Run run_of(const Params& params, simt::Device& device, lab::Progress& progress);

/// The trace of a run whose kernels are through; `shown` is the outcome that is drawn.
Trace trace_of(const Run& run, const Outcome& shown, bool emulated);

/// What is the same in the traces of all passes: the plan, visits, blocks, bytes and lines of `shown`.
Trace frame_of(const Run& run, const Outcome& shown, bool emulated);

/// A backward pass, its forward pass before it, of a run that has its excerpt and what is chosen: backward/run.cpp.
void run_backward(Run& run, const Inputs& inputs, simt::Device& device, lab::Progress& progress);

/// The report of a run: summary, tables, measurements, checks, trace.
lab::Report report_of(const Run& run);
/// Bytes that the trace's kernels asked for, and memory of all tensors, in bytes.
std::int64_t asked_by(const Trace& trace);
std::int64_t held_by(const Trace& trace);
/// Tiles of scores of the chosen head that were computed.
int visited(const Trace& trace);
/// "384 B", "16.4 KB".
std::string bytes_text(std::int64_t bytes);
/// What a backward pass says: backward/report.cpp.
std::string backward_summary(const Trace& trace);
void add_backward_measurements(lab::Report& report, const Run& run);
void add_backward_checks(lab::Report& report, const Run& run);
/// The tables of its trace, in the places of the forward pass's: `steps`, `visits`, `answer`.
lab::Table backward_step_table(const Trace& trace);
lab::Table backward_visit_table(const Trace& trace);
lab::Table backward_answer_table(const Trace& trace);
/// Weights made again against weights stored, by formula, for lengths up to the longest.
lab::Table passes_table(const Params& params);

/// Runs the problem of `run` in BF16, and in 8 bits with and without K's mean. O and what it should be of the run's
/// own format are there already.
QuantizedErrors quantized_errors(simt::Device& device, const Run& run, const Inputs& inputs,
                                 lab::Progress& progress);
/// Table and checks of it: quantized/report.cpp.
void add_quantized(lab::Report& report, const Run& run);

/// The rungs with what changed in each.
lab::Table ladder_table();
/// What lengths come to for the problem's heads: scores, memory held and bytes asked, with scores in memory (naive) and
/// without (flash-2), by formula.
lab::Table lengths_table(const Params& params);

}  // namespace tilestep::flash_attention
