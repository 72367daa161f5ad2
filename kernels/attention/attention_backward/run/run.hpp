#pragma once

#include "kernels/attention/attention_backward/lesson.hpp"
#include "kernels/attention/attention_backward/reference.hpp"
#include "kernels/attention/attention_backward/run/explained.hpp"
#include "kernels/attention/shared/excerpt.hpp"

/// Building blocks of the lesson's answers.
namespace tilestep::attention_backward {

/// The part of a problem that a run explains.
using Excerpt = ExcerptOf<Params>;
Excerpt excerpt_of(const Params& params);

/// The data gathered by a run.
struct Run {
  Params params;    ///< as requested
  Excerpt excerpt;  ///< the part that ran
  Chosen chosen;
  Outcome sound;    ///< of the kernels without faults
  Reference exact;  ///< exact results of their forward pass
  BackwardReference exact_gradients;
  Trace trace;  ///< of the requested kernels: the broken ones, if any
};

/// Runs the explained kernels: run.cpp.
Run run_of(const Params& params, simt::Device& device, lab::Progress& progress);

/// The report of a run: summary, tables, measurements, checks, trace.
lab::Report report_of(const Run& run);

}  // namespace tilestep::attention_backward
