#pragma once

#include <span>
#include <vector>

#include "kernels/attention/online_softmax/lesson.hpp"
#include "kernels/base/lab/lesson.hpp"
#include "kernels/base/numeric/running_sum.hpp"

/// The results in double, by a different algorithm than the kernel's, and the kernel's error
/// bounds.
namespace tilestep::online_softmax {

double unit_of(Accumulator accumulator);  ///< its unit roundoff

/// exp(score − m), of a key whose tile ends with the maximum m.
numeric::Bounded reference_weight(float score, double m);

/// Softmax over the keys up to and including one tile, and bounds on the kernel's error there.
struct PrefixState {
  double m = 0;  ///< −inf while every key so far is masked
  double l = 0;
  double o = 0;       ///< one component
  double output = 0;  ///< o / l, or 0 if l is 0
  double l_bound = 0, o_bound = 0, output_bound = 0;
};

/// One state per tile for one row of scores (`keys`) and one component of the values (`keys`). With
/// `params.skip_rescale`, the expected result of the broken recurrence.
std::vector<PrefixState> reference_prefixes(const Params& params, std::span<const float> scores,
                                            std::span<const float> values);

/// The final output of each query and component, and its error bound: queries × head_dim.
numeric::AllBounded reference_output(const Params& params, const Inputs& inputs,
                                     lab::Progress& progress);

/// Softmax of one row in double; all zeros if the row is all −inf.
std::vector<double> reference_softmax(std::span<const float> row);

/// The largest allowed relative error of one of the ladder's weights, for rows of `columns` whose
/// scores span `span`.
double ladder_tolerance(int columns, double span);

}  // namespace tilestep::online_softmax
