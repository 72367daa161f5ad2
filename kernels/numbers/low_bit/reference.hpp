#pragma once

#include <cstdint>
#include <vector>

#include "kernels/numbers/low_bit/lesson.hpp"

/// What the kernels should write, in double and by another way: each weight looks at every code there is and takes the
/// nearest; bytes are taken apart one by one.
namespace tilestep::low_bit {

/// A group's scale and what it follows from.
struct ExpectedScale {
  double wanted = 0, step = 0, offset = 0;
  int zero = 0;
};

/// The scales of all groups of W [rows × columns].
std::vector<ExpectedScale> expected_scales(Format format, Group group, const Matrix& matrix,
                                           const std::vector<double>& weights);

/// By how much the rounding of weight / scale in FP32 can move a weight. 0: the quotient with a scale of few bits, FP16
/// or a power of two, is never rounded across the middle between two codes.
double fp32_rounding(Format format, const ExpectedScale& scale, double weight);

/// The code whose value is nearest to `weight`, the even one of a tie; two where FP32 cannot tell which is nearer.
std::vector<int> nearest_codes(Format format, const ExpectedScale& scale, double weight);

/// The value of a code.
double value_of(Format format, const ExpectedScale& scale, int code);

/// The codes of W in the order of its weights, out of the bytes of Quantized::codes.
std::vector<int> unpacked(Format format, const std::vector<std::uint8_t>& bytes);

}  // namespace tilestep::low_bit
