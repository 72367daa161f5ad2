#pragma once

#include <vector>

#include "kernels/attention/positions/lesson.hpp"
#include "kernels/attention/positions/reference.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/lesson.hpp"

/// The parts that the lesson's answers are put together from.
namespace tilestep::positions {

/// What launches left: of all tokens.
struct Results {
  Words q, k, v;  ///< tokens × dim; keys and values as they lie in the cache, token by token
  std::vector<float> scores;
};

/// The results of a run.
struct Run {
  Params params;
  Inputs inputs;
  std::vector<int> positions;  ///< where the tokens stand
  Results together, apart;     ///< without a mistake
  Results at_start;            ///< together, with the first token at position 0
  Trace trace;
};
/// Runs the kernels. Throws Error as the device does.
Run run_of(const Params& params, simt::Device& device, lab::Progress& progress);
/// The report of a run: summary, tables, measurements, checks, trace.
lab::Report report_of(const Run& run);

/// Numbers of queries and keys, or values, against what they should be; `wrong` counts those that are not.
struct Compared {
  lab::Closest queries, keys, scores;
  int values_wrong = 0, wrong = 0;
};
Compared compared(const Run& run, const Results& results, const std::vector<int>& positions,
                  bool apart);

/// The launches that the fused one replaces, in order.
inline constexpr Stage kApart[] = {Stage::norm_queries, Stage::norm_keys, Stage::rotate,
                                   Stage::store};

}  // namespace tilestep::positions
