#include "kernels/systems/parallelism/reference.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/lab/random.hpp"

namespace tilestep::parallelism {
namespace {

using Doubles = std::vector<double>;

/// A matrix of weights within a layer's numbers.
struct Matrix {
  std::int64_t first, rows, columns;
};

/// y[t] += x[t] · w for one token.
void forward(const Numbers& weights, const Matrix& w, const double* x, double* y) {
  for (std::int64_t i = 0; i < w.rows; ++i) {
    for (std::int64_t j = 0; j < w.columns; ++j)
      y[j] += x[i] * static_cast<double>(weights[at(w.first + i * w.columns + j)]);
  }
}
/// Gradients of the same: of x, which is added to, and of w.
void back(const Numbers& weights, const Matrix& w, const double* x, const double* d_y, double* d_x,
          Doubles& gradients) {
  for (std::int64_t i = 0; i < w.rows; ++i) {
    for (std::int64_t j = 0; j < w.columns; ++j) {
      const std::size_t place = at(w.first + i * w.columns + j);
      d_x[i] += d_y[j] * static_cast<double>(weights[place]);
      gradients[place] += x[i] * d_y[j];
    }
  }
}

struct Layer {
  Doubles x, q, k, v, o, y, a;
};

}  // namespace

ModelInputs make_inputs(const ModelShape& model, std::int64_t seed) {
  std::mt19937 generator = lab::generator_of(seed);
  ModelInputs made;
  const auto scaled = [&](std::int64_t count, double size) {
    Numbers numbers = lab::uniform_floats(generator, at(count));
    for (float& one : numbers) one *= static_cast<float>(size);
    return numbers;
  };
  for (int layer = 0; layer < model.layers; ++layer)
    made.layers.push_back(scaled(model.layer(), 1 / std::sqrt(static_cast<double>(model.width()))));
  made.x = scaled(model.tokens() * model.width(), 1);
  made.d_z = scaled(model.tokens() * model.width(), 1);
  for (std::int64_t token = 0; token < model.tokens(); ++token) {
    // Some experts are asked more often than others.
    const double drawn = lab::uniform(generator);
    made.expert.push_back(static_cast<int>(drawn * std::sqrt(drawn) * model.experts));
  }
  return made;
}

ModelResult reference_model(const ModelShape& model, const ModelInputs& inputs) {
  const std::int64_t width = model.width(), tokens = model.tokens(), inner = model.inner;
  const std::int64_t square = width * width;
  const Matrix wq{0, width, width}, wk{square, width, width}, wv{2 * square, width, width},
      wo{3 * square, width, width};
  const auto w1 = [&](std::int64_t token) {
    return Matrix{4 * square + inputs.expert[at(token)] * model.mlp(), width, inner};
  };
  const auto w2 = [&](std::int64_t token) {
    return Matrix{w1(token).first + width * inner, inner, width};
  };
  const double scale = 1 / std::sqrt(static_cast<double>(model.dim));
  std::vector<Layer> layers(at(model.layers));
  // Weights of a query's keys in a head.
  const auto weights_of = [&](const Layer& layer, std::int64_t query, int head) {
    const std::int64_t first = query / model.length * model.length;
    Doubles weights;
    double sum = 0;
    for (std::int64_t key = first; key <= query; ++key) {
      double score = 0;
      for (int i = 0; i < model.dim; ++i)
        score += layer.q[at(query * width + head * model.dim + i)] *
                 layer.k[at(key * width + head * model.dim + i)];
      weights.push_back(std::exp(score * scale));
      sum += weights.back();
    }
    for (double& one : weights) one /= sum;
    return weights;
  };
  Doubles x(inputs.x.begin(), inputs.x.end());
  for (std::size_t number = 0; number < layers.size(); ++number) {
    Layer& layer = layers[number];
    const Numbers& weights = inputs.layers[number];
    layer.x = x;
    const Doubles none(at(tokens * width), 0.0);
    layer.q = layer.k = layer.v = layer.o = none;
    layer.y = x;
    layer.a.assign(at(tokens * inner), 0.0);
    for (std::int64_t token = 0; token < tokens; ++token) {
      forward(weights, wq, &x[at(token * width)], &layer.q[at(token * width)]);
      forward(weights, wk, &x[at(token * width)], &layer.k[at(token * width)]);
      forward(weights, wv, &x[at(token * width)], &layer.v[at(token * width)]);
    }
    for (std::int64_t token = 0; token < tokens; ++token) {
      for (int head = 0; head < model.heads; ++head) {
        const Doubles weight = weights_of(layer, token, head);
        const std::int64_t first = token / model.length * model.length;
        for (std::size_t key = 0; key < weight.size(); ++key) {
          for (int i = head * model.dim; i < (head + 1) * model.dim; ++i)
            layer.o[at(token * width + i)] +=
                weight[key] * layer.v[(at(first) + key) * at(width) + at(i)];
        }
      }
      forward(weights, wo, &layer.o[at(token * width)], &layer.y[at(token * width)]);
      double* a = &layer.a[at(token * inner)];
      forward(weights, w1(token), &layer.y[at(token * width)], a);
      for (std::int64_t i = 0; i < inner; ++i) a[i] = std::max(a[i], 0.0);
      std::copy_n(&layer.y[at(token * width)], width, &x[at(token * width)]);
      forward(weights, w2(token), a, &x[at(token * width)]);
    }
  }
  ModelResult result{x, Doubles(inputs.d_z.begin(), inputs.d_z.end()), {}};
  result.gradients.resize(layers.size());
  for (std::size_t number = layers.size(); number-- > 0;) {
    const Layer& layer = layers[number];
    const Numbers& weights = inputs.layers[number];
    Doubles& gradients = result.gradients[number];
    gradients.assign(weights.size(), 0.0);
    Doubles d_y = result.d_x, d_q(at(tokens * width), 0.0), d_k = d_q, d_v = d_q;
    for (std::int64_t token = 0; token < tokens; ++token) {
      Doubles d_a(at(inner), 0.0), d_o(at(width), 0.0);
      const double* a = &layer.a[at(token * inner)];
      back(weights, w2(token), a, &result.d_x[at(token * width)], d_a.data(), gradients);
      for (std::int64_t i = 0; i < inner; ++i) d_a[at(i)] = a[i] > 0 ? d_a[at(i)] : 0;
      back(weights, w1(token), &layer.y[at(token * width)], d_a.data(), &d_y[at(token * width)],
           gradients);
      back(weights, wo, &layer.o[at(token * width)], &d_y[at(token * width)], d_o.data(),
           gradients);
      for (int head = 0; head < model.heads; ++head) {
        const Doubles weight = weights_of(layer, token, head);
        const std::size_t first = at(token / model.length * model.length);
        Doubles product(weight.size(), 0.0);
        double mean = 0;
        for (std::size_t key = 0; key < weight.size(); ++key) {
          for (int i = head * model.dim; i < (head + 1) * model.dim; ++i) {
            const std::size_t there = (first + key) * at(width) + at(i);
            product[key] += d_o[at(i)] * layer.v[there];
            d_v[there] += weight[key] * d_o[at(i)];
          }
          mean += weight[key] * product[key];
        }
        for (std::size_t key = 0; key < weight.size(); ++key) {
          const double d_score = weight[key] * (product[key] - mean) * scale;
          for (int i = head * model.dim; i < (head + 1) * model.dim; ++i) {
            const std::size_t there = (first + key) * at(width) + at(i);
            d_q[at(token * width + i)] += d_score * layer.k[there];
            d_k[there] += d_score * layer.q[at(token * width + i)];
          }
        }
      }
    }
    result.d_x = d_y;
    for (std::int64_t token = 0; token < tokens; ++token) {
      const double* its = &layer.x[at(token * width)];
      double* d_x = &result.d_x[at(token * width)];
      back(weights, wq, its, &d_q[at(token * width)], d_x, gradients);
      back(weights, wk, its, &d_k[at(token * width)], d_x, gradients);
      back(weights, wv, its, &d_v[at(token * width)], d_x, gradients);
    }
  }
  return result;
}

}  // namespace tilestep::parallelism
