#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/numeric/running_sum.hpp"
#include "kernels/systems/fusion/lesson.hpp"

/// The chain in double, from the rows as they lie in memory, and how far a kernel may be from it.
namespace tilestep::fusion {

/// Numbers as bit patterns of a format.
std::vector<unsigned char> packed(Dtype type, std::span<const float> numbers);
std::vector<float> unpacked(Dtype type, std::span<const unsigned char> bytes);
/// A number rounded to the format.
float rounded_to(Dtype type, float number);
/// Half the spacing of a format's numbers around `magnitude`.
double half_spacing(Dtype type, double magnitude);

/// Rows of normal numbers, as they lie in memory: of each row one number is large, as of trained models' residual
/// streams (Sun et al., "Massive activations in large language models", 2024, arXiv:2402.17762).
struct Inputs {
  std::vector<unsigned char> x, residual, gain;
};
Inputs make_inputs(const RowShape& shape, std::int64_t seed);
inline constexpr float kOutlier = 320;
inline constexpr int kOutlierAt = 5;

/// Rows × width.
struct Reference {
  std::vector<double> sum;     ///< exact: a sum of two numbers rounded once
  numeric::AllBounded normed;  ///< before it is rounded
  std::vector<double> scale;   ///< of each row
};
Reference reference_chain(const RowShape& shape, const Inputs& inputs);
/// The bound on a decoded code × scale against the exact number of a row whose scale is `scale`.
double code_bound(double number, double bound, double scale, Dtype type);
/// E4M3 codes and a scale, decoded.
double decoded(std::uint8_t code, float scale);

/// log Σ exp(logits) − logits[target] of a row.
double reference_loss(std::span<const float> logits, int target);
/// How far the kernel may be: its exponentials by 2 ulp, its sums by their additions.
double loss_bound(std::span<const float> logits, int threads);
/// silu(gate) · value, rounded once, and its bound.
numeric::Bounded reference_swiglu(Dtype type, float gate, float value);

}  // namespace tilestep::fusion
