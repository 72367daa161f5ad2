#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/numeric/running_sum.hpp"
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

/// The values of whole groups and super-blocks out of their bytes, with so many weights to a scale. A step is rounded to
/// FP32, as kernels have it; `tensor_scale` is NVFP4's one number for all of W.
std::vector<double> stored_values(Format format, int group_size,
                                  const std::vector<std::uint8_t>& codes,
                                  const std::vector<std::uint8_t>& scales, float tensor_scale = 1);

/// The codes of W in the order of its weights, out of the bytes of Quantized::codes.
std::vector<int> unpacked(Format format, const std::vector<std::uint8_t>& bytes);

/// The number of a row's scale, of Group::row in int8 or fp8_e4m3, out of the bytes of Quantized::scales.
double row_scale(Format format, const std::vector<std::uint8_t>& scales, std::size_t row);

/// An element of W8A8's Y: the sum of two rows' products times their scales, of which `scale` is the product. The bound:
/// of INT8 two roundings in FP32; of E4M3 also what the tensor cores cut off, where each sum of 32 products and the sum before has `unit`
/// for a magnitude of 1: 2^-13 on Hopper, 2^-23 under emulation. In both Y's rounding to BF16.
numeric::Bounded expected_product(Format format, const std::vector<std::uint8_t>& w,
                                  const std::vector<std::uint8_t>& x, double scale, double unit);

}  // namespace tilestep::low_bit
