// The charts beside the heads before anything has run, all by formula: many query rows against one, weights against
// cache over the batch, and the shares of a step's time when rows of a prompt ride along.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/attention/decode/scene.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using decode::MixedStep, decode::Phase, decode::Scheme;
using words::counted, words::significant;

namespace {

constexpr int kMostRows = decode::kRows.back();
constexpr int kKeyBlocks = 16;  ///< of the drawn matrix of scores
/// The last one would leave no room for the others: its time is in the formula.
constexpr int kDrawnSteps = static_cast<int>(decode::kRows.size()) - 1;
constexpr double kGiga = 1e9, kMilli = 1e3;

/// A step's reads and products: each has one tone in all charts.
enum Share : std::uint8_t { kWeights, kCache, kPrompt };
constexpr std::uint8_t kShareTone[] = {4, 1, 5};
constexpr const char* kShareName[] = {"weights", "cache", "prompt"};

/// The query rows that the user follows: one, unless others are picked.
int rows_of(const View& view) {
  const int picked = view.pick("rows", 1);
  return std::find(decode::kRows.begin(), decode::kRows.end(), picked) == decode::kRows.end()
             ? 1
             : picked;
}

/// A formula below a chart: the first to be dropped where there is no room.
Box one_line(Key key, Name name, Text formula) {
  return box(key, {lines(name, {std::move(formula)}, Lines::formula)}, {},
             {.rank = 3, .weight = 0, .least_height = 1.1f});
}

double cache_gigabytes(const decode::Params& params, Scheme scheme, double batch) {
  return batch * decode::model_context(params) * decode::model_token_bytes(params, scheme) / kGiga;
}

double crossing_of(const decode::Params& params) {
  return decode::crossing_batch(decode::kModelWeightBytes,
                                decode::model_token_bytes(params, params.scheme),
                                decode::model_context(params));
}

Axis gigabytes_axis(const decode::Params& params) {
  double least = decode::kModelWeightBytes / kGiga, most = least;
  for (const Scheme scheme : all_of<Scheme>()) {
    least = std::min(least, cache_gigabytes(params, scheme, 1));
    most = std::max(most, cache_gigabytes(params, scheme, decode::kMostBatch));
  }
  return {.name = "gigabytes",
          .kind = Axis::log,
          .low = std::pow(10, std::floor(std::log10(least))),
          .high = std::pow(10, std::ceil(std::log10(most))),
          .ticks = true};
}

}  // namespace

std::vector<Axis> DecodeScene::cost_axes() const {
  std::vector<std::string> rows;
  for (int i = 0; i < kDrawnSteps; ++i) {
    rows.push_back(std::to_string(decode::kRows[static_cast<std::size_t>(i)]));
  }
  const MixedStep longest = decode::mixed_step(params_, decode::kRows[kDrawnSteps - 1]);
  return {
      {.name = "key_block",
       .kind = Axis::band,
       .count = kKeyBlocks,
       .title = text(fmt::format("{} keys", decode::model_context(params_)), "keys"),
       .least_slot = 2},
      {.name = "query_row", .high = 1.2 * kMostRows, .title = text("query rows"), .ticks = true},
      {.name = "batch", .kind = Axis::log, .low = 1, .high = decode::kMostBatch, .ticks = true},
      gigabytes_axis(params_),
      {.name = "step_ms",
       .high = rounded(0, kMilli * longest.seconds()).second,
       .title = text("ms"),
       .ticks = true},
      {.name = "prompt_rows",
       .kind = Axis::band,
       .count = kDrawnSteps,
       .names = std::move(rows),
       .least_slot = 3}};
}

std::string DecodeScene::cost_sentence() const {
  const decode::LayerShape layer = params_.layer();
  const int context = decode::model_context(params_);
  // One row's FLOP per byte of cache is the formulas' number; for many rows Q and O count as well.
  const double one = decode::intensity(layer, params_.kv_dtype, params_.scales);
  const Phase many = decode::attention_of(layer, kMostRows, context);
  return fmt::format(
      "By formula: 1 query row does {} FLOP per cache byte, {} rows (with Q and O) {}; the ridge "
      "is at {:.0f}.",
      significant(one, 3), kMostRows, significant(many.intensity(), 3), decode::kRidge);
}

// ---- many query rows against one ----------------------------------------------------------------------------

