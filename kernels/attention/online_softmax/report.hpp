#pragma once

#include <vector>

#include "kernels/attention/online_softmax/reference.hpp"

/// The building blocks of the lesson's report.
namespace tilestep::online_softmax {

/// A run's data: the kernels' output, and the reference in double.
struct Outcome {
  Params params;
  Trace trace;
  std::vector<float> output;          ///< queries × head_dim, by the timed kernel
  std::vector<float> recorded;        ///< the same by the recording kernel: the chosen query alone
  std::vector<PrefixState> expected;  ///< by the algorithm as it ran, with or without the rescale
  numeric::AllBounded reference;      ///< the same, of `output`
};

/// The report of a run: summary, tables `tiles`, `naive`, `ladder`, measurements, checks, trace.
lab::Report report_of(const Outcome& outcome);

/// The rungs with their reads and writes, and why each is faster than the one before.
lab::Table ladder_table();

}  // namespace tilestep::online_softmax
