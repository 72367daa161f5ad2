#include "kernels/systems/triage/run/reference.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/float_format.hpp"

namespace tilestep::triage {
namespace {

std::size_t product_of(int a, int b, int c = 1) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c);
}

Repeating<std::uint16_t> scaled(std::mt19937& generator, std::size_t count, double scale) {
  Repeating<std::uint16_t> made;
  for (const float one : lab::uniform_floats(generator, count)) {
    made.period.push_back(numeric::Bf16::bits(static_cast<float>(scale) * one));
  }
  return made;
}

double value(std::uint16_t bits) {
  return static_cast<double>(numeric::Bf16::value(bits));
}
double rounded(double x) {
  return value(numeric::Bf16::bits(static_cast<float>(x)));
}

/// W x from the last number of a row to its first: another order than the kernels'.
std::vector<double> times(const Repeating<std::uint16_t>& w, std::size_t first, int rows,
                          const std::vector<double>& x) {
  std::vector<double> y(static_cast<std::size_t>(rows));
  const std::size_t size = w.period.size();
  for (std::size_t row = 0; row < y.size(); ++row) {
    std::size_t at = (first + (row + 1) * x.size() - 1) % size;
    for (std::size_t i = x.size(); i-- > 0;) {
      y[row] += value(w.period[at]) * x[i];
      at = at == 0 ? size - 1 : at - 1;
    }
  }
  return y;
}

std::vector<double> normed(const std::vector<double>& h, const float* gains) {
  double squares = 0;
  for (const double one : h) squares += one * one;
  const double root = std::sqrt(squares / static_cast<double>(h.size()) + 1e-5);
  std::vector<double> n(h.size());
  for (std::size_t i = 0; i < h.size(); ++i) n[i] = h[i] / root * static_cast<double>(gains[i]);
  return n;
}

/// Attention of one row in a layer, over scores that are all kept.
std::vector<double> attended(const Shape& shape, const Numbers& numbers, int layer, int row,
                             const std::vector<double>& qkv) {
  const auto dim = static_cast<std::size_t>(shape.dim);
  const auto context = static_cast<std::size_t>(shape.context);
  const auto cached = static_cast<std::size_t>(shape.cached());
  const auto queries = static_cast<std::size_t>(shape.queries());
  const std::size_t base =
      (static_cast<std::size_t>(layer) * kMostRows + static_cast<std::size_t>(row)) * context *
      cached;
  std::vector<double> all;
  for (int head = 0; head < shape.heads; ++head) {
    const auto of_query = static_cast<std::size_t>(head) * dim;
    const auto of_cache = static_cast<std::size_t>(head / kGroup) * dim;
    const auto number = [&](const Repeating<std::uint16_t>& cache, std::size_t own, std::size_t key,
                            std::size_t i) {
      return key + 1 == context ? rounded(qkv[own + of_cache + i])
                                : value(cache[base + key * cached + of_cache + i]);
    };
    std::vector<double> scores(context);
    for (std::size_t key = 0; key < context; ++key) {
      for (std::size_t i = 0; i < dim; ++i) {
        scores[key] += qkv[of_query + i] * number(numbers.keys, queries, key, i);
      }
      scores[key] /= std::sqrt(static_cast<double>(dim));
    }
    const double most = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& one : scores) sum += one = std::exp(one - most);
    std::vector<double> result(dim);
    for (std::size_t key = 0; key < context; ++key) {
      for (std::size_t i = 0; i < dim; ++i) {
        result[i] += scores[key] / sum * number(numbers.values, queries + cached, key, i);
      }
    }
    all.insert(all.end(), result.begin(), result.end());
  }
  return all;
}

}  // namespace

