// What a recipe does, step by step: channels as bars, and the product's error beside that of rounding to nearest.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/numbers/low_bit/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using low_bit::kRecipeInputs, low_bit::Recipe, low_bit::RecipeStep;
using words::significant;

namespace {

constexpr float kLeftOfRecipe = 3, kRightOfRecipe = 9;

/// What the two rows of bars are.
struct Channels {
  const char *first, *second;
};
Channels channels_of(Recipe recipe) {
  switch (recipe) {
    case Recipe::gptq:
      return {"rounded: RMS error", "to come: RMS correction"};
    case Recipe::awq:
      return {"inputs: mean |x|", "s: weights are multiplied by it, then rounded, then divided"};
    default:
      return {"inputs: largest |x| / s", "weights: largest |w| · s"};
  }
}

double most_of(const std::vector<RecipeStep>& steps, std::vector<double> RecipeStep::*row) {
  double most = 0;
  for (const RecipeStep& step : steps) {
    for (const double x : step.*row) most = std::max(most, x);
  }
  return most;
}

}  // namespace

const RecipeStep& LowBitScene::recipe_step(Cursor cursor) const {
  return trace_.recipe_steps[static_cast<std::size_t>(cursor.tile - 1)];
}

std::vector<Axis> LowBitScene::recipe_axes() const {
  const auto& steps = trace_.recipe_steps;
  double first = most_of(steps, &RecipeStep::first), second = most_of(steps, &RecipeStep::second);
  // Errors and corrections have one scale, and so have inputs and weights between which something is moved.
  if (trace_.recipe != Recipe::awq) first = second = std::max(first, second);
  double most = 0;
  for (const RecipeStep& step : steps) most = std::max({most, step.error, step.plain});
  const bool columns = trace_.recipe == Recipe::gptq;
  const double high = rounded(0, std::max(most, 1.0)).second;
  return {{.name = "input",
           .kind = Axis::band,
           .count = kRecipeInputs,
           .title = text("inputs of the layer", "inputs"),
           .least_slot = 2},
          {.name = "first", .high = rounded(0, std::max(first, 0.001)).second},
          {.name = "second", .high = rounded(0, std::max(second, 0.001)).second},
          {.name = "choice",
           .high = columns ? double(kRecipeInputs) : 1.0,
           .step = columns ? 8 : 0.5,
           .title = text(columns ? "columns rounded" : "α"),
           .ticks = true},
          {.name = "loss",
           .high = high,
           .step = high,
           .title = text("error of the product, %", "error, %"),
           .ticks = true}};
}

Bars LowBitScene::channel_bars(Cursor cursor, bool second) const {
  const bool columns = trace_.recipe == Recipe::gptq;
  std::vector<float> values;
  if (cursor.tile > 0) {
    const RecipeStep& step = recipe_step(cursor);
    for (const double x : second ? step.second : step.first)
      values.push_back(static_cast<float>(x));
  }
  const Name name = columns ? (second ? Name("correction") : Name("rounded"))
                            : (second ? Name("factor") : Name("channel"));
  Bars bars{items(name, values), "input", second && !columns ? Name("second") : Name("first")};
  bars.items.about = {{"input_at", {0, numbers(static_cast<int>(values.size()))}}};
  bars.items.tone.all = second == columns ? 1 : 9;
  if (columns && !second) {
    bars.items.state.each.assign(values.size(), State::plain);
    if (cursor.tile > 0) {
      bars.items.state.each[static_cast<std::size_t>(cursor.tile - 1)] = State::current;
    }
  }
  return bars;
}

/// Of gptq in one: what is rounded, and what is to come.
std::vector<Box> LowBitScene::channel_boxes(Cursor cursor) const {
  const Channels titles = channels_of(trace_.recipe);
  const Layout layout{.least_height = 2.4f, .left = kLeftOfRecipe, .right = kRightOfRecipe};
  Box first = box({"channels"}, {channel_bars(cursor, false)}, text(titles.first), layout);
  Box second = box({"corrected"}, {channel_bars(cursor, true)}, text(titles.second), layout);
  if (trace_.recipe != Recipe::gptq) return {std::move(first), std::move(second)};
  first.marks.emplace_back(channel_bars(cursor, true));
  first.label = text("errors, and corrections to come", "errors, corrections");
  first.weight = 2;
  return {std::move(first)};
}

