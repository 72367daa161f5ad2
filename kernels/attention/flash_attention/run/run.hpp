#pragma once

#include "kernels/attention/flash_attention/run/explained.hpp"
#include "kernels/attention/shared/reference.hpp"

/// Building blocks of the lesson's answers.
namespace tilestep::flash_attention {

/// The cost of 8 bits, and whether it is as expected: quantized/run.cpp.
struct QuantizedErrors {
  std::vector<QuantizedRow> rows;  ///< kQuantizedRows
  int wrong_numbers =
      0;  ///< 8-bit numbers, scales and means of all rows that differ from the expected ones
  int wrong_scores = 0;  ///< further off than half a step of each number explains
  int wrong_rows = 0;    ///< whose O or log-sum-exp does not follow from the numbers
};

/// The data gathered by a run.
struct Run {
  Params params;    ///< as requested
  Excerpt excerpt;  ///< the part that ran
  Chosen chosen;
  /// Of the kernel without faults.
  Outcome sound;
  Reference exact;            ///< and its exact values
  QuantizedErrors quantized;  ///< for fp8 and int8
  Trace trace;                ///< of the requested kernel: the broken one, if any
};

/// Runs the explained kernels: run.cpp.
Run run_of(const Params& params, simt::Device& device, lab::Progress& progress);

/// The trace of a run whose kernels have finished; `shown` is the outcome that is drawn.
Trace trace_of(const Run& run, const Outcome& shown, bool emulated);

/// The report of a run: summary, tables, measurements, checks, trace.
lab::Report report_of(const Run& run);
/// Runs the problem of `run` in BF16, and in 8 bits with and without K's mean. O and its exact values in the run's
/// own format exist already.
QuantizedErrors quantized_errors(simt::Device& device, const Run& run, const Inputs& inputs,
                                 lab::Progress& progress);
/// Table and checks of it: quantized/report.cpp.
void add_quantized(lab::Report& report, const Run& run);

/// The cost of each length for the problem's heads: scores, memory held and requested bytes, with scores in memory
/// (naive) and without (flash-2), by formula.
lab::Table lengths_table(const Params& params);

}  // namespace tilestep::flash_attention
