// The picture of the low-bit lesson.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/numbers/low_bit/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using low_bit::GroupTrace, low_bit::kMatrix, low_bit::Way;
using words::significant;

namespace {

constexpr float kLeft = 3, kRight = 6;
/// A number in registers or memory is a weight again.
constexpr std::uint8_t kNumberTone = 1, kCodeTone = 9, kScaleTone = 5;
constexpr float kName = 5, kTotal = 4.6f;
/// Of the axis: an error beyond it, of one scale for an outlier and all others, ends there.
constexpr double kMostError = 0.01;
constexpr auto kMostValue = static_cast<float>(low_bit::kMostWeight);
/// Of the axis: W of 2048 weights in 8 bits with a scale for 16, and twice as numbers of four bytes.
constexpr double kMostKilobytes = 20;

float kilobytes(int bytes) {
  return static_cast<float>(bytes) / 1000;
}

std::string bytes_text(int bytes) {
  return fmt::format("{} B", bytes);
}

/// Of the rows of W · x for an x of deviation 1: three deviations of the largest.
double reach_of(const std::vector<float>& weights) {
  double most = 0;
  for (std::size_t first = 0; first < weights.size(); first += kMatrix.columns) {
    double squares = 0;
    for (std::size_t i = first; i < first + kMatrix.columns; ++i) {
      squares += static_cast<double>(weights[i]) * static_cast<double>(weights[i]);
    }
    most = std::max(most, std::sqrt(squares));
  }
  return rounded(0, 3 * most).second;
}

}  // namespace

Extent LowBitScene::extent() const {
  const bool whole_row = trace_.size() >= kMatrix.columns;
  if (has_recipe()) return {recipe_axes()};
  const double reach = reach_of(trace_.weights);
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
            .ticks = true},
           {.name = "bytes",
            .high = kMostKilobytes,
            .fixed = true,
            .step = kMostKilobytes / 4,
            .title = text("KB of W"),
            .ticks = true},
           {.name = "one", .kind = Axis::band, .count = 1},
           {.name = "outputs",
            .kind = Axis::band,
            .count = kMatrix.rows,
            .title = text("rows of W · x"),
            .least_slot = 2},
           {.name = "y",
            .low = -reach,
            .high = reach,
            .step = reach,
            .title = text("W · x"),
            .ticks = true}}};
}

Picture LowBitScene::picture(const Extent& extent, const View& view) const {
  if (has_recipe()) return recipe_picture(extent, view);
  Picture made{{marked(sentence(view.cursor), symbols(view))}, extent.axes};
  if (multiplies(view.cursor)) {
    made.root = picture::column({"low_bit"}, {way_box(), outputs_box(view.cursor)});
    return made;
  }
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
      box({"group"}, {}, {}, {.weight = 3, .least_height = 5.2f, .left = kLeft, .right = kRight});
  if (coded(cursor)) weights.items.state.all = State::to_come;
  made.marks.emplace_back(weights);
  if (scaled(cursor)) add_code_lines(made, group);
  if (coded(cursor)) {
    // A number by which a scale was wrong may lie beyond the axis.
    std::vector<float> values(trace_.values.begin() + from, trace_.values.begin() + from + shown());
    for (float& v : values) {
      if (trace_.is_wrong()) v = std::clamp(v, -kMostValue, kMostValue);
    }
    Bars value{items("value", values), "weights", "value"};
    value.items.ids = ids;
    value.items.about = {{"weight_at", {0, ids}}, {"code_of", {0}}};
    value.items.tone.all = 9;
    value.items.state.all = State::plain;
    Bars gap{items("gap", {begin, begin + shown()}), "weights", "value"};
    gap.items.ids = ids;
    gap.items.base.each = values;
    gap.items.about = {{"weight_at", {0, ids}}};
    for (int i = 0; i < shown(); ++i) {
      const bool lost = (values[static_cast<std::size_t>(i)] == 0 && begin[i] != 0) ||
                        astray_[static_cast<std::size_t>(from + i)];
      gap.items.state.each.push_back(lost ? State::wrong : State::wasted);
    }
    made.marks.emplace_back(value);
    made.marks.emplace_back(gap);
  }
  return made;
}

/// The codes as lines at their values, and the band around 0.
void LowBitScene::add_code_lines(Box& to, int group) const {
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
    to.marks.emplace_back(std::move(zeros));
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
    to.marks.emplace_back(std::move(line));
  }
  if (!trace_.is_wrong() || wronged(group).own_step == g.step) return;
  const double own = largest * static_cast<double>(wronged(group).own_step) +
                     (trace_.format == low_bit::Format::q4_k ? static_cast<double>(g.offset) : 0);
  to.marks.emplace_back(
      Rule{{"own_scale"},
           "value",
           std::min(own, low_bit::kMostWeight),
           State::plain,
           text(fmt::format("its own: {} × {}", significant(largest, 3),
                            significant(static_cast<double>(wronged(group).own_step), 3)),
                "its own scale")});
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
             {.rank = 1, .weight = 1, .least_height = 2, .left = kLeft, .right = kRight});
}

// ---- W · x ---------------------------------------------------------------------------------------

