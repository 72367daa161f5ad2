#pragma once

#include <vector>

#include "kernels/attention/sparse_attention/lesson.hpp"
#include "kernels/attention/sparse_attention/reference.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/lesson.hpp"

/// The parts that the lesson's answers are put together from.
namespace tilestep::sparse_attention {

/// What a masked launch left.
struct Masked {
  std::vector<int> pairs, kinds, visited;
  std::vector<float> o, lse;
  std::vector<float> scores;  ///< length × length, of the pairs of visited tiles; NaN elsewhere
};
/// What an indexed one left.
struct Indexed {
  std::vector<int> chosen;  ///< length × top_k
  std::vector<float> o;     ///< length × kValue
  std::vector<float> index;
  std::vector<int> passed, best, rows;
  std::vector<float> scores, dense_scores;  ///< length, of the last query's rows; −∞: not read
};

/// The results of a run.
struct Run {
  Params params;
  Inputs inputs;
  Masked masked;    ///< as the knobs have it; of dsa: causal
  Masked sound;     ///< with a block mask of all pairs
  Indexed indexed;  ///< without a mistake
  Trace trace;
  int wrong_rules = 0;  ///< pairs whose rule is not the method's; not for `own`
  int wrong_tiles = 0;  ///< tiles of `sound` that are not what their pairs are
};
/// Runs the kernels. Throws Error as the device does.
Run run_of(const Params& params, simt::Device& device, lab::Progress& progress);
/// The report of a run: summary, tables, measurements, checks, trace.
lab::Report report_of(const Run& run);

/// O and log-sum-exps of a masked launch against double.
struct Compared {
  lab::Closest o, lse;
  int wrong = 0;
};
Compared compared(const Run& run, const Masked& masked);
/// O of all queries against attention over what a full sort of exact scores chooses; `wrong_choices` counts places.
struct ComparedIndex {
  lab::Closest o, scores;
  int wrong = 0, wrong_choices = 0;
};
ComparedIndex compared(const Run& run, const Indexed& indexed);

}  // namespace tilestep::sparse_attention
