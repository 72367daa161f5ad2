// The picture of the low-bit lesson.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/numbers/low_bit/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using low_bit::GroupTrace, low_bit::kMatrix;
using words::significant;

namespace {

constexpr float kLeft = 3, kRight = 6;
/// Of the axis: an error beyond it, of one scale for an outlier and all others, ends there.
constexpr double kMostError = 0.01;

}  // namespace

Extent LowBitScene::extent() const {
  const bool whole_row = trace_.size() >= kMatrix.columns;
  return {{{.name = "weights",
            .kind = Axis::band,
            .count = shown(),
            .title = text("weights of the group"),
            .least_slot = 2},
           {.name = "value",
            .low = -low_bit::kMostWeight,
            .high = low_bit::kMostWeight,
            .fixed = true,
            .step = low_bit::kMostWeight,
            .title = text("value"),
            .ticks = true},
           {.name = "row",
            .kind = Axis::band,
            .count = kMatrix.columns,
            .group = whole_row ? 0 : trace_.size(),
            .title = text("weights of the row"),
            .least_slot = 1},
           {.name = "error",
            .high = kMostError,
            .fixed = true,
            .title = text("error, to 0.01"),
            .ticks = true}}};
}

Picture LowBitScene::picture(const Extent& extent, const View& view) const {
  Picture made{{marked(sentence(view.cursor), symbols(view))}, extent.axes};
  const int column = first(view.cursor) % kMatrix.columns;
  for (Axis& axis : made.axes) {
    if (axis.name == Name("weights")) {
      axis.title =
          text(view.cursor.tile == 0 ? "weights of row 1"
                                     : fmt::format("weights of group {}", view.cursor.tile),
               "weights");
    }
    if (axis.name == Name("row") && axis.group > 0 && view.cursor.tile > 0) {
      axis.current_group = column / axis.group;
    }
  }
  made.root = picture::column({"low_bit"}, {group_box(view.cursor), error_box(view.cursor)});
  return made;
}

/// Weights as bars from 0; with a scale the codes as lines, and a band in which weights become 0; with codes what those
/// stand for, and the gap.
Box LowBitScene::group_box(Cursor cursor) const {
  const int group = this->group(cursor), from = first(cursor);
  const auto begin = trace_.weights.begin() + from;
  Bars weights{items("weight", {begin, begin + shown()}, {Format::significant, 2}), "weights",
               "value"};
  weights.items.ids.resize(static_cast<std::size_t>(shown()));
  for (int i = 0; i < shown(); ++i) weights.items.ids[static_cast<std::size_t>(i)] = from + i;
  weights.items.about = {{"weight_at", {0, weights.items.ids}}, {"weight_of", {0}}};
  weights.items.act = {Act::drag, "value"};
  weights.items.tone.all = 1;
  const std::vector<int> ids = weights.items.ids;
  if (group >= 0 && !scaled(cursor)) {
    weights.items.state.each.assign(ids.size(), State::plain);
    const int most = largest(group) - from;
    if (most < shown()) weights.items.state.each[static_cast<std::size_t>(most)] = State::current;
  }
  Box made =
      box({"group"}, {}, {}, {.weight = 3, .least_height = 8, .left = kLeft, .right = kRight});
  if (coded(cursor)) weights.items.state.all = State::to_come;
  made.marks.emplace_back(weights);
  if (scaled(cursor)) {
    const GroupTrace& g = at(group);
    const std::vector<double> numbers = numbers_of(trace_.format);
    double largest = 0, smallest = INFINITY;
    for (const double n : numbers) {
      largest = std::fmax(largest, n);
      if (n > 0) smallest = std::fmin(smallest, n);
    }
    if (trace_.format != low_bit::Format::q4_k) {  // which need not have a code for 0
      const double half = smallest * static_cast<double>(g.step) / 2;
      Curve zeros{.key = {"zeros"},
                  .x = {0, static_cast<double>(shown())},
                  .y = {half, half},
                  .ax = "weights",
                  .ay = "value",
                  .state = State::wasted,
                  .dashed = true};
      zeros.base = {-half};
      made.marks.emplace_back(std::move(zeros));
    }
    for (int code = 0; code < std::ssize(numbers); ++code) {
      const double n = numbers[static_cast<std::size_t>(code)];
      const double at = n * static_cast<double>(g.step) + static_cast<double>(g.offset);
      if (std::isnan(n) || std::abs(at) > low_bit::kMostWeight) continue;
      Rule line{{"code", code}, "value", at, State::to_come};
      if (n == largest) {
        const Run number{significant(n, 3), {"code_of", 0}};
        const Run step{significant(static_cast<double>(g.step), 3)};
        line.label = {{number, {" × "}, step}, {number, {"×"}, step}, {step}};
      }
      made.marks.emplace_back(std::move(line));
    }
  }
  if (coded(cursor)) {
    const auto values = trace_.values.begin() + from;
    Bars value{items("value", {values, values + shown()}), "weights", "value"};
    value.items.ids = ids;
    value.items.about = {{"weight_at", {0, ids}}, {"code_of", {0}}};
    value.items.tone.all = 9;
    value.items.state.all = State::plain;
    Bars gap{items("gap", {begin, begin + shown()}), "weights", "value"};
    gap.items.ids = ids;
    gap.items.base.each = {values, values + shown()};
    gap.items.about = {{"weight_at", {0, ids}}};
    for (int i = 0; i < shown(); ++i) {
      const bool lost = values[i] == 0 && begin[i] != 0;
      gap.items.state.each.push_back(lost ? State::wrong : State::wasted);
    }
    made.marks.emplace_back(value);
    made.marks.emplace_back(gap);
  }
  return made;
}

/// |value − weight| of the row's weights so far.
Box LowBitScene::error_box(Cursor cursor) const {
  const int row = first(cursor) / kMatrix.columns * kMatrix.columns;
  const int known = std::clamp(known_codes(cursor) - row, 0, kMatrix.columns);
  std::vector<float> errors;
  std::vector<int> ids;
  for (int i = row; i < row + known; ++i) {
    const auto at = static_cast<std::size_t>(i);
    errors.push_back(
        std::min(std::abs(trace_.values[at] - trace_.weights[at]), static_cast<float>(kMostError)));
    ids.push_back(i);
  }
  Bars bars{items("error", errors), "row", "error"};
  bars.items.ids = ids;
  bars.items.about = {{"weight_at", {0, ids}}};
  bars.items.act = {Act::go};
  return box({"errors"}, {bars}, {},
             {.rank = 1, .weight = 1, .least_height = 3, .left = kLeft, .right = kRight});
}

}  // namespace tilestep::scenes
