#include "kernels/numbers/accumulator_precision/bench/hopper.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <optional>

#include "kernels/base/numeric/small_float.hpp"

namespace tilestep::accumulator_precision {
namespace {

/// A number as whole · 2^power, and its exponent for the alignment.
struct Summand {
  std::int64_t whole = 0;
  int power = 0;
  int exponent = 0;
};

Summand decoded(std::uint8_t bits) {
  const numeric::FloatFields f = numeric::fields(numeric::kE4m3, bits);
  const int mantissa_bits = numeric::kE4m3.mantissa_bits;
  const auto whole = static_cast<std::int64_t>(f.mantissa) +
                     (f.exponent == 0 ? 0 : std::int64_t{1} << mantissa_bits);
  const int exponent = std::max(static_cast<int>(f.exponent), 1) - numeric::kE4m3.bias();
  return {f.sign != 0 ? -whole : whole, exponent - mantissa_bits, exponent};
}

const std::array<Summand, 256>& decoded_table() {
  static const std::array<Summand, 256> table = [] {
    std::array<Summand, 256> all;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = decoded(static_cast<std::uint8_t>(i));
    return all;
  }();
  return table;
}

int highest_bit(std::int64_t value) {
  return 63 - std::countl_zero(static_cast<std::uint64_t>(value < 0 ? -value : value));
}

Summand product(const Summand& a, const Summand& b, bool normalized) {
  Summand p{a.whole * b.whole, a.power + b.power, a.exponent + b.exponent};
  if (normalized && p.whole != 0) p.exponent = p.power + highest_bit(p.whole);
  return p;
}

Summand of_float(float value) {
  int exponent = 0;
  const float half = std::frexp(value, &exponent);
  return {static_cast<std::int64_t>(std::ldexp(half, 24)), exponent - 24, exponent - 1};
}

/// `value` in units of 2^unit, the rest cut.
std::int64_t aligned(const Summand& value, int unit, bool toward_zero) {
  const int shift = value.power - unit;
  if (shift >= 0) return value.whole * (std::int64_t{1} << shift);
  const int cut = std::min(-shift, 62);
  if (!toward_zero) return value.whole >> cut;  // of negative numbers: floor (C++20)
  return value.whole / (std::int64_t{1} << cut);
}

/// whole · 2^unit with the leading mantissa_bits + 1 bits kept.
float leading_bits(std::int64_t whole, int unit, int mantissa_bits) {
  if (whole == 0) return 0;
  const int cut = std::max(highest_bit(whole) - mantissa_bits, 0);
  const std::int64_t kept = whole / (std::int64_t{1} << cut);
  return std::ldexp(static_cast<float>(kept), unit + cut);
}

/// The unit that the largest exponent of the nonzero numbers cuts to; nothing if all are 0.
std::optional<int> unit_of(std::span<const Summand> summands, const HopperModel& model) {
  std::optional<int> largest;
  for (const Summand& each : summands) {
    if (each.whole != 0 && (!largest || each.exponent > *largest)) largest = each.exponent;
  }
  return largest ? std::optional(*largest - model.fraction_bits) : std::nullopt;
}

}  // namespace

float hopper_fp8_dot(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b,
                     const HopperModel& model, float start) {
  assert(a.size() == b.size() && model.group >= 1 && model.group <= 64);
  const auto& table = decoded_table();
  const auto group = static_cast<std::size_t>(model.group);
  std::array<Summand, 65> summands;
  float accumulator = start;
  for (std::size_t first = 0; first < a.size(); first += group) {
    const std::size_t count = std::min(group, a.size() - first);
    for (std::size_t i = 0; i < count; ++i) {
      summands[i] = product(table[a[first + i]], table[b[first + i]], model.normalized);
    }
    summands[count] = of_float(accumulator);
    const auto unit = unit_of({summands.data(), count + 1}, model);
    if (!unit) continue;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i <= count; ++i) sum += aligned(summands[i], *unit, model.toward_zero);
    accumulator = leading_bits(sum, *unit, model.mantissa_bits);
  }
  return accumulator;
}

HopperStep hopper_step(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b,
                       const HopperModel& model, float start) {
  assert(a.size() == b.size() && static_cast<int>(a.size()) <= model.group);
  std::vector<Summand> summands = {of_float(start)};
  for (std::size_t i = 0; i < a.size(); ++i) {
    summands.push_back(product(decoded_table()[a[i]], decoded_table()[b[i]], model.normalized));
  }
  HopperStep step{unit_of(summands, model).value_or(0), {}, {}, hopper_fp8_dot(a, b, model, start)};
  for (const Summand& each : summands) {
    const std::int64_t kept = aligned(each, step.unit, model.toward_zero);
    step.exact.push_back(std::ldexp(static_cast<double>(each.whole), each.power));
    step.kept.push_back(std::ldexp(static_cast<double>(kept), step.unit));
  }
  return step;
}

std::vector<HopperModel> hopper_candidates() {
  std::vector<HopperModel> models = {HopperModel{}};
  for (const int fraction_bits : {12, 13, 14, 15}) {
    for (const int group : {16, 32}) {
      for (const bool normalized : {false, true}) {
        for (const bool toward_zero : {true, false}) {
          for (const int mantissa_bits : {fraction_bits, 23}) {
            const HopperModel model{group, fraction_bits, normalized, toward_zero, mantissa_bits};
            if (model != HopperModel{}) models.push_back(model);
          }
        }
      }
    }
  }
  return models;
}

double hopper_error_bound(const HopperModel& model, int k, double absolute_sum) {
  // The largest exponent's power of two is at most the accumulator or a product, either of which is
  // at most what the absolute values add up to; the whole sum stands for all steps.
  const double steps = std::ceil(static_cast<double>(k) / model.group);
  const double cut = (model.group + 1) * std::ldexp(1.0, -model.fraction_bits);
  const double kept = std::ldexp(1.0, -model.mantissa_bits);
  return steps * (cut + kept) * absolute_sum;
}

}  // namespace tilestep::accumulator_precision
