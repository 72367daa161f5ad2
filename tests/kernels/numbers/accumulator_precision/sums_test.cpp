#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/numbers/accumulator_precision/kernels.hpp"
#include "kernels/numbers/accumulator_precision/lesson.hpp"
#include "kernels/numbers/accumulator_precision/reference.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/numbers/fraction.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::accumulator_precision;
using boost::multiprecision::cpp_int, boost::multiprecision::cpp_rational;
using namespace tilestep::tests;

namespace {

// ---- the slow reference: exact fractions --------------------------------------------------------

/// `exact` in the format: the largest multiple of the spacing below it, or the next.
double rounded(const SumMethod& method, const cpp_rational& exact, std::uint32_t random) {
  if (exact == 0) return 0;
  const cpp_rational size = abs(exact);
  const numeric::FloatSpec& format = method.format;
  int exponent = format.min_exponent();
  while (size >= fraction(std::ldexp(1.0, exponent + 1))) ++exponent;
  const cpp_rational spacing = fraction(std::ldexp(1.0, exponent - format.mantissa_bits));
  const cpp_rational quotient = size / spacing;
  cpp_int steps = numerator(quotient) / denominator(quotient);
  const cpp_rational rest = quotient - cpp_rational(steps);
  const cpp_rational half(1, 2);
  bool up = false;
  if (method.rounding == Rounding::nearest) up = rest > half || (rest == half && steps % 2 == 1);
  if (method.rounding == Rounding::stochastic) {
    const cpp_rational scaled = rest * cpp_rational(cpp_int(1) << 32);
    up = cpp_int(numerator(scaled) / denominator(scaled)) > random;
  }
  if (up) ++steps;
  const cpp_rational result = cpp_rational(steps) * spacing;
  double value = static_cast<double>(numerator(result)) / static_cast<double>(denominator(result));
  if (value > numeric::max_finite(format)) {
    const bool stays =
        overflow_of(format) == numeric::Overflow::saturate || method.rounding == Rounding::truncate;
    value = stays ? numeric::max_finite(format) : std::numeric_limits<double>::infinity();
  }
  return exact < 0 ? -value : value;
}

/// Plain, promoted and Kahan summation by fractions; numbers stay finite.
double slow_sum(const SumMethod& method, int sum, const std::vector<float>& terms) {
  double s = 0, c = 0, total = 0;
  SumMethod fp32 = method;
  fp32.format = numeric::kFp32;
  fp32.rounding = Rounding::nearest;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const int term = static_cast<int>(i);
    const auto plus = [&](double a, double b, int place) {
      return rounded(method, fraction(a) + fraction(b), random_bits(method.seed, sum, term, place));
    };
    const auto t = static_cast<double>(terms[i]);
    if (method.method == Method::kahan) {
      const double y = plus(t, -c, 0);
      const double next = plus(s, y, 1);
      c = plus(plus(next, -s, 2), -y, 3);
      s = next;
    } else {
      s = plus(s, t, 0);
      if (method.method == Method::promoted && (term + 1) % method.promote_every == 0) {
        total = rounded(fp32, fraction(total) + fraction(s), 0);
        s = 0;
      }
    }
  }
  return method.method == Method::promoted ? rounded(fp32, fraction(total) + fraction(s), 0) : s;
}

/// Pairwise summation by fractions: equal blocks meet as they fill up, the rest from the smallest
/// up.
double slow_pairwise(const SumMethod& method, int sum, const std::vector<float>& terms) {
  const auto round = [&](const cpp_rational& exact, std::size_t term, int place) {
    return rounded(method, exact, random_bits(method.seed, sum, static_cast<int>(term), place));
  };
  std::vector<std::pair<int, double>> blocks;  // level and sum, the largest first
  for (std::size_t i = 0; i < terms.size(); ++i) {
    double carry = round(fraction(static_cast<double>(terms[i])), i, 0);
    int level = 0;
    for (; !blocks.empty() && blocks.back().first == level; ++level) {
      carry = round(fraction(blocks.back().second) + fraction(carry), i, 1 + level);
      blocks.pop_back();
    }
    blocks.emplace_back(level, carry);
  }
  double answer = blocks.back().second;
  for (std::size_t b = blocks.size() - 1; b-- > 0;) {
    answer = round(fraction(answer) + fraction(blocks[b].second), terms.size() - 1,
                   kAnswerPlace + blocks[b].first);
  }
  return answer;
}

// ---- running the kernels ------------------------------------------------------------------------

std::vector<float> on_device(simt::Device& device, const SumMethod& method, int terms, int sums,
                             const std::vector<float>& matrix) {
  const simt::Buffer<float> input(device, matrix);
  simt::Buffer<float> output(device, static_cast<std::size_t>(sums));
  return lab::result_of(device, output, [&] {
    accumulator_precision::kernels_of(device).sums(device, {terms, sums}, method, input.span(),
                                                   output.span());
  });
}

std::vector<float> column_of(const std::vector<float>& matrix, int sums, int sum) {
  std::vector<float> column;
  for (auto i = static_cast<std::size_t>(sum); i < matrix.size();
       i += static_cast<std::size_t>(sums)) {
    column.push_back(matrix[i]);
  }
  return column;
}

std::vector<float> random_matrix(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    const float sign = generator() % 4 == 0 ? -1.0f : 1.0f;
    const float size = std::ldexp(1.0f, static_cast<int>(generator() % 12) - 8);
    values.push_back(sign * size * static_cast<float>(generator() >> 8) * 0x1p-24f);
  }
  return values;
}

}  // namespace