/// The matrix of scores to scale: all rows of a prompt, and the followed ones among them.
Box DecodeScene::score_matrix(const View& view) const {
  const int rows = rows_of(view);
  Bars all{items("prefill", std::vector<float>(kKeyBlocks, kMostRows))};
  Bars taken{items("rows_taken", std::vector<float>(kKeyBlocks, static_cast<float>(rows)))};
  for (Bars* bars : {&all, &taken}) {
    bars->x = "key_block";
    bars->y = "query_row";
  }
  all.items.state.all = State::to_come;
  taken.items.state.all = State::current;
  taken.items.about = {{"rows", {rows, {}}}};
  // A prompt's rows are multiplied by each head's own keys: there mla shares none.
  const int group =
      params_.scheme == Scheme::mla && rows > 1 ? 1 : params_.heads / params_.layer().cached_heads;
  const Phase phase = decode::attention_of(params_.layer(), rows, decode::model_context(params_));
  Box matrix = box({"matrix"}, {all, taken}, {}, {.least_height = 2, .left = 2.8f});
  return column(
      {"score_matrix"},
      {labelled({"matrix_box"}, std::move(matrix),
                text(fmt::format("{} rows × {} keys, to scale", kMostRows,
                                 decode::model_context(params_)),
                     "scores, to scale", "scores"),
                {.weight = 1, .least_height = 3}),
       one_line({"matrix_said"}, "matrix_line",
                text(fmt::format("uses of a key = {}·{} = {}, with Q and O {} FLOP/B", rows, group,
                                 rows * group, significant(phase.intensity(), 3)),
                     fmt::format("uses = {}", rows * group)))},
      {.weight = 1, .least_width = 7, .least_height = 2.1f});
}

// ---- a step of a model --------------------------------------------------------------------------------------

/// Bytes that a step reads, over the batch: the weights once, every request's cache.
Box DecodeScene::batch_chart() const {
  Curve weights{.key = {"weights_read"},
                .x = {1, decode::kMostBatch},
                .y = {decode::kModelWeightBytes / kGiga, decode::kModelWeightBytes / kGiga},
                .ax = "batch",
                .ay = "gigabytes"};
  weights.tone = kShareTone[kWeights];
  weights.about = {"share", kWeights};
  weights.end = text("weights");
  Box made = box({"batch_lines"}, {weights}, {}, {.least_height = 2, .left = 3, .right = 4.3f});
  for (const Scheme scheme : all_of<Scheme>()) {
    const bool own = scheme == params_.scheme;
    Curve cache{.key = {"cache_read", static_cast<int>(scheme)},
                .x = {1, decode::kMostBatch},
                .y = {cache_gigabytes(params_, scheme, 1),
                      cache_gigabytes(params_, scheme, decode::kMostBatch)},
                .ax = "batch",
                .ay = "gigabytes"};
    cache.tone = own ? kShareTone[kCache] : 0;
    cache.state = own ? State::plain : State::to_come;
    cache.flags = own ? kPicked : kNone;
    cache.about = {"scheme", static_cast<int>(scheme)};
    if (own) cache.base = {0};
    cache.end = text(std::string(name_of(scheme)));
    made.marks.emplace_back(std::move(cache));
  }
  const double crossing = crossing_of(params_);
  if (crossing >= 1 && crossing <= decode::kMostBatch) {
    Curve point{.key = {"crossing"},
                .x = {crossing},
                .y = {decode::kModelWeightBytes / kGiga},
                .ax = "batch",
                .ay = "gigabytes"};
    point.flags = kPicked;
    made.marks.emplace_back(std::move(point));
    made.marks.emplace_back(Rule{.key = {"crossing_batch"},
                                 .axis = "batch",
                                 .at = crossing,
                                 .label = text(fmt::format("batch {:.0f}", std::ceil(crossing)))});
  }
  return column(
      {"batch_chart"},
      {labelled(
           {"batch_box"}, std::move(made),
           text("GB/step, weights and cache by batch", "weights and cache by batch", "by batch"),
           {.weight = 1, .least_height = 3}),
       one_line({"batch_said"}, "batch_line",
                text(fmt::format("batch = {} / {} = {}",
                                 significant(decode::kModelWeightBytes / kGiga, 3),
                                 significant(cache_gigabytes(params_, params_.scheme, 1), 3),
                                 significant(crossing, 3)),
                     fmt::format("batch = {}", significant(crossing, 3))))},
      {.close = true, .weight = 1, .least_width = 9, .least_height = 3.8f});
}

