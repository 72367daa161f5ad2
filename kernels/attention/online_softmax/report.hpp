#pragma once

#include <vector>

#include "kernels/attention/online_softmax/lesson.hpp"
#include "kernels/attention/online_softmax/reference.hpp"

/// The parts that the lesson's answers are put together from.
namespace tilestep::online_softmax {

/// What a run has gathered: what the kernels wrote, and the answers in double.
struct Outcome {
  Params params;
  Trace trace;
  std::vector<float> output;          ///< queries × head_dim, by the timed kernel
  std::vector<float> recorded_row;    ///< head_dim: the chosen query, by the recording kernel
  std::vector<PrefixState> expected;  ///< of the algorithm as it ran, rescale skipped or not
  std::vector<PrefixState> exact;     ///< of softmax
  numeric::AllBounded reference;      ///< of the algorithm as it ran
};

/// The report of a run: summary, tables `tiles`, `naive`, `ladder`, measurements, checks, trace.
lab::Report report_of(const Outcome& outcome);

/// The rungs with what each reads and writes, and why it is faster than the one before.
lab::Table ladder_table();

}  // namespace tilestep::online_softmax
