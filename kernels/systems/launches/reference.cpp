#include "kernels/systems/launches/reference.hpp"

#include <cmath>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/float_format.hpp"

namespace tilestep::launches {
namespace {

std::vector<std::uint16_t> scaled_bf16(std::mt19937& generator, std::size_t count, float scale) {
  std::vector<std::uint16_t> bits;
  bits.reserve(count);
  for (const float one : lab::uniform_floats(generator, count)) {
    bits.push_back(numeric::Bf16::bits(scale * one));
  }
  return bits;
}

std::size_t product_of(int a, int b, int c = 1) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c);
}

/// y = W x, where W begins at number `first` of an array that repeats: even numbers are summed first, then odd ones.
std::vector<double> times(const std::vector<std::uint16_t>& w, std::size_t first, int rows,
                          const std::vector<double>& x) {
  std::vector<double> y(static_cast<std::size_t>(rows));
  for (std::size_t row = 0; row < y.size(); ++row) {
    for (const std::size_t begin : {0, 1}) {
      std::size_t at = (first + row * x.size() + begin) % w.size();
      for (std::size_t i = begin; i < x.size(); i += 2) {
        y[row] += static_cast<double>(numeric::Bf16::value(w[at])) * x[i];
        at += 2;
        if (at >= w.size()) at -= w.size();
      }
    }
  }
  return y;
}

}  // namespace

Weights make_weights(const StepShape& shape, std::int64_t seed) {
  std::mt19937 generator = lab::generator_of(seed);
  Weights made;
  made.table = lab::normal_floats(generator, product_of(kTokens, shape.width));
  for (const float one : lab::uniform_floats(generator, product_of(shape.layers, shape.width))) {
    made.gains.push_back(1.0f + 0.25f * one);
  }
  const std::size_t count = product_of(shape.layers, shape.inner, shape.width);
  const float wide = std::sqrt(3.0f / static_cast<float>(shape.width)),
              deep = std::sqrt(3.0f / static_cast<float>(shape.inner));
  made.gate = scaled_bf16(generator, count, wide);
  made.up = scaled_bf16(generator, count, wide);
  made.down = scaled_bf16(generator, count, deep);
  return made;
}

std::vector<double> reference_step(const StepShape& shape, const Weights& weights,
                                   const std::vector<int>& tokens) {
  std::vector<double> all;
  const auto width = static_cast<std::size_t>(shape.width);
  for (const int token : tokens) {
    std::vector<double> h(width), n(width);
    for (std::size_t i = 0; i < width; ++i) {
      h[i] = static_cast<double>(weights.table[static_cast<std::size_t>(token) * width + i]);
    }
    for (int layer = 0; layer < shape.layers; ++layer) {
      const std::size_t at = product_of(layer, shape.inner, shape.width);
      double squares = 0;
      for (const double one : h) squares += one * one;
      const double inverse = 1 / std::sqrt(squares / shape.width + static_cast<double>(kEpsilon));
      for (std::size_t i = 0; i < width; ++i) {
        const auto gain =
            static_cast<double>(weights.gains[static_cast<std::size_t>(layer) * width + i]);
        n[i] = h[i] * gain * inverse;
      }
      std::vector<double> a = times(weights.gate, at, shape.inner, n);
      const std::vector<double> up = times(weights.up, at, shape.inner, n);
      for (std::size_t i = 0; i < a.size(); ++i) a[i] = a[i] / (1 + std::exp(-a[i])) * up[i];
      const std::vector<double> d = times(weights.down, at, shape.width, a);
      for (std::size_t i = 0; i < width; ++i) h[i] += d[i];
    }
    all.insert(all.end(), h.begin(), h.end());
  }
  return all;
}

double bound_of(const StepShape& shape, double largest) {
  const double roundings = (shape.inner + shape.width) / 32.0 + 32;
  return 0x1p-24 * roundings * 4 * largest * shape.layers;
}

double product_bound(int k) {
  return 0x1p-24 * (k / 32.0 + 8) * k;
}

std::vector<double> reference_product(const ProductShape& shape,
                                      const std::vector<std::uint16_t>& w,
                                      const std::vector<float>& x) {
  std::vector<double> y;
  for (int token = 0; token < shape.batch; ++token) {
    const auto from = x.begin() + static_cast<std::ptrdiff_t>(token * shape.k);
    const std::vector<double> row(from, from + shape.k);
    const std::vector<double> its = times(w, 0, shape.rows, row);
    y.insert(y.end(), its.begin(), its.end());
  }
  return y;
}

}  // namespace tilestep::launches
