#pragma once

#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/lesson.hpp"
#include "kernels/systems/triage/lesson.hpp"
#include "kernels/systems/triage/run/times.hpp"

/// The parts that the lesson's answers are put together from.
namespace tilestep::triage {

/// The size that is run and counted, whatever is timed.
Shape shape_of(const Params& params);

struct Run {
  lab::Closest before,
      after;  ///< h and logits of the case as it is, and after the fixes, against double
  int sampled_wrong = 0;  ///< tokens that are not those of the largest logits
  std::string tried;      ///< "case-1: use-bf16", "mixed 7: use-bf16 + align-rows"
  Trace trace;
};
/// Runs the kernels. Throws Error as the device does.
Run run_of(const Params& params, simt::Device& device, lab::Progress& progress);
lab::Report report_of(const Run& run);

/// The program's plan after the diagnosis' fixes.
Plan fixed_plan(const Params& params);
/// What the diagnosis is worth; times are those of `times`.
Verdict verdict_of(const Params& params, Times& times);

/// Rows of an instrument that looks at a step of `program`; with `times` those that need a clock have it.
std::vector<Row> rows_of(const Probe& probe, int look, Program& program, Times& times,
                         lab::Progress& progress);

}  // namespace tilestep::triage
