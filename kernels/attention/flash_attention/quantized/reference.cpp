#include "kernels/attention/flash_attention/quantized/reference.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/attention/shared/weights.hpp"
#include "kernels/base/numeric/index.hpp"

namespace tilestep::flash_attention {
namespace {

using numeric::index_of;

/// Products that one wgmma adds up.
constexpr int kDepth = 32;
/// Hopper's FP8 products are aligned to the largest of them and to the sum so far, and cut off after 13 bits
/// (DeepSeek-AI, "DeepSeek-V3", 2024, arXiv:2412.19437, 3.3.2); whole numbers are exact.
constexpr double kLost = 0x1p-13;

/// q · k of the 8-bit numbers times their scales, with q_mean: how far the kernel may be from it.
numeric::Bounded product_of(const double* q, const double* k, int columns, double q_mean,
                            DataType format) {
  double sum = 0, bound = 0, magnitude = 0;
  for (int first = 0; first < columns; first += kDepth) {
    double largest = std::abs(sum);
    for (int c = first; c < first + kDepth; ++c) {
      const double product = q[c] * k[c];
      largest = std::max(largest, std::abs(product));
      magnitude += std::abs(product);
      sum += product;
    }
    if (format == DataType::fp8) bound += (kDepth + 1) * kLost * (largest + bound);
  }
  // FP32: sums one after another, both scales, and what is added.
  const double rounding = kUnit * (columns + 4) * magnitude + 2 * kUnit * std::abs(sum + q_mean);
  return {sum + q_mean, kSlack * (bound + rounding)};
}

std::vector<Score> quantized_scores(const Task& task, const Inputs& inputs,
                                    const QuantizedNumbers& numbers, DataType format, int head,
                                    int query) {
  std::vector<Score> scores(static_cast<std::size_t>(task.length()));
  const double* q = &numbers.q[row_at(task, head, query)];
  const double q_mean = static_cast<double>(numbers.q_mean[index_of(head, query, task.length())]);
  for (int key = 0; key < task.length(); ++key) {
    if (!task.rule.allows(query, key, inputs.begins)) continue;
    const double* k = &numbers.k[row_at(task, kv_head(task, head), key)];
    scores[static_cast<std::size_t>(key)] =
        score_of(task, head, query, key, product_of(q, k, task.head_dim, q_mean, format));
  }
  return scores;
}

/// From `as_is` on, with the room that `of_bytes` is off it and may be off itself.
void add_room(numeric::AllBounded& as_is, const numeric::AllBounded& of_bytes) {
  for (std::size_t i = 0; i < as_is.value.size(); ++i) {
    const bool same = as_is.value[i] == of_bytes.value[i];  // −∞ too
    as_is.bound[i] = of_bytes.bound[i] + (same ? 0 : std::abs(as_is.value[i] - of_bytes.value[i]));
  }
}

/// How far q · k may be off: each number by its own half step.
double score_room(const double* q, const double* k, const double* q_error, const double* k_error,
                  int columns) {
  double room = 0;
  for (int c = 0; c < columns; ++c) {
    room += std::abs(q[c]) * k_error[c] + std::abs(k[c]) * q_error[c] + q_error[c] * k_error[c];
  }
  return room;
}

/// What the numbers of 8 bits stand for, and how far each may be from it.
struct Meant {
  std::vector<double> q, k;  ///< K less its mean
  std::vector<double> q_error, k_error;
};
Meant meant_by(const Task& task, const Inputs& inputs, const QuantizedNumbers& numbers,
               DataType format) {
  Meant meant;
  const int length = task.length();
  const auto fill = [&](int heads, int block, const std::vector<float>& scales,
                        const std::vector<float>& from, const float* mean, auto& to, auto& error) {
    const int tiles = (length + block - 1) / block;
    for (int row = 0; row < heads * length; ++row) {
      const double scale =
          static_cast<double>(scales[index_of(row / length, row % length / block, tiles)]);
      for (int c = 0; c < task.head_dim; ++c) {
        const double away =
            mean == nullptr ? 0.0
                            : static_cast<double>(mean[index_of(row / length, c, task.head_dim)]);
        to.push_back(static_cast<double>(from[index_of(row, c, task.head_dim)]) - away);
        error.push_back(quantization_error(to.back(), scale, format));
      }
    }
  };
  fill(task.heads, numbers.block_q, numbers.q_scales, inputs.q, nullptr, meant.q, meant.q_error);
  fill(task.kv_heads, numbers.block_k, numbers.k_scales, inputs.k, numbers.k_mean.data(), meant.k,
       meant.k_error);
  return meant;
}

/// Scales of which the tile's largest number is not the format's largest.
int wrong_scales(const std::vector<float>& scales, const std::vector<double>& meant, int heads,
                 int length, int block, int columns, DataType format) {
  int wrong = 0;
  const int tiles = (length + block - 1) / block;
  for (int tile = 0; tile < heads * tiles; ++tile) {
    const int first = tile / tiles * length + tile % tiles * block;
    const int rows = std::min(block, length - tile % tiles * block);
    double largest = 0;
    for (std::size_t i = index_of(first, 0, columns); i < index_of(first + rows, 0, columns); ++i) {
      largest = std::max(largest, std::abs(meant[i]));
    }
    const double due = largest / static_cast<double>(largest_number(format));
    const double off = std::abs(static_cast<double>(scales[static_cast<std::size_t>(tile)]) - due);
    wrong += !(off <= 4 * kUnit * due);
  }
  return wrong;
}

/// Of K's mean, and of each query's product with it.
int wrong_means(const Task& task, const Inputs& inputs, const QuantizedNumbers& numbers,
                bool smooth_k) {
  int wrong = 0;
  const int length = task.length(), columns = task.head_dim;
  for (int i = 0; i < task.kv_heads * columns; ++i) {
    double sum = 0, magnitude = 0;
    for (int key = 0; smooth_k && key < length; ++key) {
      const auto one =
          static_cast<double>(inputs.k[index_of(i / columns * length + key, i % columns, columns)]);
      sum += one;
      magnitude += std::abs(one);
    }
    const double off =
        std::abs(static_cast<double>(numbers.k_mean[static_cast<std::size_t>(i)]) - sum / length);
    wrong += !(off <= kUnit * (length + 4) * magnitude / length);
  }
  for (int row = 0; row < task.heads * length; ++row) {
    double sum = 0, magnitude = 0;
    for (int c = 0; c < columns; ++c) {
      const auto q = static_cast<double>(inputs.q[index_of(row, c, columns)]);
      const double mean =
          static_cast<double>(numbers.k_mean[index_of(kv_head(task, row / length), c, columns)]);
      sum += q * mean;
      magnitude += std::abs(q * mean);
    }
    const double off =
        std::abs(static_cast<double>(numbers.q_mean[static_cast<std::size_t>(row)]) - sum);
    wrong += !(off <= kUnit * (columns + 4) * magnitude);
  }
  return wrong;
}

}  // namespace

Reference reference_quantized(const Task& task, const Inputs& inputs,
                              const QuantizedNumbers& numbers, DataType format,
                              lab::Progress& progress) {
  const Roundings roundings;  // those of flash-2
  const Numbers exact = numbers_of(inputs);
  Reference as_is, of_bytes;
  for (int head = 0; head < task.heads; ++head) {
    const double* values = &exact.v[row_at(task, kv_head(task, head), 0)];
    for (int query = 0; query < task.length(); ++query) {
      progress.check();
      add_answer(as_is, task, scores_of(task, exact, head, query, nullptr), values, roundings);
      add_answer(of_bytes, task, quantized_scores(task, inputs, numbers, format, head, query),
                 values, roundings);
    }
  }
  add_room(as_is.o, of_bytes.o);
  add_room(as_is.lse, of_bytes.lse);
  return as_is;
}

int wrong_numbers(const Task& task, const Inputs& inputs, const QuantizedNumbers& numbers,
                  DataType format, bool smooth_k) {
  const Meant meant = meant_by(task, inputs, numbers, format);
  int wrong = wrong_means(task, inputs, numbers, smooth_k);
  wrong += wrong_scales(numbers.q_scales, meant.q, task.heads, task.length(), numbers.block_q,
                        task.head_dim, format);
  wrong += wrong_scales(numbers.k_scales, meant.k, task.kv_heads, task.length(), numbers.block_k,
                        task.head_dim, format);
  const auto count = [&](const std::vector<double>& got, const std::vector<double>& due,
                         const std::vector<double>& room) {
    for (std::size_t i = 0; i < due.size(); ++i) wrong += !(std::abs(got[i] - due[i]) <= room[i]);
  };
  count(numbers.q, meant.q, meant.q_error);
  count(numbers.k, meant.k, meant.k_error);
  return wrong;
}

namespace {

/// How far q · mean, which the kernel adds up in FP32, may be off.
double mean_rounding(const Task& task, const QuantizedNumbers& numbers, const double* q, int head) {
  const float* mean = &numbers.k_mean[index_of(kv_head(task, head), 0, task.head_dim)];
  double magnitude = 0;
  for (int c = 0; c < task.head_dim; ++c)
    magnitude += std::abs(q[c] * static_cast<double>(mean[c]));
  return kUnit * (task.head_dim + 2) * magnitude;
}

}  // namespace

ScoreErrors score_errors(const Task& task, const Inputs& inputs, const QuantizedNumbers& numbers,
                         DataType format) {
  const Meant meant = meant_by(task, inputs, numbers, format);
  const Numbers exact = numbers_of(inputs);
  const double scale = 1 / std::sqrt(static_cast<double>(task.head_dim));
  ScoreErrors errors;
  double squares = 0, pairs = 0;
  for (int head = 0; head < task.heads; ++head) {
    for (int query = 0; query < task.length(); ++query) {
      const std::vector<double> due = exact_scores(task, exact, head, query);
      const std::vector<Score> got = quantized_scores(task, inputs, numbers, format, head, query);
      const std::size_t mine = row_at(task, head, query);
      const double mean_room = mean_rounding(task, numbers, &exact.q[mine], head);
      for (int key = 0; key < task.length(); ++key) {
        const auto at = static_cast<std::size_t>(key);
        if (!task.rule.allows(query, key, inputs.begins)) continue;
        const std::size_t other = row_at(task, kv_head(task, head), key);
        const double off = std::abs(got[at].value - due[at]);
        // No modifier makes a difference larger.
        const double room =
            scale * score_room(&meant.q[mine], &meant.k[other], &meant.q_error[mine],
                               &meant.k_error[other], task.head_dim);
        errors.wrong += !(off <= kSlack * (room + scale * mean_room) + got[at].bound);
        squares += off * off;
        ++pairs;
      }
    }
  }
  errors.rms = pairs > 0 ? std::sqrt(squares / pairs) : 0;
  return errors;
}

}  // namespace tilestep::flash_attention
