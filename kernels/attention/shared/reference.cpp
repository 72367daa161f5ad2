#include "kernels/attention/shared/reference.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <span>

#include "kernels/attention/shared/weights.hpp"

namespace tilestep::attention {
namespace {

using numeric::Adding;

/// Those of the paper's own code: a list for the last power of two, then every second one of the list for twice as many.
double slope_of(const Task& task, int head) {
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(task.heads)));
  if (head < power) return std::exp2(-8.0 * (head + 1) / power);
  return std::exp2(-8.0 * (2 * (head - power) + 1) / (2.0 * power));
}

double modified(const Task& task, int head, int query, int key, double score) {
  if (task.mod == ScoreMod::alibi) return score - slope_of(task, head) * std::abs(key - query);
  if (task.mod == ScoreMod::softcap) {
    return static_cast<double>(kSoftcap) * std::tanh(score / static_cast<double>(kSoftcap));
  }
  return score;
}

}  // namespace

Score score_of(const Task& task, int head, int query, int key, const numeric::Bounded& product) {
  const double scale = 1 / std::sqrt(static_cast<double>(task.head_dim));
  const double raw = product.value * scale;
  Score score;
  score.value = modified(task, head, query, key, raw);
  if (task.mod == ScoreMod::softcap) {
    const double t = score.value / static_cast<double>(kSoftcap);
    score.slope = 1 - t * t;
  }
  const double added = task.mod == ScoreMod::alibi ? std::abs(score.value - raw) : 0;
  // The scale and its product; the modifier's own arithmetic: tanhf and exp2f are good to 2 ulp.
  score.bound = product.bound * scale +
                kUnit * (4 * std::abs(raw) + 12 * added +
                         (task.mod == ScoreMod::none ? 0 : 12) * std::abs(score.value));
  return score;
}

Score score_of(const Task& task, const Numbers& numbers, int head, int query, int key,
               const Roundings* roundings) {
  if (!task.rule.allows(query, key, numbers.begins)) return {};
  const double* q = &numbers.q[row_at(task, head, query)];
  const double* k = &numbers.k[row_at(task, kv_head(task, head), key)];
  numeric::RunningSum dot(roundings == nullptr ? Adding::in_order : Adding::tensor_core);
  for (int c = 0; c < task.head_dim; ++c) dot.add(q[c] * k[c]);
  Score score = score_of(task, head, query, key, dot.result());
  if (roundings == nullptr) {
    score.bound = 0;
  } else {
    score.bound += roundings->score * (std::abs(score.value) + score.bound);
  }
  return score;
}

std::vector<Score> scores_of(const Task& task, const Numbers& numbers, int head, int query,
                             const Roundings* roundings) {
  std::vector<Score> scores;
  scores.reserve(static_cast<std::size_t>(task.length()));
  for (int key = 0; key < task.length(); ++key) {
    scores.push_back(score_of(task, numbers, head, query, key, roundings));
  }
  return scores;
}

double largest_of(const std::vector<Score>& scores) {
  double largest = -kInfinity;
  for (const Score& score : scores) largest = std::max(largest, score.value);
  return largest;
}

namespace {

/// How often the maximum rises from a tile of 16 keys to the next: no kernel's tiles are smaller.
double rises_of(const std::vector<Score>& scores, bool backwards) {
  int rises = 0;
  double before = -kInfinity;
  double largest = before;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    largest = std::max(largest, scores[backwards ? scores.size() - 1 - i : i].value);
    if ((i + 1) % kStrip != 0 && i + 1 != scores.size()) continue;
    rises += largest > before;
    before = largest;
  }
  return rises;
}

}  // namespace

Weights weights_of(const std::vector<Score>& scores, double largest, const Roundings* roundings) {
  Weights weights;
  double sum = 0;
  double reach = 0;
  int seen = 0;
  for (const Score& score : scores) {
    const bool there = score.value > -kInfinity;
    weights.value.push_back(there ? std::exp(score.value - largest) : 0);
    sum += weights.value.back();
    seen += there;
    if (there) reach = std::max(reach, std::abs(score.value));
  }
  for (double& weight : weights.value) weight /= sum;
  weights.log_sum = largest + std::log(sum);
  if (roundings == nullptr) return weights;
  weights.tiles = std::ceil(static_cast<double>(scores.size()) / kStrip);
  // A lane adds up a quarter of a row, the others' sums come on top.
  weights.depth = seen / 4.0 + weights.tiles + 16;
  // exp(s − m), s and m rounded with their factors, and, of flash-1, exp of what separates a tile's maximum
  // from that of all; then O and ℓ are brought to each new maximum.
  const double rises = (rises_of(scores, roundings->backwards) + 1) * (4 * reach + 12);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double below = weights.value[i] > 0 ? largest - scores[i].value : 0;
    weights.error.push_back(
        std::expm1(scores[i].bound + kUnit * (10 * reach + 4 * below + 16 + rises)));
    weights.mean_error += weights.value[i] * weights.error.back();
  }
  return weights;
}

