// One key of the followed request in four bits: what a channel far from 0 costs the others, per scale.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "kernels/attention/decode/run/run.hpp"
#include "kernels/attention/kv_cache/quantize.hpp"
#include "scenes/attention/decode/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using decode::KvType, decode::Scales;
using words::counted, words::significant;

namespace {

constexpr KvType kType = KvType::int4;

std::size_t zeros_of(const std::vector<float>& stored) {
  return static_cast<std::size_t>(std::count(stored.begin(), stored.end(), 0.0f));
}

/// A stroke for each distinct number, labelled with its count where it occurs more than once.
Ticks strokes(Name name, const std::vector<float>& values, std::uint8_t tone) {
  std::map<float, int> counts;
  for (const float value : values) ++counts[value];
  Ticks ticks{items(name, static_cast<int>(counts.size()))};
  ticks.x = "key_value";
  ticks.items.tone.all = tone;
  for (const auto& [value, count] : counts) {
    ticks.at.push_back(static_cast<double>(value));
    ticks.items.names.push_back(count > 1 ? fmt::format("{}×", count) : std::string());
    ticks.items.state.each.push_back(value == 0 && count > 1 ? State::wrong : State::plain);
  }
  return ticks;
}

}  // namespace

/// The key of head 0 and the followed request's first token, as in the run and in four bits.
const KeyRow& DecodeScene::key_row() const {
  if (key_row_) return *key_row_;
  KeyRow& row = key_row_.emplace();
  const decode::Inputs inputs = decode::inputs_of(decode::excerpt_of(params_).params);
  const int channels = inputs.layer.row.key;
  const int page = inputs.tables.at(static_cast<std::size_t>(trace_.request)).front();
  const std::size_t first = inputs.key_at(page, 0, 0);
  const auto of = [&](const std::vector<float>& all) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
    return std::vector<float>(begin, begin + channels);
  };
  const auto token = kv_cache::quantized(inputs.k, inputs, channels, kType, Scales::token),
             channel = kv_cache::quantized(inputs.k, inputs, channels, kType, Scales::channel);
  row.value = of(inputs.k);
  row.by_token = of(token.values);
  row.by_channel = of(channel.values);
  row.step = token.scales[first / static_cast<std::size_t>(channels)];
  row.steps.assign(channel.scales.begin(), channel.scales.begin() + channels);
  return row;
}

/// On one number line: the key, and below it its quantized forms.
Picture DecodeScene::key_in_few_bits() const {
  const KeyRow& row = key_row();
  const auto larger = [](float a, float b) { return std::abs(a) < std::abs(b); };
  const auto most = std::max_element(row.value.begin(), row.value.end(), larger);
  const double end = rounded(0, static_cast<double>(std::abs(*most))).second;
  const auto channels = static_cast<std::int64_t>(row.value.size());
  const std::uint8_t tone = tone_of(trace_.request);
  Ticks was = strokes("key_was", row.value, tone);
  for (std::size_t k = 0; k < was.at.size(); ++k) {
    const auto value = static_cast<float>(was.at[k]);
    if (2 * std::abs(value) < std::abs(*most)) continue;
    const auto channel = std::find(row.value.begin(), row.value.end(), value) - row.value.begin();
    was.items.names[k] = fmt::format("channel {}", channel);
  }
  Box as_it_is =
      box({"key_as_it_is"}, {std::move(was)},
          text(fmt::format("one key of R{}, {}: channel {} is {} in every token", trace_.request,
                           counted(channels, "channel"), most - row.value.begin(),
                           *most < 0 ? "far below 0" : "far above 0"),
               fmt::format("one key, {}", counted(channels, "channel"))));
  Box by_token =
      box({"key_by_token"}, {},
          text(fmt::format("INT4, one scale per token: numbers {} apart, {} of {} become 0",
                           significant(static_cast<double>(row.step), 3), zeros_of(row.by_token),
                           channels),
               fmt::format("a scale per token: {} become 0", zeros_of(row.by_token))));
  const auto levels = static_cast<int>(decode::largest_of(kType));
  for (int level = -levels; level <= levels; ++level) {
    by_token.marks.emplace_back(Rule{.key = {"level", level + levels},
                                     .axis = "key_value",
                                     .at = level * static_cast<double>(row.step),
                                     .state = State::to_come});
  }
  by_token.marks.emplace_back(strokes("key_by_token_is", row.by_token, tone));
  std::vector<float> steps = row.steps;
  std::sort(steps.begin(), steps.end());
  Box by_channel =
      box({"key_by_channel"}, {strokes("key_by_channel_is", row.by_channel, tone)},
          text(fmt::format("a scale per channel: {} apart (median), {} of {} become 0",
                           significant(static_cast<double>(steps[steps.size() / 2]), 3),
                           zeros_of(row.by_channel), channels),
               fmt::format("a scale per channel: {} become 0", zeros_of(row.by_channel))));
  for (Box* each : {&as_it_is, &by_token, &by_channel}) each->least_height = 2.6f;
  return {text("The cost of one channel far from 0"),
          {{.name = "key_value", .low = -end, .high = end, .ticks = true}},
          column({"key_row"}, {std::move(as_it_is), std::move(by_token), std::move(by_channel)},
                 {.even = true})};
}

measured::View DecodeScene::channels_view() const {
  return {.name = "Channels",
          .how = "the run's own numbers; crossed out: rounded to 0",
          .plots = {measured::Pictured{
              .id = "key_channels",
              .least_height = 180,
              .rows = {.table = "format_errors"},
              .picture = [this](const lab::Table&) { return key_in_few_bits(); }}},
          .needs = "format_errors",
          .missing = "Latent rows have no such channels: choose another scheme.",
          .computed = true};
}

}  // namespace tilestep::scenes