/// Bytes of W on one scale: from device memory to registers, and for an unfused product back and forth.
Box LowBitScene::way_box() const {
  const bool both = trace_.ways.size() > 1;
  std::vector<Box> rows;
  if (both) rows.push_back(moved_box(1, "fused"));
  rows.push_back(moved_box(0, both ? "unfused" : "fused"));
  Box memory =
      picture::column({"memory"}, std::move(rows),
                      {.close = true, .weight = both ? 2.0f : 1.2f, .place = Place::device_memory});
  memory.label = text("moved from and to device memory", "moved");
  return picture::column({"way"}, {std::move(memory), registers_box(), fmas_box()}, {.weight = 4});
}

/// What one way moves, end to end; its length is the total.
Box LowBitScene::moved_box(int number, const char* kind) const {
  const Way& way = trace_.ways[static_cast<std::size_t>(number)];
  Box made = box({"moved", number}, {}, text(kind),
                 {.least_height = 0.86f, .most_height = 6, .left = kName, .right = kTotal});
  int from = 0;
  const auto add = [&](Name key, int bytes, std::uint8_t tone, Name label = {},
                       const char* said = "") {
    if (bytes == 0) return;
    Bars bar{items(key, std::vector{kilobytes(from + bytes)}), "bytes", "one"};
    bar.items.ids = {number};
    bar.items.base.all = kilobytes(from);
    bar.items.tone.all = tone;
    made.marks.emplace_back(std::move(bar));
    from += bytes;
    if (label.empty()) return;
    Links name{items(label, 1), {Anchor{}}, {{{key, number}, 0, 1}}};
    name.items.ids = {number};
    name.items.names = {said};
    name.items.tone.all = tone;
    made.marks.emplace_back(std::move(name));
  };
  add("codes", way.codes, kCodeTone);
  add("scales", way.scales, kScaleTone);
  add("written", way.written, kNumberTone, "written_name", "numbers written");
  add("read", way.read_back, kNumberTone, "read_name", "numbers read back");
  made.value = text(bytes_text(way.moved()));
  return made;
}

/// The numbers where FMAs find them.
Box LowBitScene::registers_box() const {
  const Way& way = trace_.ways[0];
  Bars bar{items("numbers", std::vector{kilobytes(way.numbers)}), "bytes", "one"};
  bar.items.tone.all = kNumberTone;
  Box made = box({"registers"}, {std::move(bar)}, text("numbers"),
                 {.least_height = 0.86f,
                  .most_height = 7,
                  .left = kName,
                  .right = kTotal,
                  .place = Place::registers});
  made.value = text(bytes_text(way.numbers));
  return made;
}

/// A number each, and the arrows from place to place: codes become numbers on the first one.
Box LowBitScene::fmas_box() const {
  const Way& way = trace_.ways[0];
  Bars bar{items("fmas", std::vector{kilobytes(way.numbers)}), "bytes", "one"};
  bar.items.tone.all = kNumberTone;
  Links arrows{items("arrow", 0)};
  const auto add = [&](Anchor from, Anchor to) {
    arrows.from.push_back(from);
    arrows.to.push_back(to);
    arrows.items.glyph.each.push_back(1);
    ++arrows.items.count;
  };
  if (way.written > 0) {
    add({{"numbers", 0}, 0.55f, 0.65f}, {{"written", 0}, 0.4f, 0.5f});
    add({{"read", 0}, 0.3f, 0.4f}, {{"numbers", 0}, 0.9f, 1});
  }
  add({{"numbers", 0}, 0, 1}, {{"fmas", 0}, 0, 1});
  Links dequantized{items("dequantized", 1), {{{"codes", 0}, 0, 1}}, {{{"numbers", 0}, 0, 0.5f}}};
  dequantized.items.names = {"dequantized"};
  dequantized.items.tone.all = kNumberTone;
  dequantized.items.glyph.all = 1;
  Box made =
      box({"multiplied"}, {std::move(bar), std::move(arrows), std::move(dequantized)}, text("FMAs"),
          {.least_height = 0.86f, .most_height = 7, .left = kName, .right = kTotal});
  made.value = text(fmt::format("{}", way.fmas));
  return made;
}

/// W · x with weights in BF16, and the kernel's.
Box LowBitScene::outputs_box(Cursor cursor) const {
  const auto rows = static_cast<std::size_t>(multiplied(cursor) ? kMatrix.rows : 0);
  const auto reach = static_cast<float>(reach_of(trace_.weights));
  std::vector<float> exact, y;
  std::vector<State> states;
  for (std::size_t row = 0; row < rows; ++row) {
    exact.push_back(std::clamp(static_cast<float>(trace_.exact[row]), -reach, reach));
    y.push_back(std::clamp(trace_.y[row], -reach, reach));
    states.push_back(is_wrong_row(static_cast<int>(row)) ? State::wrong : State::wasted);
  }
  Bars before{items("exact", exact), "outputs", "y"};
  before.items.tone.all = kNumberTone;
  before.items.state.all = State::to_come;
  Bars after{items("y", y, {Format::significant, 2}), "outputs", "y"};
  after.items.tone.all = kCodeTone;
  Bars gap{items("y_gap", exact), "outputs", "y"};
  gap.items.base.each = y;
  gap.items.state.each = states;
  for (Bars* bars : {&before, &after, &gap}) {
    bars->items.about = {{"output", {0, numbers(static_cast<int>(rows))}}};
  }
  return box({"outputs"}, {before, after, gap}, {},
             {.rank = 1, .weight = 1, .least_height = 2, .left = kLeft, .right = kRight});
}

}  // namespace tilestep::scenes
