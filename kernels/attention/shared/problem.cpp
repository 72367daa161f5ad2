#include "kernels/attention/shared/problem.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/small_float.hpp"

namespace tilestep::attention {
namespace {

constexpr unsigned kLargeOneIn = 512;
constexpr float kLarge = 3;
constexpr int kChannelsPerOutlier = 16;

void enlarge_some(std::vector<float>& values, std::mt19937& generator) {
  for (float& value : values) {
    if (generator() % kLargeOneIn == 0) value *= kLarge;
  }
}

/// Moves a few channels of each head by an amount that all rows of it share.
void move_channels(std::vector<float>& k, const Task& task, std::mt19937& generator) {
  const auto head_dim = static_cast<std::size_t>(task.head_dim);
  const std::size_t rows = static_cast<std::size_t>(task.length());
  for (std::size_t head = 0; head < static_cast<std::size_t>(task.kv_heads); ++head) {
    for (int i = 0; i < task.head_dim / kChannelsPerOutlier; ++i) {
      const std::size_t channel = generator() % head_dim;
      const double sign = generator() % 2 == 0 ? 1 : -1;
      const auto by = static_cast<float>(sign * (8 + 8 * lab::uniform(generator)));
      for (std::size_t row = 0; row < rows; ++row) {
        k[(head * rows + row) * head_dim + channel] += by;
      }
    }
  }
}

}  // namespace

Inputs make_inputs(const Task& task, Data data, std::int64_t seed) {
  std::mt19937 generator = lab::generator_of(seed);
  const auto numbers = [&](int heads) {
    return lab::normal_floats(generator, static_cast<std::size_t>(heads) *
                                             static_cast<std::size_t>(task.length()) *
                                             static_cast<std::size_t>(task.head_dim));
  };
  Inputs inputs;
  inputs.q = numbers(task.heads);
  inputs.k = numbers(task.kv_heads);
  inputs.v = numbers(task.kv_heads);
  if (data == Data::outliers) {
    move_channels(inputs.k, task, generator);
    enlarge_some(inputs.q, generator);
    enlarge_some(inputs.k, generator);
  }
  for (auto* tensor : {&inputs.q, &inputs.k, &inputs.v}) {
    for (float& value : *tensor) value = numeric::Bf16::round(value);
  }
  inputs.begins = begins_of(document_lengths(task.length(), seed));
  return inputs;
}

std::vector<float> make_d_output(const Task& task, std::int64_t seed) {
  std::mt19937 generator = lab::generator_of(seed + 2);
  std::vector<float> values = lab::normal_floats(
      generator, static_cast<std::size_t>(task.heads) * static_cast<std::size_t>(task.length()) *
                     static_cast<std::size_t>(task.head_dim));
  for (float& value : values) value = numeric::Bf16::round(value);
  return values;
}

std::vector<int> document_lengths(int length, std::int64_t seed) {
  std::mt19937 generator = lab::generator_of(seed + 1);
  std::vector<int> lengths;
  const auto most = static_cast<unsigned>(std::max(length / 2, 1));
  for (int left = length; left > 0; left -= lengths.back()) {
    lengths.push_back(std::min(left, 1 + static_cast<int>(generator() % most)));
  }
  return lengths;
}

std::vector<int> begins_of(const std::vector<int>& lengths) {
  std::vector<int> begins;
  for (const int length : lengths) {
    begins.insert(begins.end(), static_cast<std::size_t>(length), static_cast<int>(begins.size()));
  }
  return begins;
}

std::vector<std::uint16_t> words_of(const std::vector<float>& values) {
  std::vector<std::uint16_t> words(values.size());
  std::transform(values.begin(), values.end(), words.begin(), numeric::Bf16::bits);
  return words;
}

std::vector<float> values_of(const std::vector<std::uint16_t>& words) {
  std::vector<float> values(words.size());
  std::transform(words.begin(), words.end(), values.begin(), numeric::Bf16::value);
  return values;
}

}  // namespace tilestep::attention
