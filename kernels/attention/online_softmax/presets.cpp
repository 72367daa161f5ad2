#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "kernels/attention/online_softmax/lesson.hpp"
#include "kernels/base/lab/list.hpp"
#include "kernels/base/lab/number.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/numeric/random.hpp"

namespace tilestep::online_softmax {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

// The lesson's worked example: four tiles of four keys.
constexpr std::array<float, 16> kExampleScores = {1, 3, 0.5f, 2, 2.5f, 0, 5, 1,
                                                  4, 2, 1,    3, 1,    0, 6, 2};
constexpr std::array<float, 16> kExampleValues = {10, 12, 8, 11, 19, 20, 13, 15,
                                                  13, 8,  9, 12, 13, 10, 15, 8};

enum class Stream : std::uint64_t { scores = 1, values = 2, tops = 3 };

/// A number in [0, 1) that depends on nothing but its arguments, so that data is the same on every
/// machine and needs no order.
double uniform(const Params& p, Stream stream, std::int64_t row, std::int64_t column) {
  std::uint64_t x = 0;
  for (const std::int64_t part : {p.seed, static_cast<std::int64_t>(stream), row, column}) {
    x = numeric::mixed(x ^ static_cast<std::uint64_t>(part));
  }
  return static_cast<double>(x >> 11) * 0x1.0p-53;
}

/// To tenths, so that the numbers in the picture are the numbers that were used.
float tenths(double value) {
  return static_cast<float>(std::round(value * 10) / 10);
}

/// Bell-shaped enough for scores: the sum of three uniforms, in −6…6.
double spread(const Params& p, int query, int key) {
  double sum = 0;
  for (int i = 0; i < 3; ++i) sum += uniform(p, Stream::scores, query, 3LL * key + i);
  return 4 * (sum - 1.5);
}

/// A causal tail: the last tiles are masked, the tile before them half; with three tiles or more
/// the first tile is masked too, so that the recurrence starts from m = −inf twice.
bool is_visible(const Params& p, int query, int key) {
  const int tiles = p.tiles();
  const int cut_tile = tiles < 3 ? 0 : std::clamp(3 * tiles / 4, 1, tiles - 2);
  const int first_key = cut_tile * p.tile_width;
  const int tile_keys = std::min(p.tile_width, p.keys - first_key);
  const int half = std::max(1, tile_keys / 2);
  // A later query sees more keys, as in a causal mask, but never the whole of the cut tile.
  const int more = query % std::max(1, tile_keys - half);
  return key >= (tiles < 3 ? 0 : p.tile_width) && key < first_key + half + more;
}

/// Of tiles whose largest scores rise or fall by a fixed step.
float stepped_score(const Params& p, int query, int key) {
  const int tile = key / p.tile_width;
  const int tile_keys = std::min(p.tile_width, p.keys - tile * p.tile_width);
  const double tiles = p.tiles();
  const auto top =
      static_cast<float>(p.preset == Preset::rising ? 1 + tile * std::min(1.0, 200 / tiles)
                                                    : 6 - tile * std::min(0.5, 20 / tiles));
  const int top_key = static_cast<int>(uniform(p, Stream::tops, query, tile) * tile_keys);
  if (key - tile * p.tile_width == top_key) return top;
  return top - tenths(0.3 + 2.7 * uniform(p, Stream::scores, query, key));
}

/// "1,2.5,-inf" taken apart; nothing if it is not of that form.
std::optional<std::vector<float>> parsed_scores(std::string_view text) {
  auto scores = lab::list_of(text, [](std::string_view one) -> std::optional<float> {
    if (one == "-inf") return kMasked;
    const auto number = lab::number_of<double>(one);
    if (!number || !(std::abs(*number) <= kMostScore)) return std::nullopt;
    return static_cast<float>(*number);
  });
  if (scores && scores->size() > kMostScores) scores.reset();
  return scores;
}

/// `row` is what the worked example and custom scores repeat.
float score(const Params& p, const std::vector<float>& row, int query, int key) {
  switch (p.preset) {
    case Preset::worked_example:
    case Preset::custom:
      return row[static_cast<std::size_t>(key + query) % row.size()];
    case Preset::random:
      return tenths(spread(p, query, key));
    case Preset::rising:
    case Preset::falling:
      return stepped_score(p, query, key);
    case Preset::equal:
      return 2.0f + 0.5f * static_cast<float>(query % 8);
    case Preset::outlier:
      // FP32 ends at 3.4e38 = exp(88.7): one of these terms alone is past it.
      if (key == 5 * p.keys / 8) return 120.0f + static_cast<float>(query % 8);
      if (key == p.keys / 4) return 95.0f;
      return tenths(spread(p, query, key));
    case Preset::masked:
      return is_visible(p, query, key) ? tenths(spread(p, query, key)) : kMasked;
    case Preset::all_masked:
      break;
  }
  return kMasked;
}

float value(const Params& p, int key, int component) {
  if (p.preset == Preset::worked_example || p.preset == Preset::custom) {
    return kExampleValues[key % 16] + static_cast<float>(component);
  }
  const double u = uniform(p, Stream::values, key, component);
  // Only `random` has values of both signs, where terms of O cancel.
  return tenths(p.preset == Preset::random ? -10 + 30 * u : 5 + 15 * u);
}

}  // namespace

bool is_list_of_scores(std::string_view text) {
  return parsed_scores(text).has_value();
}

std::string scores_text(const std::vector<float>& scores) {
  std::string text;
  for (const float score : scores) {
    const double tenth = std::round(static_cast<double>(score) * 10) / 10;
    text += text.empty() ? "" : ",";
    text += std::isinf(score) ? "-inf" : fmt::format("{}", tenth == 0 ? 0.0 : tenth);
  }
  return text;
}

Inputs make_inputs(const Params& params, lab::Progress& progress) {
  Inputs inputs;
  inputs.scores.reserve(numeric::elements_of(params.queries, params.keys));
  inputs.values.reserve(numeric::elements_of(params.keys, params.head_dim));
  std::vector<float> row;
  if (params.preset == Preset::custom) row = parsed_scores(params.scores).value_or(row);
  if (row.empty()) row.assign(kExampleScores.begin(), kExampleScores.end());
  for (int query = 0; query < params.queries; ++query) {
    progress.check();
    for (int key = 0; key < params.keys; ++key) {
      inputs.scores.push_back(score(params, row, query, key));
    }
  }
  for (int key = 0; key < params.keys; ++key) {
    if (key % 4096 == 0) progress.check();
    for (int c = 0; c < params.head_dim; ++c) inputs.values.push_back(value(params, key, c));
  }
  return inputs;
}

}  // namespace tilestep::online_softmax
