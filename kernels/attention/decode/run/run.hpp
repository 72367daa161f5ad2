#pragma once

#include "kernels/attention/decode/lesson.hpp"
#include "kernels/attention/decode/run/excerpt.hpp"
#include "kernels/attention/decode/run/explained.hpp"
#include "kernels/attention/kv_cache/reference.hpp"

/// The parts that the lesson's answers are put together from.
namespace tilestep::decode {

/// What a run has gathered.
struct Run {
  Params params;    ///< as asked for
  Excerpt excerpt;  ///< what of it ran
  Inputs inputs;    ///< with K and V as the model made them
  Cache cache;      ///< and as they lie in the cache
  Chosen chosen;
  Outcome sound;    ///< of the kernel with nothing left out
  Reference exact;  ///< and what it should be
  Trace trace;      ///< of what was asked for: of the broken run, where one is
};

/// Runs the explained kernels: run.cpp.
Run run_of(const Params& params, simt::Device& device, lab::Progress& progress);

/// The report of a run: summary, tables, measurements, checks, trace.
lab::Report report_of(const Run& run);

/// "384 B", "16.4 KB".
std::string bytes_text(double bytes);

}  // namespace tilestep::decode
