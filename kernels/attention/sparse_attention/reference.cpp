#include "kernels/attention/sparse_attention/reference.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/float_format.hpp"
#include "kernels/base/numeric/small_float.hpp"

namespace tilestep::sparse_attention {
namespace {

constexpr double kUnit = numeric::Fp32::kUnitRoundoff;

// ---- a text -----------------------------------------------------------------------------------------

constexpr int kTopics = 4, kWordsOfTopic = 5, kContent = 12;
constexpr int kSinkAt = 12, kRopeAt = 16;
constexpr int kRecencyAt = 13;  ///< of index keys

using Content = std::array<float, kContent>;
struct Word {
  int topic = 0;
  Content content{};
};

std::vector<Word> make_words(std::mt19937& generator) {
  std::vector<Word> words;
  for (int topic = 0; topic < kTopics; ++topic) {
    const std::vector<float> common = lab::normal_floats(generator, kContent);
    for (int i = 0; i < kWordsOfTopic; ++i) {
      const std::vector<float> own = lab::normal_floats(generator, kContent);
      Word& word = words.emplace_back();
      word.topic = topic;
      for (std::size_t n = 0; n < kContent; ++n) word.content[n] = 0.7f * common[n] + 0.4f * own[n];
    }
  }
  return words;
}

/// E4M3 of a multiple of 1/8: sums of products are then exact in FP32.
std::uint8_t code_of(double value) {
  const double coarse = std::nearbyint(value * 8) / 8;
  const double rounded = numeric::round_to(numeric::kE4m3, coarse, numeric::Rounding::nearest,
                                           numeric::Overflow::saturate);
  return static_cast<std::uint8_t>(numeric::encode(numeric::kE4m3, rounded));
}
double value_of(std::uint8_t code) {
  return numeric::decode(numeric::kE4m3, code);
}

}  // namespace

Inputs make_inputs(int length, int index_heads, int page_size, std::int64_t seed) {
  std::mt19937 generator = lab::generator_of(seed);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * lab::uniform(generator);
  };
  const auto below = [&](int count) { return static_cast<int>(uniform(0, count)); };
  std::mt19937 taught = lab::generator_of(seed + 1);  // more heads change no token
  const std::vector<Word> words = make_words(generator);
  Inputs all;
  all.length = length;
  all.index_heads = index_heads;
  std::vector<Content> masks(static_cast<std::size_t>(index_heads));
  for (Content& mask : masks) {
    for (float& one : mask) one = lab::uniform(taught) < 0.6 ? 1.0f : 0.0f;
  }
  int topic = 0, document = 0;
  for (int t = 0; t < length; ++t) {
    if (uniform(0, 1) < 0.12) topic = below(kTopics);
    if (t > 0 && uniform(0, 1) < 3.0 / length) ++document;
    all.documents.push_back(document);
    const Word& word =
        words[static_cast<std::size_t>(topic * kWordsOfTopic + below(kWordsOfTopic))];
    std::vector<float> q(kKey), k(kKey);
    for (std::size_t n = 0; n < kContent; ++n) {
      k[n] = word.content[n] + 0.1f * static_cast<float>(uniform(-1, 1));
      q[n] = 1.6f * word.content[n] + 0.3f * static_cast<float>(uniform(-1, 1));
    }
    k[kSinkAt] = t < kSinks ? 3.0f : 0.0f;
    q[kSinkAt] = 3.0f;
    for (std::size_t n = kSinkAt + 1; n < kRopeAt; ++n) {
      k[n] = static_cast<float>(uniform(-1, 1));
      q[n] = static_cast<float>(uniform(-0.5, 0.5));
    }
    constexpr double kRates[] = {0.6, 0.2, 0.07, 0.025};
    for (std::size_t pair = 0; pair < std::size(kRates); ++pair) {
      const std::size_t at = kRopeAt + 2 * pair;
      k[at] = static_cast<float>(std::cos(kRates[pair] * t));
      k[at + 1] = static_cast<float>(std::sin(kRates[pair] * t));
      q[at] = 2.5f * k[at];
      q[at + 1] = 2.5f * k[at + 1];
    }
    all.q.insert(all.q.end(), q.begin(), q.end());
    all.k.insert(all.k.end(), k.begin(), k.end());
    all.v.insert(all.v.end(), k.begin(), k.begin() + kValue);
    // What the indexer was taught: the words, the first tokens, and about how far away they are.
    std::array<double, kIndexDim> key{};
    for (std::size_t n = 0; n < kContent; ++n) key[n] = static_cast<double>(word.content[n]);
    key[kSinkAt] = static_cast<double>(k[kSinkAt]);
    key[kRecencyAt] = 4.0 * (t / 8) * 8 / std::max(length, 8);
    double largest = 0;
    for (const double one : key) largest = std::max(largest, std::abs(one));
    const double scale = std::exp2(std::ceil(std::log2(largest)) - 3);
    all.index_scales.push_back(static_cast<float>(scale));
    for (const double one : key) all.index_keys.push_back(code_of(one / scale));
    for (int head = 0; head < index_heads; ++head) {
      const Content& mask = masks[static_cast<std::size_t>(head)];
      for (std::size_t n = 0; n < kIndexDim; ++n) {
        double number = 0;
        if (n < kContent) number = static_cast<double>(word.content[n] * mask[n]);
        if (n == kSinkAt) number = 1;
        if (n == kRecencyAt) number = 1;
        all.index_q.push_back(code_of(number));
      }
      const int weight = static_cast<int>(13 * lab::uniform(taught));
      all.index_weights.push_back(static_cast<float>(4 + weight) / 16);
    }
  }
  const int pages = tiles_of(length, page_size);
  for (int page = 0; page < pages; ++page) all.table.push_back((5 * page + 3) % pages);
  std::vector<int> seen(all.table);
  std::sort(seen.begin(), seen.end());
  if (std::adjacent_find(seen.begin(), seen.end()) != seen.end()) {
    for (int page = 0; page < pages; ++page)
      all.table[static_cast<std::size_t>(page)] = pages - 1 - page;
  }
  all.cache.assign(static_cast<std::size_t>(pages * page_size * kKey), 0.0f);
  for (int t = 0; t < length; ++t) {
    std::copy_n(all.k.begin() + t * kKey, kKey,
                all.cache.begin() + row_of(all, page_size, t) * kKey);
  }
  return all;
}

