#pragma once

#include <span>
#include <vector>

#include "kernels/attention/online_softmax/lesson.hpp"
#include "kernels/base/lab/lesson.hpp"
#include "kernels/base/numeric/running_sum.hpp"

/// The answers in double, by another algorithm than the kernel's, and how far the kernel may be
/// off.
namespace tilestep::online_softmax {

/// What a format does to sums.
struct FormatLimits {
  double unit;     ///< unit roundoff
  double tiny;     ///< the largest rounding error among subnormal numbers
  double largest;  ///< from here on a result may round to infinity
};

FormatLimits limits_of(Accumulator accumulator);

/// Softmax over the keys up to and with one tile, and bounds on the kernel's error there.
struct PrefixState {
  double m = 0;  ///< −inf where everything is masked so far
  double l = 0;
  double o = 0;       ///< the chosen component
  double output = 0;  ///< o / l, 0 where l is 0
  double l_bound = 0, o_bound = 0, output_bound = 0;
};

/// One state a tile for one row of scores (`keys`) and one component of the values (`keys`). With
/// `params.skip_rescale` it is what the broken recurrence ought to give.
std::vector<PrefixState> reference_prefixes(const Params& params, std::span<const float> scores,
                                            std::span<const float> values);

/// The final output of each query and component, and its error bound: queries × head_dim.
numeric::AllBounded reference_output(const Params& params, const Inputs& inputs,
                                     lab::Progress& progress);

/// Softmax of one row in double; all zeros where the row is all −inf.
std::vector<double> reference_softmax(std::span<const float> row);

/// How far one of the ladder's weights may be from `exact`, for rows of `columns` whose scores span
/// `span`: relative to the weight.
double ladder_tolerance(int columns, double span);

}  // namespace tilestep::online_softmax
