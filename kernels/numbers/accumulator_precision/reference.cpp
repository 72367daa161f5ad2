#include "kernels/numbers/accumulator_precision/reference.hpp"

#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

namespace tilestep::accumulator_precision {
namespace {

__extension__ using Fixed = __int128;  // in units of 2^-60
constexpr int kFractionBits = 60;
constexpr int kMaxExponent = 66;

Fixed to_fixed(double value) {
  int exponent = 0;
  const double half = std::frexp(value, &exponent);  // value = half · 2^exponent
  const auto whole = static_cast<std::int64_t>(std::ldexp(half, 53));
  assert(exponent <= kMaxExponent);
  const int shift = exponent - 53 + kFractionBits;
  if (shift >= 0) return static_cast<Fixed>(whole) * (static_cast<Fixed>(1) << shift);
  assert(shift > -64 && whole % (std::int64_t{1} << (shift < -62 ? 62 : -shift)) == 0);
  return whole / (std::int64_t{1} << -shift);
}

/// The nearest double.
double to_double(Fixed value) {
  return std::ldexp(static_cast<double>(value), -kFractionBits);
}

/// Position of the highest 1.
int highest_bit(Fixed magnitude) {
  const auto high = static_cast<std::uint64_t>(magnitude >> 64);
  const auto low = static_cast<std::uint64_t>(magnitude);
  return high != 0 ? 127 - std::countl_zero(high) : 63 - std::countl_zero(low);
}

double round_fixed(numeric::FloatSpec format, Fixed exact, Rounding rounding,
                   std::uint32_t random) {
  if (exact == 0) return 0;
  const bool negative = exact < 0;
  const Fixed magnitude = negative ? -exact : exact;
  const int exponent = highest_bit(magnitude) - kFractionBits;
  const int normal = exponent < format.min_exponent() ? format.min_exponent() : exponent;
  const int step_bits = normal - format.mantissa_bits + kFractionBits;
  Fixed result = magnitude;
  if (step_bits > 0) {
    const Fixed step = static_cast<Fixed>(1) << step_bits;
    const Fixed rest = magnitude % step;
    bool up = false;
    if (rounding == Rounding::nearest) {
      const bool odd = magnitude / step % 2 != 0;
      up = 2 * rest > step || (2 * rest == step && odd);
    } else if (rounding == Rounding::stochastic) {
      up = (rest * (static_cast<Fixed>(1) << 32)) / step > static_cast<Fixed>(random);
    }
    result = magnitude - rest + (up ? step : 0);
  }
  double value = to_double(result);  // exact: few bits are left
  // Wide formats go past all that fits here.
  if (format.bias() < kMaxExponent && value > numeric::max_finite(format)) {
    const bool saturates = overflow_of(format) == numeric::Overflow::saturate;
    value = saturates || rounding == Rounding::truncate ? numeric::max_finite(format)
                                                        : std::numeric_limits<double>::infinity();
  }
  return negative ? -value : value;
}

/// Addition in the method's format. Once a number is infinite or NaN it stays so.
class Arithmetic {
 public:
  Arithmetic(const SumMethod& method, int sum) : method_(method), sum_(sum) {}

  double round(double value, int term, int place) const {
    return std::isfinite(value) ? rounded(to_fixed(value), term, place) : value;
  }
  double plus(double a, double b, int term, int place) const {
    if (!std::isfinite(a) || !std::isfinite(b)) return a + b;
    return rounded(to_fixed(a) + to_fixed(b), term, place);
  }
  /// FP32 to nearest, whatever the method's format.
  static double plus_fp32(double a, double b) {
    if (!std::isfinite(a) || !std::isfinite(b)) return a + b;
    return round_fixed(numeric::kFp32, to_fixed(a) + to_fixed(b), Rounding::nearest, 0);
  }

 private:
  double rounded(Fixed exact, int term, int place) const {
    return round_fixed(method_.format, exact, method_.rounding,
                       random_bits(method_.seed, sum_, term, place));
  }

  const SumMethod& method_;
  int sum_;
};

using Terms = std::span<const float>;

double term_at(Terms terms, std::size_t i) {
  return static_cast<double>(terms[i]);
}

/// Pairwise by recursion: 2^level terms from `first` on.
double tree(const Arithmetic& arithmetic, Terms terms, std::size_t first, int level) {
  const std::size_t count = std::size_t{1} << level;
  const int last = static_cast<int>(first + count) - 1;
  if (level == 0) return arithmetic.round(term_at(terms, first), last, 0);
  const double left = tree(arithmetic, terms, first, level - 1);
  const double right = tree(arithmetic, terms, first + count / 2, level - 1);
  return arithmetic.plus(left, right, last, level);
}

/// The answer for the first `count` terms: trees as large as possible, added from the last one on.
double pairwise(const Arithmetic& arithmetic, Terms terms, std::size_t count) {
  double answer = 0;
  bool first = true;
  std::size_t end = count;
  for (int level = 0; level < kLevels; ++level) {
    const std::size_t size = std::size_t{1} << level;
    if ((count & size) == 0) continue;
    end -= size;
    const double part = tree(arithmetic, terms, end, level);
    answer = first
                 ? part
                 : arithmetic.plus(answer, part, static_cast<int>(count) - 1, kAnswerPlace + level);
    first = false;
  }
  return answer;
}

}  // namespace

double reference_round(numeric::FloatSpec format, double value, Rounding rounding,
                       std::uint32_t random) {
  return round_fixed(format, to_fixed(value), rounding, random);
}

std::vector<double> exact_prefixes(Terms terms) {
  std::vector<double> sums;
  sums.reserve(terms.size());
  Fixed sum = 0;
  for (const float term : terms) {
    sum += to_fixed(static_cast<double>(term));
    sums.push_back(to_double(sum));
  }
  return sums;
}

std::vector<float> reference_sums(const SumMethod& method, int sum, Terms terms, bool last_only) {
  const Arithmetic arithmetic(method, sum);
  std::vector<float> answers;
  double s = 0;
  double correction = 0;  // kahan
  double total = 0;       // promoted
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const int term = static_cast<int>(i);
    double answer = 0;
    if (method.method == Method::pairwise) {
      if (last_only && i + 1 < terms.size()) continue;
      answer = pairwise(arithmetic, terms, i + 1);
    } else if (method.method == Method::kahan) {
      const double y = arithmetic.plus(term_at(terms, i), -correction, term, 0);
      const double next = arithmetic.plus(s, y, term, 1);
      const double gained = arithmetic.plus(next, -s, term, 2);
      correction = arithmetic.plus(gained, -y, term, 3);
      answer = s = next;
    } else {
      answer = s = arithmetic.plus(s, term_at(terms, i), term, 0);
      if (method.method == Method::promoted) {
        if ((term + 1) % method.promote_every == 0) {
          total = Arithmetic::plus_fp32(total, s);
          s = 0;
        }
        answer = Arithmetic::plus_fp32(total, s);
      }
    }
    if (!last_only || i + 1 == terms.size()) answers.push_back(static_cast<float>(answer));
  }
  return answers;
}

}  // namespace tilestep::accumulator_precision
