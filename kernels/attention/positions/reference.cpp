#include "kernels/attention/positions/reference.hpp"

#include <cmath>
#include <numbers>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/float_format.hpp"
#include "kernels/base/numeric/small_float.hpp"

// Angles by the trigonometric functions of double, from the fraction of a turn in long double: no whole numbers.

namespace tilestep::positions {
namespace {

double half_spacing(double magnitude) {
  return numeric::ulp(numeric::kBf16, magnitude) / 2;
}

/// Bounds on FP32 arithmetic: of the norm, relative, with its sum over up to 16 squares of a thread and 4 rounds; of an
/// angle's sine and cosine, which the GPU gives to 2^-21 (CUDA C++ Programming Guide, "Intrinsic Functions").
constexpr double kOfNorm = 0x1p-19, kOfTurn = 0x1p-20;

}  // namespace

std::vector<float> values_of(std::span<const std::uint16_t> words) {
  std::vector<float> values;
  for (const std::uint16_t word : words) values.push_back(numeric::Bf16::value(word));
  return values;
}

Inputs make_inputs(int dim, Pairs pairs, std::int64_t seed) {
  std::mt19937 generator = lab::generator_of(seed);
  const auto count = static_cast<std::size_t>(dim);
  std::vector<float> q(count), k(count), v = lab::normal_floats(generator, count);
  Inputs inputs{.q = {}, .k = {}, .v = {}, .q_gain = Words(count), .k_gain = Words(count)};
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * lab::uniform(generator);
  };
  for (int pair = 0; pair < dim / 2; ++pair) {
    const double angle = uniform(-std::numbers::pi, std::numbers::pi), apart = uniform(-0.6, 0.6);
    const double of_q = uniform(0.7, 1.3), of_k = uniform(0.7, 1.3);
    for (int which = 0; which < 2; ++which) {
      const auto at = static_cast<std::size_t>(number_of(pairs, dim, pair, which));
      const auto side = [which](double a) { return which == 0 ? std::cos(a) : std::sin(a); };
      q[at] = static_cast<float>(of_q * side(angle));
      k[at] = static_cast<float>(of_k * side(angle + apart));
      for (Words* gain : {&inputs.q_gain, &inputs.k_gain})
        (*gain)[at] = numeric::Bf16::bits(static_cast<float>(uniform(0.75, 1)));
    }
  }
  for (const auto& [from, to] : {std::pair{&q, &inputs.q}, {&k, &inputs.k}, {&v, &inputs.v}}) {
    for (const float one : *from) to->push_back(numeric::Bf16::bits(one));
  }
  return inputs;
}

numeric::AllBounded reference_head(std::span<const std::uint16_t> words,
                                   std::span<const std::uint16_t> gain, const Turning& turning,
                                   Pairs pairs, int position, bool apart) {
  const std::vector<float> x = values_of(words), g = values_of(gain);
  const int dim = turning.dim;
  double squares = 0;
  for (const float one : x) squares += static_cast<double>(one) * static_cast<double>(one);
  const double norm = std::sqrt(squares / dim + static_cast<double>(kEpsilon));
  const auto normed = [&](int number) {
    const auto at = static_cast<std::size_t>(number);
    return static_cast<double>(x[at]) * static_cast<double>(g[at]) / norm;
  };
  const std::vector<double> turns = turns_of(turning);
  const auto size = static_cast<double>(size_of(turning));
  numeric::AllBounded all;
  all.value.resize(x.size());
  all.bound.resize(x.size());
  for (int pair = 0; pair < dim / 2; ++pair) {
    const long double turn =
        static_cast<long double>(position) * turns[static_cast<std::size_t>(pair)];
    const auto angle =
        static_cast<double>((turn - std::floor(turn)) * 2 * std::numbers::pi_v<long double>);
    const int first = number_of(pairs, dim, pair, 0), second = number_of(pairs, dim, pair, 1);
    const double a = normed(first), b = normed(second);
    const double both = std::abs(a) + std::abs(b);
    double bound = size * both * (kOfNorm + kOfTurn);
    if (apart) bound += size * 1.01 * (half_spacing(std::abs(a)) + half_spacing(std::abs(b)));
    const auto put = [&](int number, double value) {
      const auto at = static_cast<std::size_t>(number);
      all.value[at] = value;
      all.bound[at] = bound + half_spacing(std::abs(value) + bound);
    };
    put(first, size * (a * std::cos(angle) - b * std::sin(angle)));
    put(second, size * (a * std::sin(angle) + b * std::cos(angle)));
  }
  return all;
}

numeric::Bounded reference_score(const numeric::AllBounded& q, const numeric::AllBounded& k,
                                 double bias) {
  double sum = 0, bound = 0;
  for (std::size_t i = 0; i < q.value.size(); ++i) {
    sum += q.value[i] * k.value[i];
    bound += std::abs(q.value[i]) * k.bound[i] + std::abs(k.value[i]) * q.bound[i] +
             q.bound[i] * k.bound[i];
  }
  const double scale = 1 / std::sqrt(static_cast<double>(q.value.size()));
  return {scale * sum + bias, scale * bound * (1 + 0x1p-12) + std::abs(bias) * 0x1p-20 + 0x1p-18};
}

}  // namespace tilestep::positions
