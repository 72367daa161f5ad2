#pragma once

#include <cstdint>
#include <span>
#include <vector>

/// A software model of a Hopper tensor core's FP8 additions.
namespace tilestep::accumulator_precision {

/// One step takes the accumulator and the exact products of `group` neighbours along k, aligns all
/// of them to the largest exponent among them, cuts the bits below 2^(largest − fraction_bits),
/// adds exactly, and keeps the leading bits of the sum as the new accumulator. DeepSeek-V3
/// technical report, section 3.3.2 (about 14 bits); Xie et al., "MMA-Sim: bit-accurate reference
/// model of tensor cores and matrix cores", 2025. The lesson's bench compares the defaults and other
/// values with a GPU (table `hopper_model`).
struct HopperModel {
  int group = 32;
  int fraction_bits = 13;
  /// A product of significands is in [1, 4). Whether alignment uses the exponent of the normalized
  /// product, or just the sum of the factors' exponents.
  bool normalized = false;
  bool toward_zero = true;  ///< how negative numbers are cut; otherwise toward −infinity
  int mantissa_bits = 13;   ///< kept by the accumulator, cut toward zero

  bool operator==(const HopperModel&) const = default;
};

/// Σ a[i]·b[i] of E4M3 bits (no NaN), as FP32. `start` is the accumulator's initial value.
float hopper_fp8_dot(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b,
                     const HopperModel& model = {}, float start = 0);

/// One step of a dot product in detail: the accumulator first, then the products.
struct HopperStep {
  int unit = 0;  ///< bits below 2^unit are cut
  std::vector<double> exact, kept;
  float after = 0;  ///< the accumulator afterwards
};
HopperStep hopper_step(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b,
                       const HopperModel& model, float start);

/// The models that the bench compares with the hardware; the first is the default.
std::vector<HopperModel> hopper_candidates();

/// The largest error of a dot product by the model, for products whose absolute values add up to
/// `absolute_sum`, over `k` products: each step cuts `group` + 1 numbers and the result, each by
/// less than a unit of at most 2^-fraction_bits (2^-mantissa_bits) of what has been added so far.
double hopper_error_bound(const HopperModel& model, int k, double absolute_sum);

}  // namespace tilestep::accumulator_precision