Box LowBitScene::loss_box(Cursor cursor) const {
  Curve plain{.key = {"plain"},
              .ax = "choice",
              .ay = "loss",
              .state = State::to_come,
              .dashed = true,
              .end = text("rounded to nearest", "nearest")};
  Curve error{.key = {"loss"},
              .ax = "choice",
              .ay = "loss",
              .tone = 9,
              .end = text(std::string(name_of(trace_.recipe)))};
  for (int i = 0; i < cursor.tile; ++i) {
    const RecipeStep& step = trace_.recipe_steps[static_cast<std::size_t>(i)];
    for (Curve* curve : {&plain, &error}) curve->x.push_back(step.at);
    plain.y.push_back(step.plain);
    error.y.push_back(step.error);
    error.base.push_back(step.plain);
  }
  std::vector<Mark> marks;
  if (cursor.tile > 0) marks = {std::move(plain), std::move(error)};
  return box({"losses"}, std::move(marks), {},
             {.weight = 1.4f, .least_height = 3, .left = kLeftOfRecipe, .right = kRightOfRecipe});
}

Picture LowBitScene::recipe_picture(const Extent& extent, const View& view) const {
  Picture made{{marked(recipe_sentence(view.cursor), {})}, extent.axes};
  std::vector<Box> boxes = channel_boxes(view.cursor);
  boxes.push_back(loss_box(view.cursor));
  made.root = picture::column({"low_bit"}, std::move(boxes));
  return made;
}

std::string LowBitScene::recipe_sentence(Cursor cursor) const {
  if (cursor.tile == 0) {
    return fmt::format("A layer of {} inputs and {} outputs: two of the inputs are far larger.",
                       kRecipeInputs, low_bit::kMatrix.rows);
  }
  const RecipeStep& step = recipe_step(cursor);
  const std::string off = significant(step.error, 3), plain = significant(step.plain, 3);
  const auto most = std::max_element(step.first.begin(), step.first.end());
  const auto k = static_cast<std::size_t>(most - step.first.begin());
  switch (trace_.recipe) {
    case Recipe::gptq:
      if (cursor.tile == kRecipeInputs) {
        return fmt::format("All columns are rounded: the product is {} % off, not {} %.", off,
                           plain);
      }
      return fmt::format(
          "Column {} is rounded; the {} to come take up its error: {} % off, not {} %.",
          cursor.tile, kRecipeInputs - cursor.tile, off, plain);
    case Recipe::awq:
      return fmt::format("α = {:.1f}: input {}'s weights are scaled by {}: {} % off, not {} %.",
                         step.at, k + 1, significant(step.second[k], 3), off, plain);
    default:
      return fmt::format("α = {:.1f}: inputs reach {}, weights {}: {} % off in INT8, not {} %.",
                         step.at, significant(*most, 3),
                         significant(*std::max_element(step.second.begin(), step.second.end()), 3),
                         off, plain);
  }
}

std::vector<Readout> LowBitScene::recipe_readouts(Cursor cursor) const {
  if (cursor.tile == 0) return {};
  const RecipeStep& step = recipe_step(cursor);
  return {
      {"recipe_error", "error of the product", significant(step.error, 3), "%",
       lab::Provenance::derived,
       "RMS of X · (Ŵ − W), over that of X · W, for 64 inputs to calibrate with", Readout::accent},
      {"plain_error", "rounded to nearest", significant(step.plain, 3), "%",
       lab::Provenance::derived, "the same without the recipe"}};
}

std::string LowBitScene::explain_recipe(Cursor cursor, const Key& key) const {
  const bool second = key.is({"correction", "factor"});
  const bool known = cursor.tile > 0 && (second || key.is({"rounded", "channel"}));
  if (!known || key.i < 0 || key.i >= kRecipeInputs) return {};
  const RecipeStep& step = recipe_step(cursor);
  const Channels titles = channels_of(trace_.recipe);
  return fmt::format(
      "input {}\n{}: {}", key.i + 1, second ? titles.second : titles.first,
      significant((second ? step.second : step.first)[static_cast<std::size_t>(key.i)], 3));
}

}  // namespace tilestep::scenes
