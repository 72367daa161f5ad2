#include "kernels/attention/kv_cache/quantize.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/attention/kv_cache/reference.hpp"
#include "kernels/base/numeric/small_float.hpp"

namespace tilestep::kv_cache {
namespace {

/// The nearest number of the format.
float nearest(float value, KvType type) {
  if (type == KvType::fp8) return numeric::E4m3::round(value);
  const float most = largest_of(type);
  return std::clamp(std::nearbyint(value), -most, most);
}

void put(std::vector<std::uint8_t>& bytes, std::size_t place, float number, KvType type) {
  if (type == KvType::fp8) {
    bytes[place] =
        static_cast<std::uint8_t>(numeric::encode(numeric::kE4m3, static_cast<double>(number)));
    return;
  }
  const auto whole = static_cast<unsigned>(static_cast<int>(number));
  if (type == KvType::int8) {
    bytes[place] = static_cast<std::uint8_t>(whole & 0xFFu);
    return;
  }
  const unsigned shift = place % 2 == 0 ? 0 : 4;
  bytes[place / 2] = static_cast<std::uint8_t>(bytes[place / 2] | ((whole & 0xFu) << shift));
}

Quantized in_16_bits(const std::vector<float>& values) {
  Quantized numbers;
  numbers.values = values;
  for (const std::uint16_t word : words_of(values)) {
    numbers.bytes.push_back(static_cast<std::uint8_t>(word & 0xFFu));
    numbers.bytes.push_back(static_cast<std::uint8_t>(word >> 8));
  }
  return numbers;
}

/// Root mean square of the difference, relative to that of the exact values.
class Deviation {
 public:
  void add(double got, double want) {
    off_ += (got - want) * (got - want);
    all_ += want * want;
  }
  double value() const { return all_ > 0 ? std::sqrt(off_ / all_) : 0; }

 private:
  double off_ = 0, all_ = 0;
};

}  // namespace

float largest_of(KvType type) {
  return type == KvType::fp8 ? 448.0f : type == KvType::int8 ? 127.0f : 7.0f;
}

Quantized quantized(const std::vector<float>& values, const Inputs& shape, int channels,
                    KvType type, Scales scales) {
  if (!is_quantized(type)) return in_16_bits(values);
  const auto columns = static_cast<std::size_t>(channels);
  const auto tokens = static_cast<std::size_t>(shape.page_size);
  const auto heads = static_cast<std::size_t>(shape.layer.cached_heads);
  const bool by_channel = scales == Scales::channel;
  const auto scale_at = [&](std::size_t i) {
    const std::size_t row = i / columns;
    return by_channel ? row / tokens % heads * columns + i % columns : row;
  };
  Quantized numbers;
  numbers.scales.assign(by_channel ? heads * columns : values.size() / columns, 0.0f);
  for (std::size_t i = 0; i < values.size(); ++i) {
    float& largest = numbers.scales[scale_at(i)];
    largest = std::max(largest, std::abs(values[i]));
  }
  for (float& scale : numbers.scales) scale = scale > 0 ? scale / largest_of(type) : 1.0f;
  numbers.values.resize(values.size());
  numbers.bytes.assign(values.size() * static_cast<std::size_t>(bits_of(type)) / 8, 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float scale = numbers.scales[scale_at(i)];
    const float number = nearest(values[i] / scale, type);
    put(numbers.bytes, i, number, type);
    numbers.values[i] = number * scale;
  }
  return numbers;
}

Cache cache_of(const Inputs& inputs, KvType type, Scales scales) {
  Cache cache;
  cache.k = quantized(inputs.k, inputs, inputs.layer.row.key, type, scales);
  if (!inputs.v.empty()) {
    cache.v = quantized(inputs.v, inputs, inputs.layer.row.value, type, Scales::token);
  }
  return cache;
}

FormatError format_error(const Inputs& inputs, int request, KvType type, Scales scales) {
  Inputs kept = inputs;
  const Cache cache = cache_of(inputs, type, scales);
  kept.k = cache.k.values;
  kept.v = cache.v.values;
  Deviation key, score, output;
  const auto columns = static_cast<std::size_t>(inputs.layer.row.key);
  const auto r = static_cast<std::size_t>(request);
  for (int token = 0; token < inputs.contexts[r]; ++token) {
    const int page = inputs.tables[r][static_cast<std::size_t>(token / inputs.page_size)];
    for (int head = 0; head < inputs.layer.cached_heads; ++head) {
      const std::size_t row = inputs.key_at(page, head, token % inputs.page_size);
      for (std::size_t c = row; c < row + columns; ++c) {
        key.add(static_cast<double>(kept.k[c]), static_cast<double>(inputs.k[c]));
      }
    }
  }
  for (int head = 0; head < inputs.layer.heads; ++head) {
    const Row want = exact_row(inputs, request, head), got = exact_row(kept, request, head);
    // A constant in all scores cancels in the softmax: only their differences count.
    const double shift = want.log_sum - got.log_sum;
    for (std::size_t i = 0; i < want.scores.size(); ++i) {
      score.add(got.scores[i] + shift - want.log_sum, want.scores[i] - want.log_sum);
    }
    for (std::size_t i = 0; i < want.o.size(); ++i) output.add(got.o[i], want.o[i]);
  }
  return {key.value(), score.value(), output.value()};
}

}  // namespace tilestep::kv_cache