TEST_CASE("every accumulator agrees with exact fractions", "[accumulator_precision]") {
  const auto device = test_device(simt::ThreadOrder::shuffled, 4);
  constexpr int kTerms = kFewShapes ? 40 : 150;
  constexpr int kColumns = 3;
  const auto matrix = random_matrix(kTerms * kColumns, 5);
  for (const Method kind : kMethods) {
    for (const SmallFormat small :
         {SmallFormat::fp8_e4m3, SmallFormat::fp8_e5m2, SmallFormat::fp16, SmallFormat::bf16}) {
      if (kind < Method::promoted && small != SmallFormat::fp8_e4m3) continue;
      for (const Rounding rounding :
           {Rounding::nearest, Rounding::truncate, Rounding::stochastic}) {
        const SumMethod method{kind, format_of(kind, small), rounding, 20, 77};
        const auto sums = on_device(*device, method, kTerms, kColumns, matrix);
        for (int sum = 0; sum < kColumns; ++sum) {
          const auto terms = column_of(matrix, kColumns, sum);
          const float got = sums[sum];
          INFO(name_of(kind) << " " << name_of(small) << " " << name_of(rounding) << " " << sum);
          CHECK(lab::same_number(got, reference_sums(method, sum, terms, true).front()));
          const double slow = kind == Method::pairwise ? slow_pairwise(method, sum, terms)
                                                       : slow_sum(method, sum, terms);
          CHECK(static_cast<double>(got) == slow);
        }
      }
    }
  }
}

TEST_CASE("the integer reference rounds as fractions do", "[accumulator_precision]") {
  std::mt19937 generator(8);
  for (const Method kind : {Method::fp8_e4m3, Method::fp8_e5m2, Method::fp16, Method::bf16,
                            Method::tf32, Method::fp32}) {
    for (const Rounding rounding : {Rounding::nearest, Rounding::truncate, Rounding::stochastic}) {
      const SumMethod method{kind, format_of(kind, SmallFormat::fp16), rounding, 1, 0};
      for (int i = 0; i < (tests::kFewShapes ? 60 : 300); ++i) {
        const double value = std::ldexp(static_cast<double>(static_cast<int>(generator())),
                                        static_cast<int>(generator() % 40) - 50);
        const auto random = static_cast<std::uint32_t>(generator());
        CHECK(reference_round(method.format, value, rounding, random) ==
              rounded(method, fraction(value), random));
      }
    }
  }
}

TEST_CASE("sums overflow as their formats do", "[accumulator_precision]") {
  const auto device = test_device();
  const std::vector<float> terms = {300, 300, 60000, 60000, -60000};
  const auto sum_in = [&](Method kind, Rounding rounding) {
    const SumMethod method{kind, format_of(kind, SmallFormat::fp8_e4m3), rounding, 2, 0};
    const float got = on_device(*device, method, 5, 1, terms).front();
    CHECK(lab::same_number(got, reference_sums(method, 0, terms, true).front()));
    return got;
  };
  CHECK(sum_in(Method::fp8_e4m3, Rounding::nearest) == -448.0f);
  CHECK(std::isinf(sum_in(Method::fp16, Rounding::nearest)));
  CHECK(sum_in(Method::fp16, Rounding::truncate) == 5504.0f);
  CHECK(sum_in(Method::bf16, Rounding::nearest) == 60928.0f);
  sum_in(Method::kahan, Rounding::nearest);
  sum_in(Method::pairwise, Rounding::nearest);
  sum_in(Method::promoted, Rounding::nearest);
}

TEST_CASE("any number of terms, sums and threads", "[accumulator_precision]") {
  for (const simt::ThreadOrder order :
       {simt::ThreadOrder::ascending, simt::ThreadOrder::descending, simt::ThreadOrder::shuffled}) {
    const auto device = test_device(order, 2);
    for (const int terms : {1, 2, 3, 7, 64, 100, 1023}) {
      for (const int sums : {1, 63, 65, 130}) {
        const auto matrix =
            random_matrix(static_cast<std::size_t>(terms) * static_cast<std::size_t>(sums), 3);
        for (const Method kind :
             {Method::fp16, Method::promoted, Method::kahan, Method::pairwise}) {
          const SumMethod method{kind, numeric::kFp16, Rounding::nearest, 16, 0};
          const auto got = on_device(*device, method, terms, sums, matrix);
          for (const int sum : {0, sums / 2, sums - 1}) {
            const auto right =
                reference_sums(method, sum, column_of(matrix, sums, sum), true).front();
            CHECK(lab::same_number(got[sum], right));
          }
        }
      }
    }
  }
}

TEST_CASE("shapes of sums that mean nothing are refused", "[accumulator_precision]") {
  const auto device = test_device();
  const SumMethod method{Method::fp16, numeric::kFp16, Rounding::nearest, 16, 0};
  const auto refused = [&](const SumShape& shape, const SumMethod& with) {
    simt::Buffer<float> nothing(*device, 0);
    return error_of([&] {
      accumulator_precision::kernels_of(*device).sums(*device, shape, with, nothing.span(),
                                                      nothing.span());
    });
  };
  CHECK(contains(refused({0, 1}, method), "terms is 0"));
  CHECK(contains(refused({1, 0}, method), "sums is 0"));
  SumMethod never = method;
  never.promote_every = 0;
  CHECK(contains(refused({1, 1}, never), "promote_every is 0"));
}
