#pragma once

#include <string>

#include "kernels/attention/decode/kernels.hpp"
#include "kernels/attention/decode/lesson.hpp"
#include "kernels/attention/decode/params.hpp"
#include "kernels/attention/kv_cache/explained.hpp"
#include "kernels/attention/kv_cache/reference.hpp"

/// The parts that the lesson's answers are put together from.
namespace tilestep::decode {

/// How the case's kernel takes it: that for heads, or the one for mla.
Way way_of(simt::Device& device, const Case& of, const Inputs& inputs);

/// Runs the explained kernel with what `of` leaves out. Throws Error as the device does.
Outcome run_explained(simt::Device& device, const Case& of, const Inputs& inputs,
                      const Cache& cache, const paged::Followed& followed);

/// The part of a problem that a run explains: fewer requests, a shorter context, at last the query heads of one K/V
/// head. The formulas are of the whole.
struct Excerpt {
  Params params;    ///< with what runs
  std::string cut;  ///< what of the whole that is; empty: all of it
};
Excerpt excerpt_of(const Params& params);

/// The step of decoding that a run is of: the cache of one request lies behind that of another.
Inputs inputs_of(const Params& params);

/// What a run has gathered.
struct Run {
  Params params;    ///< as asked for
  Excerpt excerpt;  ///< what of it ran
  Inputs inputs;    ///< with K and V as the model made them
  Cache cache;      ///< and as they lie in the cache
  paged::Followed chosen;
  Outcome sound;    ///< of the kernel with nothing left out
  Reference exact;  ///< and what it should be
  Trace trace;      ///< of what was asked for: of the broken run, where one is
};

/// Runs the explained kernels: run.cpp.
Run run_of(const Params& params, simt::Device& device, lab::Progress& progress);

/// The report of a run: summary, tables, measurements, checks, trace.
lab::Report report_of(const Run& run);

}  // namespace tilestep::decode
