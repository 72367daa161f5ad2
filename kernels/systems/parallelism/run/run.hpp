#pragma once

#include "kernels/base/lab/lesson.hpp"
#include "kernels/systems/parallelism/lesson.hpp"
#include "kernels/systems/parallelism/run/cuts.hpp"
#include "kernels/systems/parallelism/run/message.hpp"

/// The parts that the lesson's answers are put together from.
namespace tilestep::parallelism {

struct Run {
  Params params;
  Message timed, explained;  ///< without a mistake
  CutRun cut;
  CutPlan plan;
  Trace trace;
};
/// Runs the kernels. Throws Error as the device does.
Run run_of(const Params& params, simt::Device& device, lab::Progress& progress);
/// The report of a run: summary, tables, measurements, checks, trace.
lab::Report report_of(const Run& run);

}  // namespace tilestep::parallelism
