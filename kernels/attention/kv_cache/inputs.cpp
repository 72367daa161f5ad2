#include "kernels/attention/kv_cache/inputs.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/numeric/small_float.hpp"

namespace tilestep::kv_cache {
namespace {

constexpr int kChannelsPerOutlier = 16;

/// Moves some channels of each head by an amount that all its tokens share.
void move_channels(Inputs& inputs, std::mt19937& generator) {
  const int channels = inputs.layer.row.key;
  for (int head = 0; head < inputs.layer.cached_heads; ++head) {
    for (int i = 0; i < channels / kChannelsPerOutlier; ++i) {
      const std::size_t channel = generator() % static_cast<unsigned>(channels);
      const double sign = generator() % 2 == 0 ? 1 : -1;
      const auto by = static_cast<float>(sign * (8 + 8 * lab::uniform(generator)));
      for (int page = 0; page < inputs.pages; ++page) {
        for (int slot = 0; slot < inputs.page_size; ++slot) {
          inputs.k[inputs.key_at(page, head, slot) + channel] += by;
        }
      }
    }
  }
}

}  // namespace

int Inputs::table_pitch() const {
  std::size_t most = 1;
  for (const auto& table : tables) most = std::max(most, table.size());
  return static_cast<int>(most);
}

std::vector<int> Inputs::flat_tables() const {
  const auto pitch = static_cast<std::size_t>(table_pitch());
  std::vector<int> flat;
  for (const auto& table : tables) {
    flat.insert(flat.end(), table.begin(), table.end());
    flat.insert(flat.end(), pitch - table.size(), -1);
  }
  return flat;
}

namespace {

/// Number of a token's row of a K/V head.
std::size_t row_at(const Inputs& inputs, int page, int head, int slot) {
  return numeric::index_of(page * inputs.layer.cached_heads + head, slot, inputs.page_size);
}

}  // namespace

std::size_t Inputs::key_at(int page, int head, int slot) const {
  return row_at(*this, page, head, slot) * static_cast<std::size_t>(layer.row.key);
}

std::size_t Inputs::value_at(int page, int head, int slot) const {
  return row_at(*this, page, head, slot) * static_cast<std::size_t>(layer.row.value);
}

std::vector<std::uint16_t> words_of(const std::vector<float>& values) {
  std::vector<std::uint16_t> words;
  words.reserve(values.size());
  for (const float value : values) words.push_back(numeric::Bf16::bits(value));
  return words;
}

std::vector<float> values_of(const std::vector<std::uint16_t>& words) {
  std::vector<float> values;
  values.reserve(words.size());
  for (const std::uint16_t word : words) values.push_back(numeric::Bf16::value(word));
  return values;
}

Inputs make_inputs(const Case& of, int pages, std::vector<int> contexts,
                   std::vector<std::vector<int>> tables) {
  Inputs inputs;
  inputs.layer = layer_shape(of);
  inputs.pages = pages;
  inputs.page_size = of.page_size;
  inputs.contexts = std::move(contexts);
  inputs.tables = std::move(tables);
  const RowShape& row = inputs.layer.row;
  inputs.scale = score_scale(row);
  std::mt19937 generator = lab::generator_of(of.seed);
  const std::size_t slots =
      numeric::elements_of(pages * inputs.layer.cached_heads, inputs.page_size);
  inputs.q = lab::normal_floats(generator,
                                numeric::elements_of(inputs.batch() * inputs.layer.heads, row.key));
  inputs.k = lab::normal_floats(generator, slots * static_cast<std::size_t>(row.key));
  if (row.latent == 0) {
    inputs.v = lab::normal_floats(generator, slots * static_cast<std::size_t>(row.value));
    move_channels(inputs, generator);
  }
  for (auto* tensor : {&inputs.q, &inputs.k, &inputs.v}) {
    for (float& value : *tensor) value = numeric::Bf16::round(value);
  }
  return inputs;
}

Inputs make_inputs(const Case& of, const std::vector<int>& contexts) {
  const int size = of.page_size;
  int pages = 1;  // one that no request has
  for (const int tokens : contexts) pages += (tokens + size - 1) / size;
  std::vector<int> order(static_cast<std::size_t>(pages));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 generator = lab::generator_of(of.seed + 5);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[generator() % i]);
  std::vector<std::vector<int>> tables;
  for (const int tokens : contexts) {
    const auto count = static_cast<std::ptrdiff_t>((tokens + size - 1) / size);
    tables.emplace_back(order.end() - count, order.end());
    order.erase(order.end() - count, order.end());
    const std::vector<int>& first = tables.front();
    const int common = std::min({of.prefix, tokens, contexts.front()}) / size;
    std::copy_n(first.begin(), common, tables.back().begin());
  }
  return make_inputs(of, pages, contexts, std::move(tables));
}

}  // namespace tilestep::kv_cache