int row_of(const Inputs& inputs, int page_size, int token) {
  return inputs.table[static_cast<std::size_t>(token / page_size)] * page_size + token % page_size;
}

// ---- masks --------------------------------------------------------------------------------------------

namespace {

/// The lot of a block of pairs, of `length`.
int lot_of(int query_block, int key_block, int length) {
  constexpr std::uint64_t kBits = 0xFFFFFFFF;
  std::uint64_t lot = (static_cast<std::uint64_t>(query_block) * 0x9E3779B1 & kBits) ^
                      (static_cast<std::uint64_t>(key_block) * 0x85EBCA6B & kBits);
  lot = (lot ^ lot >> 15) * 0x2C1B3C6D & kBits;
  lot = (lot ^ lot >> 12) * 0x297A2D39 & kBits;
  return static_cast<int>((lot ^ lot >> 15) % static_cast<std::uint64_t>(length));
}

}  // namespace

bool sees(Method method, int length, int window, const std::vector<int>& documents, int query,
          int key) {
  const int distance = query - key;
  if (method == Method::prefix && key < window) return true;
  if (distance < 0) return false;
  const int of_query = query / kBlock, of_key = key / kBlock;
  switch (method) {
    case Method::window:
      return key < kSinks || distance <= window - 1;
    case Method::strided:
      return distance < window || distance % window == 0;
    case Method::block_sparse:
      return of_key == 0 || of_key == of_query || lot_of(of_query, of_key, length) < window;
    case Method::documents:
      return documents[static_cast<std::size_t>(query)] == documents[static_cast<std::size_t>(key)];
    case Method::own:
      return distance <= 3 || distance % 5 == 0;
    default:
      return true;
  }
}