Numbers make_numbers(const Shape& shape, std::int64_t seed, std::size_t period) {
  std::mt19937 generator = lab::generator_of(seed);
  const auto size = [&](std::size_t count) { return std::min(count, period); };
  const auto wide = [](int k) { return std::sqrt(3.0 / k); };
  Numbers made;
  made.table = lab::normal_floats(generator, product_of(kVocabulary, shape.width));
  for (const float one : lab::uniform_floats(generator, product_of(shape.layers, 2, shape.width))) {
    made.gains.push_back(1.0f + 0.25f * one);
  }
  made.router = lab::normal_floats(generator, product_of(shape.layers, kExperts, shape.width));
  made.qkv = scaled(generator, size(product_of(shape.layers, shape.qkv(), shape.width)),
                    wide(shape.width));
  made.out = scaled(generator, size(product_of(shape.layers, shape.width, shape.queries())),
                    wide(shape.queries()));
  made.gate = scaled(generator, size(product_of(shape.layers, shape.inner, shape.width)),
                     wide(shape.width));
  made.up = scaled(generator, size(product_of(shape.layers, shape.inner, shape.width)),
                   wide(shape.width));
  made.down = scaled(generator, size(product_of(shape.layers, shape.width, shape.inner)),
                     wide(shape.inner));
  const std::size_t cache = product_of(shape.layers * kMostRows, shape.context, shape.cached());
  made.keys = scaled(generator, size(cache), std::sqrt(3.0));
  made.values = scaled(generator, size(cache), std::sqrt(3.0));
  made.head.period = lab::random_bytes(size(product_of(shape.vocabulary, shape.width)), seed + 1);
  for (unsigned char& one : made.head.period) one = one == 0x80 ? 0x81 : one;  // as quantizers do
  for (int row = 0; row < shape.vocabulary; ++row) {
    made.scales.push_back(std::ldexp(1.0f, -12 - static_cast<int>(generator() % 3)));
  }
  return made;
}

ReferenceRow reference_row(const Shape& shape, const Numbers& numbers, int row, int token) {
  const auto width = static_cast<std::size_t>(shape.width);
  std::vector<double> h(width);
  for (std::size_t i = 0; i < width; ++i) {
    h[i] = static_cast<double>(numbers.table[static_cast<std::size_t>(token) * width + i]);
  }
  const auto add = [&](const std::vector<double>& d) {
    for (std::size_t i = 0; i < width; ++i) h[i] += d[i];
  };
  for (int layer = 0; layer < shape.layers; ++layer) {
    const float* const gains = numbers.gains.data() + product_of(layer, 2, shape.width);
    const std::vector<double> qkv = times(numbers.qkv, product_of(layer, shape.qkv(), shape.width),
                                          shape.qkv(), normed(h, gains));
    add(times(numbers.out, product_of(layer, shape.width, shape.queries()), shape.width,
              attended(shape, numbers, layer, row, qkv)));
    const std::vector<double> n = normed(h, gains + width);
    const std::size_t first = product_of(layer, shape.inner, shape.width);
    std::vector<double> a = times(numbers.gate, first, shape.inner, n);
    const std::vector<double> up = times(numbers.up, first, shape.inner, n);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = a[i] / (1 + std::exp(-a[i])) * up[i];
    add(times(numbers.down, first, shape.width, a));
  }
  ReferenceRow made{h, std::vector<double>(static_cast<std::size_t>(shape.vocabulary))};
  for (std::size_t i = 0; i < made.logits.size(); ++i) {
    double sum = 0;
    for (std::size_t j = width; j-- > 0;) {
      sum += static_cast<signed char>(numbers.head[i * width + j]) * h[j];
    }
    made.logits[i] = sum * static_cast<double>(numbers.scales[i]);
  }
  return made;
}

double bound_of(const Shape& shape, double largest) {
  const double sums = shape.width + shape.queries() + shape.inner;
  return largest * (0x1p-24 * 4 * sums * shape.layers +
                    0x1p-7 * shape.layers / static_cast<double>(shape.context));
}

}  // namespace tilestep::triage
