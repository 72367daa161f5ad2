#pragma once

#include "kernels/attention/flash_attention/run/explained.hpp"
#include "kernels/attention/shared/reference.hpp"

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
  /// Of the kernel with nothing left out.
  Outcome sound;
  Reference exact;            ///< and what it should be
  QuantizedErrors quantized;  ///< of fp8 and int8
  Trace trace;                ///< of what was asked for: of the broken kernel, where one is
};

/// Runs the explained kernels: run.cpp.
Run run_of(const Params& params, simt::Device& device, lab::Progress& progress);

/// The trace of a run whose kernels are through; `shown` is the outcome that is drawn.
Trace trace_of(const Run& run, const Outcome& shown, bool emulated);

/// The report of a run: summary, tables, measurements, checks, trace.
lab::Report report_of(const Run& run);
/// Runs the problem of `run` in BF16, and in 8 bits with and without K's mean. O and what it should be of the run's
/// own format are there already.
QuantizedErrors quantized_errors(simt::Device& device, const Run& run, const Inputs& inputs,
                                 lab::Progress& progress);
/// Table and checks of it: quantized/report.cpp.
void add_quantized(lab::Report& report, const Run& run);

/// What lengths come to for the problem's heads: scores, memory held and bytes asked, with scores in memory (naive) and
/// without (flash-2), by formula.
lab::Table lengths_table(const Params& params);

}  // namespace tilestep::flash_attention