/// The shares of a step's time when rows of a prompt ride along with decoding requests.
Box DecodeScene::mixed_steps(const View& view) const {
  SpanList list("step_share", "step_ms", "prompt_rows", "share");
  std::vector<int> rows;
  const int picked = rows_of(view);
  for (int i = 0; i < kDrawnSteps; ++i) {
    const int count = decode::kRows[static_cast<std::size_t>(i)];
    const MixedStep step = decode::mixed_step(params_, count);
    double at = 0;
    for (const Share share : {kWeights, kCache, kPrompt}) {
      const double took = kMilli * (share == kWeights ? step.weights
                                    : share == kCache ? step.cache
                                                      : step.chunk);
      list.add({.lane = i,
                .begin = at,
                .end = at + took,
                .tone = kShareTone[share],
                .name = kShareName[share],
                .about = share,
                .id = 3 * i + share,
                .flags = count == picked ? kPicked : kNone});
      rows.push_back(count);
      at += took;
    }
  }
  Spans spans = list.made();
  spans.items.about.insert(spans.items.about.begin(), {"rows", {0, rows}});
  spans.items.act = {Act::pick, "rows"};
  const MixedStep now = decode::mixed_step(params_, picked);
  const std::string sum = fmt::format("{:.1f} ms", kMilli * now.seconds());
  const auto part = [](double seconds, Share share) {
    return Run{fmt::format("{:.1f}", kMilli * seconds), {"share", share}, {}, kShareTone[share]};
  };
  Text said{{{"t = "},
             part(now.weights, kWeights),
             {"+"},
             part(now.cache, kCache),
             {"+"},
             part(now.chunk, kPrompt),
             {" = " + sum}},
            {{"t = " + sum}}};
  return column(
      {"mixed_steps"},
      {labelled(
           {"mixed_box"},
           box({"mixed_lanes"}, {std::move(spans)}, {}, {.least_height = 2, .left = 2.5f}),
           text(fmt::format("a step of {} decoding + prompt rows", decode::model_batch(params_)),
                "decoding + prompt rows", "prompt rows"),
           {.weight = 1, .least_height = 3}),
       one_line({"mixed_said"}, "mixed_line", std::move(said))},
      {.close = true, .rank = 1, .weight = 1, .least_width = 9, .least_height = 3.8f});
}

/// The explanation of an item of these charts; empty for any other.
std::string DecodeScene::explain_cost(const Key& key) const {
  const int context = decode::model_context(params_);
  if (key.is({"cache_read"}) && key.i >= 0 && key.i < static_cast<int>(count_of<Scheme>())) {
    const auto scheme = static_cast<Scheme>(key.i);
    return fmt::format(
        "{}: {} GB cache per request of {} tokens\n32 layers · {} B per token", name_of(scheme),
        significant(cache_gigabytes(params_, scheme, 1), 3), context,
        significant(decode::model_token_bytes(params_, scheme) / decode::kModelLayers, 6));
  }
  if (key.is({"weights_read"})) {
    return "8.03 billion weights in BF16 (Llama 3.1 8B)\nread once per step at any batch";
  }
  if (key.is({"crossing"})) {
    return fmt::format("from batch {:.0f} on a step reads more cache than weights",
                       std::ceil(crossing_of(params_)));
  }
  if (!key.is({"step_share"}) || key.i < 0 || key.i >= 3 * kDrawnSteps) return {};
  const int rows = decode::kRows[static_cast<std::size_t>(key.i / 3)];
  const int multiplied = decode::model_batch(params_) + rows;
  const MixedStep step = decode::mixed_step(params_, rows);
  switch (key.i % 3) {
    case kWeights:
      return fmt::format(
          "weights: {:.2f} ms\nread once and multiplied by {} rows: free up to {:.0f} rows",
          kMilli * step.weights, multiplied, decode::kFreeRows);
    case kCache:
      return fmt::format("cache: {:.2f} ms\n{} requests read {} tokens each", kMilli * step.cache,
                         decode::model_batch(params_), context);
    default:
      break;
  }
  return fmt::format("prompt: {:.2f} ms\nattention of {} to {} tokens", kMilli * step.chunk,
                     counted(rows, "row"), context);
}

Box DecodeScene::costs(const View& view) const {
  return column({"right"},
                {row({"rows_above"}, {score_matrix(view)}, {.weight = 1.8f, .least_height = 2.1f}),
                 box({"gap"}, {}, {}, {.rank = 9, .weight = 0, .least_height = 0.5f}),
                 row({"below"}, {batch_chart(), mixed_steps(view)},
                     {.even = true, .weight = 1.5f, .least_height = 3.6f})},
                {.even = true});
}

}  // namespace tilestep::scenes
