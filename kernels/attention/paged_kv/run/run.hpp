#pragma once

#include "kernels/attention/kv_cache/explained.hpp"
#include "kernels/attention/kv_cache/reference.hpp"
#include "kernels/attention/paged_kv/lesson.hpp"

/// The parts that the lesson's answers are put together from.
namespace tilestep::paged_kv {

/// The part of a problem that a run explains: fewer requests, a shorter context.
struct Excerpt {
  Params params;    ///< with what runs
  std::string cut;  ///< what of the whole that is; empty: all of it
};
Excerpt excerpt_of(const Params& params);

/// What a run has gathered.
struct Run {
  Params params;    ///< as asked for
  Excerpt excerpt;  ///< what of it ran
  Serving serving;
  Inputs inputs;    ///< with K and V as the model made them
  Outcome sound;    ///< of the kernel with nothing left out
  Reference exact;  ///< and what it should be
  Trace trace;      ///< of what was asked for: of the broken run, where one is
};

/// Runs the engine and the explained kernel.
Run run_of(const Params& params, simt::Device& device, lab::Progress& progress);

/// The report of a run: summary, tables, measurements, checks, trace.
lab::Report report_of(const Run& run);

}  // namespace tilestep::paged_kv
