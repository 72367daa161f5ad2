#include "kernels/attention/linear_attention/reference.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/float_format.hpp"
#include "kernels/base/numeric/small_float.hpp"

// The recurrence with each token's outer product written out, column by column of the state. No chunk is known here.

namespace tilestep::linear_attention {
namespace {

/// Half a spacing of BF16 at 1, and of FP32.
constexpr double kBf16Unit = 0x1p-8, kFp32Unit = 0x1p-24;

double half_spacing(double magnitude) {
  return numeric::ulp(numeric::kBf16, magnitude) / 2;
}
void round_to(Words& words, const std::vector<float>& from) {
  for (const float one : from) words.push_back(numeric::Bf16::bits(one));
}
double squared(double x) {
  return x * x;
}

/// The state of one head, and how far a kernel's may be from it.
class State {
 public:
  State(int dim, Rule rule, Way way, std::size_t tokens)
      : dim_(static_cast<std::size_t>(dim)),
        rule_(rule),
        // Token by token, rounding errors of FP32 add up; by chunks, those of BF16 drown them.
        unit_(way == Way::chunked ? 1.02 * kBf16Unit
                                  : static_cast<double>(4 * tokens + dim_ + 64) * kFp32Unit),
        s_(dim_ * dim_),
        size_(dim_ * dim_),
        longest_(dim_),
        off_(dim_) {}

  /// One token, of a decayed state; `v` is column `c`'s.
  void add(std::span<const double> k, double alpha, double beta, std::span<const double> v) {
    double key = 0;
    for (const double one : k) key += one * one;
    key = std::sqrt(key);
    for (std::size_t c = 0; c < dim_; ++c) {
      double u = v[c];
      off_[c] *= alpha;
      if (corrects(rule_)) {
        double held = 0;
        for (std::size_t j = 0; j < dim_; ++j) held += k[j] * s_[j * dim_ + c];
        u = beta * (v[c] - alpha * held);
        // By chunks u is U₀ − W·S: U₀, W, S and u are rounded, and |U₀| is at most |u| + |W||S|. A key's length is at
        // most 1, so an error that is made once never grows.
        off_[c] += key * unit_ * (3.5 * std::abs(u) + 3 * beta * longest_[c]);
      }
      double length = 0;
      for (std::size_t j = 0; j < dim_; ++j) {
        double& entry = s_[j * dim_ + c];
        double& size = size_[j * dim_ + c];
        entry = alpha * entry + k[j] * u;
        size = alpha * size + std::abs(k[j] * u);
        length += entry * entry;
      }
      longest_[c] = std::max(longest_[c], std::sqrt(length));
    }
  }
  /// Number c of S^Tq.
  numeric::Bounded read(std::span<const double> q, std::size_t c) const {
    double sum = 0, size = 0, query = 0;
    for (std::size_t j = 0; j < dim_; ++j) {
      sum += q[j] * s_[j * dim_ + c];
      size += std::abs(q[j]) * size_[j * dim_ + c];
      query += q[j] * q[j];
    }
    // Keys times their decay, products, and the handed state are rounded.
    const double bound = std::sqrt(query) * off_[c] + 3.5 * unit_ * size;
    return {sum, bound};
  }
  numeric::Bounded entry(std::size_t j, std::size_t c) const {
    return {s_[j * dim_ + c], off_[c] + 1.5 * unit_ * size_[j * dim_ + c]};
  }

