#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/base/lab/names.hpp"

/// \file
/// Ways to tell attention where a token stands, as the rates at which pairs turn.
namespace tilestep::positions {

enum class Method {
  rope,    ///< Su et al., "RoFormer", 2021 (arXiv:2104.09864)
  linear,  ///< positions are divided: Chen et al., "Position interpolation", 2023 (arXiv:2306.15595)
  ntk,  ///< the base grows, so that the fastest pair keeps its rate and the slowest is divided by the scale
  yarn,  ///< Peng et al., "YaRN", 2023 (arXiv:2309.00071)
  nope,  ///< nothing turns: Kazemnejad et al., 2023 (arXiv:2305.19466)
  alibi  ///< nothing turns; a score loses with distance: Press et al., 2021 (arXiv:2108.12409)
};
constexpr auto names_of(Method) {
  return std::to_array<std::string_view>({"rope", "linear", "ntk", "yarn", "nope", "alibi"});
}
constexpr bool turns(Method method) {
  return method < Method::nope;
}
/// Whether a method stretches what a model was trained on.
constexpr bool stretches(Method method) {
  return method > Method::rope && turns(method);
}

/// What the rates follow from.
struct Turning {
  Method method = Method::rope;
  double base = 10000;
  double scale = 4;           ///< of the methods that stretch
  int trained_length = 2048;  ///< tokens
  int dim = 16;               ///< numbers of a head

  int pairs() const { return dim / 2; }
};

/// YaRN's ramp: pairs with at most so many turns within the trained length are divided by the scale, and those with at
/// least so many keep their rate.
inline constexpr double kFewTurns = 1, kManyTurns = 32;
/// ALiBi's slope: of the flattest of eight heads.
inline constexpr float kSlope = 0x1p-8f;

/// Turns per token of each pair, the fastest first; of a token at position p pair i has made p · turns[i].
std::vector<double> turns_of(const Turning& turning);
/// The share of the rate that a pair keeps under YaRN, 0 … 1: the rest is divided by the scale.
double kept_by_yarn(const Turning& turning, double turns_per_token);
/// What queries and keys are multiplied by as they turn: YaRN's temperature, otherwise 1.
float size_of(const Turning& turning);
/// Turns per token in units of 2^-64: a product with a position, modulo 2^64, is the part of a turn that is left.
std::vector<std::uint64_t> rates_of(const Turning& turning);

}  // namespace tilestep::positions
