#include "kernels/attention/kv_cache/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/base/numeric/index.hpp"

namespace tilestep::kv_cache {
namespace {

/// Twice FP32's unit roundoff: tensor cores cut off where the emulation rounds.
constexpr double kUnit = 0x1p-23;
/// Of exp2 on the device, and of the change to powers of two before it.
constexpr double kExpError = 0x1p-20;
/// Sums over the tokens are by tiles and parts, so that no number is added to more often than this.
constexpr double kMostDepth = 4096;
/// Bounds are of first order; this covers the higher ones.
constexpr double kSlack = 1.05;

/// Indices of a token's key and value.
struct Place {
  const float *key, *value;
};
Place place_of(const Inputs& inputs, int request, int head, int token) {
  const auto& table = inputs.tables[static_cast<std::size_t>(request)];
  const int page = table[static_cast<std::size_t>(token / inputs.page_size)];
  const int slot = token % inputs.page_size;
  const int cached = head / (inputs.layer.heads / inputs.layer.cached_heads);
  const float* key = inputs.k.data() + inputs.key_at(page, cached, slot);
  // A latent row is its own value.
  const float* value =
      inputs.v.empty() ? key : inputs.v.data() + inputs.value_at(page, cached, slot);
  return {key, value};
}

const float* query_of(const Inputs& inputs, int request, int head) {
  return inputs.q.data() + numeric::index_of(request, head, inputs.layer.heads) *
                               static_cast<std::size_t>(inputs.layer.row.key);
}

/// Σ |q_c k_c| · scale of a token.
double magnitude_of(const Inputs& inputs, int request, int head, int token) {
  const float* q = query_of(inputs, request, head);
  const float* k = place_of(inputs, request, head, token).key;
  double sum = 0;
  for (int c = 0; c < inputs.layer.row.key; ++c) {
    sum += std::abs(static_cast<double>(q[c]) * static_cast<double>(k[c]));
  }
  return sum * inputs.scale;
}

}  // namespace

Row exact_row(const Inputs& inputs, int request, int head) {
  const int tokens = inputs.contexts[static_cast<std::size_t>(request)];
  const RowShape& shape = inputs.layer.row;
  const float* q = query_of(inputs, request, head);
  Row row;
  row.o.assign(static_cast<std::size_t>(shape.value), 0);
  for (int token = 0; token < tokens; ++token) {
    const float* k = place_of(inputs, request, head, token).key;
    double score = 0;
    for (int c = 0; c < shape.key; ++c)
      score += static_cast<double>(q[c]) * static_cast<double>(k[c]);
    row.scores.push_back(score * inputs.scale);
  }
  if (tokens == 0) {
    row.log_sum = -std::numeric_limits<double>::infinity();
    return row;
  }
  const double most = *std::max_element(row.scores.begin(), row.scores.end());
  double sum = 0;
  for (const double score : row.scores) sum += std::exp(score - most);
  row.log_sum = most + std::log(sum);
  for (int token = 0; token < tokens; ++token) {
    const double weight = std::exp(row.scores[static_cast<std::size_t>(token)] - row.log_sum);
    row.weights.push_back(weight);
    const float* v = place_of(inputs, request, head, token).value;
    for (std::size_t c = 0; c < row.o.size(); ++c) row.o[c] += weight * static_cast<double>(v[c]);
  }
  return row;
}

Roundings roundings_of(KvType type, Scales scales) {
  constexpr double kBf16 = 0x1p-8;
  Roundings all;
  all.query = is_quantized(type) && scales == Scales::channel ? kBf16 : 0;
  all.weight = kBf16;
  all.output = kBf16;
  return all;
}

Reference reference_attention(const Inputs& inputs, const Roundings& roundings) {
  Reference all;
  for (int request = 0; request < inputs.batch(); ++request) {
    const int tokens = inputs.contexts[static_cast<std::size_t>(request)];
    const double depth = std::min<double>(tokens, kMostDepth) + 64;
    for (int head = 0; head < inputs.layer.heads; ++head) {
      const Row row = exact_row(inputs, request, head);
      const std::size_t first = all.o.size();
      all.o.insert(all.o.end(), row.o.begin(), row.o.end());
      all.o_bound.resize(all.o.size());
      double mean_error = 0;
      for (int token = 0; token < tokens; ++token) {
        const double weight = row.weights[static_cast<std::size_t>(token)];
        const double magnitude = magnitude_of(inputs, request, head, token);
        const double score_error =
            ((inputs.layer.row.key + 8) * kUnit + roundings.query) * magnitude;
        const double error = score_error + kExpError + roundings.weight;
        mean_error += weight * (score_error + kExpError);
        const float* v = place_of(inputs, request, head, token).value;
        for (std::size_t c = 0; c < row.o.size(); ++c) {
          all.o_bound[first + c] +=
              weight * std::abs(static_cast<double>(v[c])) * (error + 2 * depth * kUnit);
        }
      }
      for (std::size_t c = 0; c < row.o.size(); ++c) {
        double& bound = all.o_bound[first + c];
        bound += std::abs(row.o[c]) * (mean_error + depth * kUnit + roundings.output);
        bound = bound * kSlack + 1e-7;
      }
      all.lse.push_back(row.log_sum);
      all.lse_bound.push_back(
          (mean_error + depth * kUnit + std::abs(tokens > 0 ? row.log_sum : 0) * 4 * kUnit) *
              kSlack +
          1e-6);
    }
  }
  return all;
}

}  // namespace tilestep::kv_cache
