#pragma once

#include "kernels/attention/attention_backward/lesson.hpp"
#include "kernels/attention/attention_backward/reference.hpp"
#include "kernels/attention/attention_backward/run/explained.hpp"
#include "kernels/attention/shared/excerpt.hpp"

/// The parts that the lesson's answers are put together from.
namespace tilestep::attention_backward {

/// The part of a problem that a run explains.
using Excerpt = ExcerptOf<Params>;
Excerpt excerpt_of(const Params& params);

/// What a run has gathered.
struct Run {
  Params params;    ///< as asked for
  Excerpt excerpt;  ///< what of it ran
  Chosen chosen;
  Outcome sound;    ///< of the kernels with nothing left out
  Reference exact;  ///< and what their forward pass should have left
  BackwardReference exact_gradients;
  Trace trace;  ///< of what was asked for: of the broken kernels, where some are
};

/// Runs the explained kernels: run.cpp.
Run run_of(const Params& params, simt::Device& device, lab::Progress& progress);

/// The report of a run: summary, tables, measurements, checks, trace.
lab::Report report_of(const Run& run);

}  // namespace tilestep::attention_backward