 private:
  std::size_t dim_;
  Rule rule_;
  double unit_;
  std::vector<double> s_, size_;  ///< the state, and that of absolute values
  std::vector<double> longest_;   ///< of a column so far
  std::vector<double> off_;       ///< of a column, by the errors of u
};

std::vector<double> doubles(std::span<const std::uint16_t> words) {
  std::vector<double> all;
  all.reserve(words.size());
  for (const std::uint16_t word : words)
    all.push_back(static_cast<double>(numeric::Bf16::value(word)));
  return all;
}

}  // namespace

std::vector<float> values_of(std::span<const std::uint16_t> words) {
  std::vector<float> values;
  for (const std::uint16_t word : words) values.push_back(numeric::Bf16::value(word));
  return values;
}

Inputs make_inputs(const InputSizes& sizes, std::int64_t seed) {
  std::mt19937 generator = lab::generator_of(seed);
  const auto dim = static_cast<std::size_t>(sizes.dim);
  const auto repeat = static_cast<std::size_t>(sizes.repeat);
  Inputs inputs;
  inputs.tokens = sizes.tokens;
  inputs.dim = sizes.dim;
  const std::vector<float> keys = lab::normal_floats(generator, repeat * dim);
  inputs.omega = lab::normal_floats(generator, dim * dim);
  for (std::size_t token = 0; token < static_cast<std::size_t>(sizes.tokens); ++token) {
    const auto key = keys.begin() + static_cast<std::ptrdiff_t>(token % repeat * dim);
    const auto sought = keys.begin() + static_cast<std::ptrdiff_t>((token + 1) % repeat * dim);
    std::vector<float> q = lab::normal_floats(generator, dim);
    for (std::size_t i = 0; i < dim; ++i)
      q[i] = 0.8f * sought[static_cast<std::ptrdiff_t>(i)] + 0.4f * q[i];
    round_to(inputs.q, q);
    round_to(inputs.k, {key, key + sizes.dim});
    round_to(inputs.v, lab::normal_floats(generator, dim));
    inputs.log_gates.push_back(
        static_cast<float>(std::log(sizes.gate) * (0.5 + lab::uniform(generator))));
    inputs.betas.push_back(static_cast<float>(sizes.beta));
  }
  return inputs;
}

numeric::AllBounded reference_features(std::span<const std::uint16_t> x, const FeatureShape& shape,
                                       std::span<const float> omega) {
  const std::vector<double> all = doubles(x);
  const auto dim = static_cast<std::size_t>(shape.dim);
  const double scale = std::pow(static_cast<double>(dim), -0.25);
  // FP32: of sums over a row, and of expf.
  const double unit = static_cast<double>(4 * dim + 64) * kFp32Unit;
  numeric::AllBounded result;
  for (std::size_t row = 0; row < all.size(); row += dim) {
    std::vector<double> mapped(dim), bound(dim);
    double squares = 0;
    for (std::size_t i = 0; i < dim; ++i) squares += squared(scale * all[row + i]);
    for (std::size_t i = 0; i < dim; ++i) {
      const double from = all[row + i];
      double& to = mapped[i] = from;
      bound[i] = 0;
      if (shape.feature == Feature::elu) {
        to = from > 0 ? from + 1 : std::exp(from);
        bound[i] = unit * to;
      }
      if (shape.feature == Feature::relu) to = std::max(from, 0.0);
      if (shape.feature == Feature::random) {
        double along = 0, size = squares;
        for (std::size_t j = 0; j < dim; ++j) {
          const double part = static_cast<double>(omega[i * dim + j]) * scale * all[row + j];
          along += part;
          size += std::abs(part);
        }
        to = std::exp(along - squares / 2) / std::sqrt(static_cast<double>(dim));
        bound[i] = unit * (1 + size) * to;
      }
    }
    if (shape.unit) {
      double length = static_cast<double>(kTiny);
      for (const double one : mapped) length += one * one;
      length = std::sqrt(length);
      double most = 0;
      for (std::size_t i = 0; i < dim; ++i) most = std::max(most, bound[i] / length);
      for (std::size_t i = 0; i < dim; ++i) {
        mapped[i] /= length;
        bound[i] =
            bound[i] / length + (unit + 2 * most * std::sqrt(double(dim))) * std::abs(mapped[i]);
      }
    }
    for (std::size_t i = 0; i < dim; ++i)
      result.push_back({mapped[i], bound[i] + half_spacing(std::abs(mapped[i]) + bound[i])});
  }
  return result;
}

ReferenceWeights reference_weights(const Inputs& raw, std::span<const std::uint16_t> mapped_q,
                                   std::span<const std::uint16_t> mapped_k) {
  const auto dim = static_cast<std::size_t>(raw.dim), tokens = raw.k.size() / dim;
  const auto last = (tokens - 1) * dim;
  const std::vector<double> q = doubles(raw.q), k = doubles(raw.k), v = doubles(raw.v),
                            fq = doubles(mapped_q), fk = doubles(mapped_k);
  ReferenceWeights result;
  double sum = 0, size = 0, product_size = 0;
  for (std::size_t key = 0; key < tokens; ++key) {
    double score = 0, product = 0, absolute = 0;
    for (std::size_t j = 0; j < dim; ++j) {
      score += q[last + j] * k[key * dim + j];
      product += fq[last + j] * fk[key * dim + j];
      absolute += std::abs(fq[last + j] * fk[key * dim + j]);
    }
    result.exact.push_back(std::exp(score / std::sqrt(static_cast<double>(dim))));
    result.approximate.push_back(product);
    sum += result.exact.back();
    size += std::abs(product);
    product_size += absolute;
  }
  for (double& one : result.exact) one /= sum;
  for (double& one : result.approximate) one /= size > 0 ? size : 1;
  const double unit = static_cast<double>(4 * (dim + tokens) + 64) * kFp32Unit;
  for (std::size_t c = 0; c < dim; ++c) {
    double exact = 0, approximate = 0, most = 0;
    for (std::size_t key = 0; key < tokens; ++key) {
      exact += result.exact[key] * v[key * dim + c];
      approximate += result.approximate[key] * v[key * dim + c];
      most = std::max(most, std::abs(v[key * dim + c]));
    }
    // A score of up to some tens is off by its own last bits, and a weight by as much of itself.
    result.by_softmax.push_back({exact, 64 * unit * most});
    result.by_features.push_back(
        {approximate, unit * most * (size > 0 ? product_size / size : 0) + 1e-30});
  }
  return result;
}

ReferenceHead reference_head(const Head& head, int dim, Rule rule, Way way, bool each) {
  const auto count = static_cast<std::size_t>(dim), tokens = head.k.size() / count;
  const std::vector<double> q = doubles(head.q), k = doubles(head.k), v = doubles(head.v);
  State state(dim, rule, way, tokens);
  ReferenceHead result;
  for (std::size_t token = 0; token < tokens; ++token) {
    const auto row = [&](const std::vector<double>& of) {
      return std::span(of).subspan(token * count, count);
    };
    const double alpha = gates(rule) ? std::exp(static_cast<double>(head.log_gates[token])) : 1;
    state.add(row(k), alpha, corrects(rule) ? static_cast<double>(head.betas[token]) : 1, row(v));
    for (std::size_t c = 0; c < count; ++c) {
      const numeric::Bounded o = state.read(row(q), c);
      result.o.push_back({o.value, o.bound + half_spacing(std::abs(o.value) + o.bound)});
    }
    for (std::size_t j = 0; j < kShown && each; ++j) {
      for (std::size_t c = 0; c < kShown; ++c) result.states.push_back(state.entry(j, c));
    }
  }
  for (std::size_t j = 0; j < count; ++j) {
    for (std::size_t c = 0; c < count; ++c) result.state.push_back(state.entry(j, c));
  }
  return result;
}

}  // namespace tilestep::linear_attention