namespace {

/// Component c of a query's O.
numeric::Bounded output_of(const Weights& weights, const double* values, std::size_t stride,
                           const Roundings& roundings) {
  numeric::RunningSum sum(roundings.values_adding);
  double of_weights = 0;
  double magnitude = 0;
  for (std::size_t key = 0; key < weights.value.size(); ++key) {
    if (weights.value[key] == 0) continue;
    const double value = values[key * stride];
    const double part = std::abs(weights.value[key] * value);
    sum.add(weights.value[key] * value);
    magnitude += part;
    of_weights += part * (weights.error[key] + roundings.weight);
  }
  const double output = std::abs(sum.sum());
  double bound =
      sum.bound() + of_weights + output * weights.mean_error +
      kUnit * (weights.depth * output + weights.tiles * roundings.visits * magnitude + 4 * output);
  bound += roundings.output * (output + bound);
  return {sum.sum(), kSlack * bound};
}

}  // namespace

Numbers numbers_of(const Inputs& inputs) {
  return {{inputs.q.begin(), inputs.q.end()},
          {inputs.k.begin(), inputs.k.end()},
          {inputs.v.begin(), inputs.v.end()},
          inputs.begins};
}

void add_reference(Reference& reference, const Task& task, const Numbers& numbers, int head,
                   int query, const Roundings& roundings) {
  add_answer(reference, task, scores_of(task, numbers, head, query, &roundings),
             &numbers.v[row_at(task, kv_head(task, head), 0)], roundings);
}

void add_answer(Reference& reference, const Task& task, const std::vector<Score>& scores,
                const double* values, const Roundings& roundings) {
  const double largest = largest_of(scores);
  if (largest == -kInfinity) {
    for (int c = 0; c < task.head_dim; ++c) reference.o.push_back({0, 0});
    reference.lse.push_back({-kInfinity, 0});
    return;
  }
  const Weights weights = weights_of(scores, largest, &roundings);
  for (int c = 0; c < task.head_dim; ++c) {
    reference.o.push_back(
        output_of(weights, values + c, static_cast<std::size_t>(task.head_dim), roundings));
  }
  reference.lse.push_back(
      {weights.log_sum, kSlack * (weights.mean_error +
                                  kUnit * (weights.depth + 8 + 4 * std::abs(weights.log_sum)))});
}

Reference reference_forward(const Task& task, const Inputs& inputs, const Roundings& roundings,
                            lab::Progress& progress) {
  const Numbers numbers = numbers_of(inputs);
  Reference reference;
  for (int head = 0; head < task.heads; ++head) {
    for (int query = 0; query < task.length(); ++query) {
      progress.check();
      add_reference(reference, task, numbers, head, query, roundings);
    }
  }
  return reference;
}

std::vector<double> exact_scores(const Task& task, const Numbers& numbers, int head, int query) {
  std::vector<double> values;
  for (const Score& score : scores_of(task, numbers, head, query, nullptr)) {
    values.push_back(score.value);
  }
  return values;
}

std::vector<double> exact_output(const Task& task, const Numbers& numbers) {
  std::vector<double> output(numbers.q.size(), 0.0);
  for (int head = 0; head < task.heads; ++head) {
    for (int query = 0; query < task.length(); ++query) {
      const std::vector<Score> scores = scores_of(task, numbers, head, query, nullptr);
      const double largest = largest_of(scores);
      if (largest == -kInfinity) continue;
      const Weights weights = weights_of(scores, largest);
      double* o = &output[row_at(task, head, query)];
      for (int key = 0; key < task.length(); ++key) {
        const double* v = &numbers.v[row_at(task, kv_head(task, head), key)];
        for (int c = 0; c < task.head_dim; ++c) {
          o[c] += weights.value[static_cast<std::size_t>(key)] * v[c];
        }
      }
    }
  }
  return output;
}

Gradients reference_backward(const Task& task, const Numbers& numbers,
                             const std::vector<double>& d_output) {
  const double scale = 1 / std::sqrt(static_cast<double>(task.head_dim));
  Gradients g{std::vector<double>(numbers.q.size()), std::vector<double>(numbers.k.size()),
              std::vector<double>(numbers.v.size())};
  const std::vector<double> output = exact_output(task, numbers);
  for (int head = 0; head < task.heads; ++head) {
    for (int query = 0; query < task.length(); ++query) {
      const std::vector<Score> scores = scores_of(task, numbers, head, query, nullptr);
      const double largest = largest_of(scores);
      if (largest == -kInfinity) continue;
      const Weights weights = weights_of(scores, largest);
      const std::size_t mine = row_at(task, head, query);
      double d = 0;
      for (int c = 0; c < task.head_dim; ++c) {
        d += d_output[mine + static_cast<std::size_t>(c)] *
             output[mine + static_cast<std::size_t>(c)];
      }
      for (int key = 0; key < task.length(); ++key) {
        const double weight = weights.value[static_cast<std::size_t>(key)];
        if (weight == 0) continue;
        const std::size_t other = row_at(task, kv_head(task, head), key);
        double d_weight = 0;
        for (std::size_t c = 0; c < static_cast<std::size_t>(task.head_dim); ++c) {
          d_weight += d_output[mine + c] * numbers.v[other + c];
          g.dv[other + c] += weight * d_output[mine + c];
        }
        const double d_score =
            weight * (d_weight - d) * scores[static_cast<std::size_t>(key)].slope * scale;
        for (std::size_t c = 0; c < static_cast<std::size_t>(task.head_dim); ++c) {
          g.dq[mine + c] += d_score * numbers.k[other + c];
          g.dk[other + c] += d_score * numbers.q[mine + c];
        }
      }
    }
  }
  return g;
}

}  // namespace tilestep::attention