TileKind kind_of(const std::vector<int>& pairs, int length, int tile, int query_tile,
                 int key_tile) {
  int seen = 0, all = 0;
  for (int q = query_tile * tile; q < std::min((query_tile + 1) * tile, length); ++q) {
    for (int k = key_tile * tile; k < std::min((key_tile + 1) * tile, length); ++k) {
      seen += pairs[static_cast<std::size_t>(q * length + k)];
      ++all;
    }
  }
  return seen == 0 ? TileKind::skipped : seen == all ? TileKind::full : TileKind::partial;
}

// ---- attention ----------------------------------------------------------------------------------------

numeric::Bounded reference_score(const float* q, const float* k) {
  numeric::RunningSum sum(numeric::Adding::in_order);
  for (int i = 0; i < kKey; ++i) sum.add(static_cast<double>(q[i]) * static_cast<double>(k[i]));
  const double scale = 1 / std::sqrt(static_cast<double>(kKey));
  const double value = scale * sum.sum();
  return {value, scale * sum.bound() + 4 * kUnit * std::abs(value)};
}

std::vector<double> weights_of(const std::vector<Scored>& scored) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const Scored& one : scored) largest = std::max(largest, one.score.value);
  std::vector<double> weights;
  for (const Scored& one : scored) weights.push_back(std::exp(one.score.value - largest));
  for (const double one : weights) sum += one;
  for (double& one : weights) one /= sum;
  return weights;
}

numeric::AllBounded reference_attention(const std::vector<Scored>& scored, const float* values,
                                        int pitch, int steps) {
  numeric::AllBounded all;
  if (scored.empty()) {
    all.value.assign(kValue, 0.0);
    all.value.push_back(-std::numeric_limits<double>::infinity());
    all.bound.assign(kValue + 1, 0.0);
    return all;
  }
  double low = INFINITY, high = -INFINITY, off = 0, sum = 0;
  for (const Scored& one : scored) {
    low = std::min(low, one.score.value);
    high = std::max(high, one.score.value);
    off = std::max(off, one.score.bound);
  }
  for (const Scored& one : scored) sum += std::exp(one.score.value - high);
  // A weight: its score, the difference, exp to 2 ulp; as often the rescales; the sums.
  const double relative = 2 * off + 4 * (high - low) * kUnit +
                          (8.0 * (steps + 2) + static_cast<double>(scored.size())) * kUnit;
  const std::vector<double> weights = weights_of(scored);
  for (int n = 0; n < kValue; ++n) {
    double value = 0, magnitude = 0;
    for (std::size_t i = 0; i < scored.size(); ++i) {
      const double term = weights[i] * static_cast<double>(values[scored[i].key * pitch + n]);
      value += term;
      magnitude += std::abs(term);
    }
    all.push_back({value, 2 * relative * magnitude + 0x1p-100});
  }
  const double log_sum = high + std::log(sum);
  all.push_back({log_sum, relative + off + 4 * kUnit * std::abs(log_sum)});
  return all;
}

// ---- the indexer --------------------------------------------------------------------------------------

std::vector<double> reference_index(const Inputs& inputs, int query) {
  std::vector<double> scores;
  const auto number = [](const std::vector<std::uint8_t>& codes, int row, int i) {
    return value_of(codes[static_cast<std::size_t>(row * kIndexDim + i)]);
  };
  for (int token = 0; token <= query; ++token) {
    double score = 0;
    for (int head = 0; head < inputs.index_heads; ++head) {
      const int row = query * inputs.index_heads + head;
      double dot = 0;
      for (int i = 0; i < kIndexDim; ++i)
        dot += number(inputs.index_q, row, i) * number(inputs.index_keys, token, i);
      if (dot > 0)
        score += static_cast<double>(inputs.index_weights[static_cast<std::size_t>(row)]) * dot;
    }
    scores.push_back(score *
                     static_cast<double>(inputs.index_scales[static_cast<std::size_t>(token)]));
  }
  return scores;
}

std::vector<int> reference_top_k(const std::vector<double>& scores, int k) {
  std::vector<int> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  order.resize(std::min(order.size(), static_cast<std::size_t>(k)));
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace tilestep::sparse_attention
