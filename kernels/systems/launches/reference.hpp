#pragma once

#include <cstdint>
#include <vector>

#include "kernels/systems/launches/kernels.hpp"

namespace tilestep::launches {

inline constexpr int kTokens = 32;  ///< of the vocabulary

/// The numbers of a model: kTokens × width, layers × width; and matrices of all layers in BF16, or a stretch of at least
/// three numbers that is repeated.
struct Weights {
  std::vector<float> table, gains;
  std::vector<std::uint16_t> gate, up, down;
};
Weights make_weights(const StepShape& shape, std::int64_t seed);

/// h of a decode step of these tokens, in double and with another order of sums.
std::vector<double> reference_step(const StepShape& shape, const Weights& weights,
                                   const std::vector<int>& tokens);
/// How far a kernel's h may be off: FP32 sums by 32 lanes, of up to four times the largest number, layer after layer. 2^-24
/// is FP32's unit roundoff.
double bound_of(const StepShape& shape, double largest);
/// The same for a sum of k products of numbers up to 1.
double product_bound(int k);

/// Y = X · W^T in double.
std::vector<double> reference_product(const ProductShape& shape,
                                      const std::vector<std::uint16_t>& w,
                                      const std::vector<float>& x);

}  // namespace tilestep::launches
