// The picture of the online-softmax lesson. From top to bottom: the step in one sentence, the scores
// in tiles with the running maximum over them, the current weights, the values with their weighted
// mean over them, and the step's formula beside the two running sums.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "scenes/attention/online_softmax/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using words::number;

namespace {

/// Colours of the weights already summed and of ℓ, their sum; of the running maximum; of O. The current
/// tile is amber.
constexpr std::uint8_t kSummed = 5, kMaximum = 4, kOutput = 3;
/// Margins of both charts, in line heights.
constexpr float kLeft = 3.4f, kRight = 5.5f;

State state_of_tile(int tile, int current) {
  return tile < current ? State::done : tile == current ? State::current : State::to_come;
}

/// Bars over the keys; a score, its weight and its previous weight light up together.
Bars over_keys(Items items, Name y) {
  items.about = {{"key", {0, numbers(items.count)}}};
  return {std::move(items), "key", y};
}

/// exp(s) is infinite in FP32 above this.
const double kEndOfExp = std::log(static_cast<double>(std::numeric_limits<float>::max()));

}  // namespace

/// Each in the tone of its curve or bar.
std::vector<Symbol> OnlineSoftmaxScene::symbols(const View&) const {
  return {{"m",
           {"m", 0},
           kMaximum,
           "The largest score of all keys so far. Weights are measured from it, so that none is "
           "larger than 1.",
           {"m", "m_new"}},
          {"ℓ",
           {"l", 0},
           kSummed,
           "The sum of all weights so far, measured from the same maximum m. The output is divided "
           "by it, once, at the very end.",
           {"l", "l_new"}},
          {"O",
           {"O", 0},
           kOutput,
           "One component of the output, not divided yet: the sum of weight × value over all keys "
           "so far.",
           {"o", "o_new"}}};
}

Extent OnlineSoftmaxScene::extent() const {
  struct Ends {
    double low = 0, high = 0;
    void add(double value) {
      if (!std::isfinite(value)) return;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  } scores, values, l, o;
  for (const float score : trace_.scores) scores.add(static_cast<double>(score));
  for (const float value : trace_.values) values.add(static_cast<double>(value));
  for (const auto& step : trace_.steps) {
    l.add(static_cast<double>(step.l));
    o.add(static_cast<double>(step.o));
  }
  const auto line = [](Name name, const Ends& of, bool ticks = false) {
    const auto [low, high] = rounded(of.low, of.high);
    return Axis{.name = name, .low = low, .high = high, .ticks = ticks};
  };
  return {{{.name = "key",
            .kind = Axis::band,
            .count = trace_.keys,
            .group = trace_.tile_width,
            .group_name = "tile"},
           line("score", scores),
           {.name = "weight"},
           line("value", values),
           line("l", l, true),
           line("O", o, true),
           {.name = "after_l", .kind = Axis::band, .count = tiles(), .least_slot = 0.5f},
           {.name = "after_O", .kind = Axis::band, .count = tiles(), .least_slot = 0.5f}}};
}

Picture OnlineSoftmaxScene::picture(const Extent& extent, const View& view) const {
  const SoftmaxMoment now = moment(view.cursor);
  Picture made{{marked(sentence(view.cursor), symbols({}))}, extent.axes};
  made.axes[0].current_group = now.tile;
  made.axes[0].focus = std::max(now.tile, 0) * trace_.tile_width;
  for (Axis& axis : made.axes) {
    if (axis.name == Name("after_l") || axis.name == Name("after_O")) axis.focus = now.tile;
  }
  made.root = column({"softmax"}, {scores(now), weight_bars(view.cursor), values(now),
                                   row({"below"}, {formulas(now), sums(now)},
                                       {.rank = 1, .weight = 1.8f, .least_height = 2})});
  made.root.boxes.back().place = Place::registers;
  made.subject = {"scores", "weights", "formulas"};
  return made;
}

Box OnlineSoftmaxScene::scores(const SoftmaxMoment& now) const {
  Bars bars = over_keys(items("score", trace_.scores, {Format::fixed, score_decimals_}), "score");
  for (int k = 0; k < trace_.keys; ++k) {
    bars.items.state.each.push_back(state_of_tile(tile_of(k), now.tile));
  }
  bars.items.act =
      trace_.keys <= online_softmax::kMostScores ? Act{Act::drag, "score"} : Act{Act::go};
  Curve maximum{.key = {"m"}, .ax = "key", .ay = "score", .tone = kMaximum, .about = {"m", 0}};
  for (int tile = 0; tile <= now.tile; ++tile) {
    const double m = trace_.steps[tile].m;
    if (!std::isfinite(m)) continue;
    const int first = tile * trace_.tile_width;
    for (const int key : {first, std::min(first + trace_.tile_width, trace_.keys)}) {
      maximum.x.push_back(key);
      maximum.y.push_back(m);
    }
  }
  if (!maximum.x.empty()) maximum.end = text("m = " + score_text(now.m));
  Box made = box({"scores"}, {std::move(bars), std::move(maximum)}, text("score s"),
                 {.weight = 2, .least_height = 2, .left = kLeft, .right = kRight});
  made.place = Place::device_memory;
  // A score is the logarithm of its exp, so FP32's range ends on this axis.
  const auto beyond = [](float score) { return static_cast<double>(score) > kEndOfExp; };
  if (std::any_of(trace_.scores.begin(), trace_.scores.end(), beyond)) {
    made.marks.emplace_back(Rule{{"end_of_exp"},
                                 "score",
                                 kEndOfExp,
                                 State::wrong,
                                 text("above: exp = inf", "exp = inf", "inf")});
  }
  return made;
}

/// The values, and their weighted mean over the keys up to each tile.
Box OnlineSoftmaxScene::values(const SoftmaxMoment& now) const {
  const auto whole = [](float value) { return value == std::round(value); };
  const bool integers = std::all_of(trace_.values.begin(), trace_.values.end(), whole);
  Bars bars = over_keys(items("v", trace_.values, {Format::fixed, integers ? 0 : 1}), "value");
  for (int k = 0; k < trace_.keys; ++k) {
    bars.items.state.each.push_back(state_of_tile(tile_of(k), now.tile));
  }
  bars.items.act = {Act::go};
  Curve mean{.key = {"mean"}, .ax = "key", .ay = "value", .tone = kOutput, .about = {"O", 0}};
  Curve exact{.key = {"exact"}, .ax = "key", .ay = "value", .dashed = true};
  const int last = now.phase == SoftmaxPhase::accumulate ? now.tile : now.tile - 1;
  for (int tile = 0; tile <= last; ++tile) {
    const auto& step = trace_.steps[tile];
    if (!(step.l > 0) || !std::isfinite(step.output)) continue;
    const int first = tile * trace_.tile_width;
    for (const int key : {first, std::min(first + trace_.tile_width, trace_.keys)}) {
      mean.x.push_back(key);
      mean.y.push_back(static_cast<double>(step.output));
      exact.x.push_back(key);
      exact.y.push_back(trace_.exact_outputs[tile]);
    }
  }
  Box made = box({"values"}, {std::move(bars)}, text("value v"),
                 {.rank = 3, .weight = 0.8f, .least_height = 1.6f, .left = kLeft, .right = kRight});
  made.place = Place::device_memory;
  if (wrong_at(now)) {
    mean.state = State::wrong;
    mean.tone = 0;
    exact.end = text("exact " + number(*exact_at(now), 3), "exact");
    made.marks.emplace_back(std::move(exact));
  }
  const std::string result = number(now.output, 3);
  if (!mean.x.empty()) mean.end = text("O / ℓ = " + result, result);
  made.marks.emplace_back(std::move(mean));
  return made;
}

/// The weights shrink before the new tile adds its own; outlines show them before.
Box OnlineSoftmaxScene::weight_bars(Cursor cursor) const {
  const SoftmaxMoment now = moment(cursor);
  Bars bars = over_keys(items("weight", weights(cursor), {Format::fixed, 3}), "weight");
  const bool shrunk = now.phase >= SoftmaxPhase::rescale && now.rescale < 1 && now.tile > 0;
  const std::vector<float> old = shrunk ? weights({cursor.tile, 0}) : std::vector<float>();
  Bars before = over_keys(items("weight_was", old), "weight");
  before.items.flags.all = kWas;
  bars.items.act = {Act::go};
  const bool wrong = wrong_at(now);
  const bool fresh = now.tile >= 0 && now.phase >= SoftmaxPhase::weights;
  const int count = bars.items.count;
  const int first = fresh ? std::min(now.tile * trace_.tile_width, count) : count;
  bars.items.state.each.assign(count, wrong ? State::wrong : State::done);
  bars.items.tone.each.assign(count, kSummed);
  std::fill(bars.items.state.each.begin() + first, bars.items.state.each.end(), State::current);
  std::fill(bars.items.tone.each.begin() + first, bars.items.tone.each.end(), std::uint8_t{0});
  bars.items.first_way = first;
  for (int k = first; k < count; ++k) bars.items.ways.push_back({{"score", k}, {}, 0, true});
  const Rule one{{"one"}, "weight", 1, State::to_come, text("1")};
  return box({"weights"}, {std::move(before), std::move(bars), one}, text("weight"),
             {.least_height = 1.4f, .left = kLeft, .right = kRight});
}

std::vector<std::string> OnlineSoftmaxScene::formula_rows(const SoftmaxMoment& now) const {
  if (now.tile < 0)
    return {"m = −∞", "rescale = exp(m_old − m)", "p = exp(s − m)", "ℓ = 0", "O = 0"};
  const auto& step = trace_.steps[now.tile];
  const std::string factor = number(step.rescale, 3), m = score_text(step.m);
  const double peak = std::max(step.m_old, step.tile_max);
  const auto score = [this](double value) { return score_text(value); };
  const auto two = [](double value) { return number(value, 2); };
  const auto three = [](double value) { return number(value, 3); };
  // The kernel's result, beside the formula evaluated with the kernel's own inputs.
  std::string rescale = fmt::format("rescale = {}   (no maximum yet)", factor);
  if (std::isfinite(step.m)) {
    const double right = std::isfinite(step.m_old) ? std::exp(step.m_old - step.m) : 0;
    rescale = words::equation("rescale", fmt::format("exp({} − {})", score_text(step.m_old), m),
                              right, step.rescale, three);
  }
  double weights = 0, added = 0, magnitude = std::abs(step.o_old * step.rescale);
  const int first = now.tile * trace_.tile_width;
  for (int key = first; key < std::min(first + trace_.tile_width, trace_.keys); ++key) {
    const double weight = static_cast<double>(trace_.weights[key]);
    if (std::isfinite(trace_.scores[key])) {
      weights += std::exp(static_cast<double>(trace_.scores[key]) - step.m);
    }
    if (!(weight > 0)) continue;
    added += weight * static_cast<double>(trace_.values[key]);
    magnitude += weight * std::abs(static_cast<double>(trace_.values[key]));
  }
  std::vector<std::string> rows = {
      words::equation("m",
                      fmt::format("max({}, {})", score_text(step.m_old), score_text(step.tile_max)),
                      peak, step.m, score),
      std::move(rescale),
      words::equation("Σp", fmt::format("Σ exp(s − {})", std::isinf(step.m) ? "0" : m), weights,
                      step.tile_sum, two, 1),  // exp(−120) is 0 in FP32
      words::equation("ℓ", fmt::format("{} × {} + {}", two(step.l_old), factor, two(step.tile_sum)),
                      step.l_old * step.rescale + step.tile_sum, step.l, two),
      words::equation("O",
                      fmt::format("{}×{} {} {}", two(step.o_old), factor, added < 0 ? "−" : "+",
                                  two(std::abs(added))),
                      step.o_old * step.rescale + added, step.o, two, magnitude)};
  // Later results are named, not given away.
  for (std::size_t row = static_cast<std::size_t>(now.phase) + 1; row < rows.size(); ++row) {
    if (row == 4 && now.phase == SoftmaxPhase::accumulate) break;
    rows[row] = rows[row].substr(0, rows[row].find('=') + 1) + " …";
  }
  return rows;
}

Box OnlineSoftmaxScene::formulas(const SoftmaxMoment& now) const {
  std::vector<Text> rows;
  for (const std::string& row : formula_rows(now)) {
    // Without room for more, only the result.
    const std::size_t first = row.find('='), last = row.rfind('=');
    rows.push_back(text(row, first == last ? "" : row.substr(0, first) + row.substr(last)));
    rows.back().full = marked(row, symbols({}));
  }
  Lines made = lines("formula", std::move(rows), Lines::formula);
  made.items.about = {{"m", {-1, {0, -1, -1, -1, -1}}},
                      {"l", {-1, {-1, -1, -1, 0, -1}}},
                      {"O", {-1, {-1, -1, -1, -1, 0}}}};
  for (int row = 0; row < made.items.count; ++row) {
    const State state = state_of_tile(std::min(row, 3), static_cast<int>(now.phase));
    made.items.state.each.push_back(now.tile < 0 ? State::to_come : state);
  }
  return box({"formulas"}, {std::move(made)}, {}, {.weight = 3, .least_width = 16});
}

/// ℓ after each tile, relative to its maximum and summed in double.
std::vector<double> OnlineSoftmaxScene::exact_sums(int tiles) const {
  std::vector<double> sums;
  double sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    const auto& step = trace_.steps[tile];
    const auto m = static_cast<double>(step.m), m_old = static_cast<double>(step.m_old);
    if (std::isfinite(m)) {
      sum *= std::isfinite(m_old) ? std::exp(m_old - m) : 0;
      const int first = tile * trace_.tile_width;
      for (int key = first; key < std::min(first + trace_.tile_width, trace_.keys); ++key) {
        sum += std::exp(static_cast<double>(trace_.scores[key]) - m);
      }
    }
    sums.push_back(sum);
  }
  return sums;
}

/// One bar per tile: the earlier tiles' part after the rescale and this tile's part; the old sum in outline.
Box OnlineSoftmaxScene::sums(const SoftmaxMoment& now) const {
  const bool growing = now.phase == SoftmaxPhase::accumulate;
  const int count = now.tile + 1;
  struct Names {
    Key box;
    Name axis, kept, added, was;
  };
  const auto meter = [&](const Names& names, double old, double kept, double sum) {
    const bool of_output = names.axis == Name("O");
    const auto bars_of = [&](Name name) {
      Bars bars{items(name, count), of_output ? Name("after_O") : Name("after_l"), names.axis};
      bars.items.about = {{names.axis, {0}}};
      bars.items.value.each.assign(count, NAN);
      return bars;
    };
    Bars before = bars_of(names.kept), added = bars_of(names.added), was = bars_of(names.was);
    before.items.tone.all = added.items.tone.all = of_output ? kOutput : kSummed;
    before.items.state.all = State::done;
    added.items.format = {Format::fixed, 2};
    added.items.state.each.assign(count, State::done);
    added.items.tone.each.assign(count, before.items.tone.all);
    was.items.flags.all = kWas;
    for (int tile = 0; tile < count; ++tile) {
      const auto& step = trace_.steps[tile];
      const bool here = tile == now.tile;
      const float left =
          here ? static_cast<float>(kept) : (of_output ? step.o_old : step.l_old) * step.rescale;
      before.items.value.each[tile] = left;
      added.items.base.each.push_back(left);
      if (!here || growing) {
        added.items.value.each[tile] = here ? static_cast<float>(sum) : of_output ? step.o : step.l;
      }
      if (!here) continue;
      added.items.state.each[tile] = State::current;
      added.items.tone.each[tile] = 0;
      if (now.rescale < 1 && old != 0) was.items.value.each[tile] = static_cast<float>(old);
    }
    Box bars = box({names.added, -1}, {before, added, was}, {},
                   {.least_width = 2.5f, .least_height = 2.6f, .left = 3});
    Box made = column(names.box, {std::move(bars)}, {.right = 3.2f});
    made.label = {marked(of_output ? "O = Σ weight · v" : "ℓ = Σ weight", symbols({})),
                  marked(of_output ? "O" : "ℓ", symbols({}))};
    made.value = text(number(sum, 2));
    return made;
  };
  Box l = meter({{"bar_l"}, "l", "l_kept", "l_added", "l_was"}, now.l_old, now.l_kept, now.l);
  const std::vector<double> exact = exact_sums(growing ? count : now.tile);
  if (!exact.empty() && !words::close(growing ? now.l : now.l_old, exact.back())) {
    Curve due{.key = {"exact_l"}, .ax = "after_l", .ay = "l", .dashed = true};
    for (std::size_t tile = 0; tile < exact.size(); ++tile) {
      due.x.push_back(static_cast<double>(tile) + 0.5);
      due.y.push_back(exact[tile]);
    }
    const std::string said = number(exact.back(), 2);
    l.label = text("ℓ = Σ weight, exact (dashed): " + said, "ℓ, exact " + said);
    l.boxes[0].marks.emplace_back(std::move(due));
  }
  const std::string result = number(now.output, 3);
  std::string whole = "O / ℓ = " + result;
  if (wrong_at(now)) whole += fmt::format("   (exact: {})", number(*exact_at(now), 3));
  Lines output = lines("output", {now.tile < 0 ? text("O / ℓ   nothing yet") : text(whole, result)},
                       Lines::large);
  output.rows[0].full = marked(plain(output.rows[0].full), symbols({}));
  output.items.state.each = {wrong_at(now) ? State::wrong : State::plain};
  // The result of summing exp(s) directly, once the row is complete.
  const double above = trace_.naive_numerator, below = trace_.naive_denominator;
  if (growing && count == tiles() && std::isinf(below)) {
    const auto [a, b, naive] =
        std::array{number(above, 3), number(below, 3), number(above / below, 3)};
    output.rows.push_back(
        text(fmt::format("Σ exp(s)·v / Σ exp(s) = {} / {} = {}", a, b, naive), naive));
    output.items.state.each.push_back(State::wrong);
    output.items.count = 2;
  }
  Box o = meter({{"bar_O"}, "O", "O_kept", "O_added", "O_was"}, now.o_old, now.o_kept, now.o);
  const float high = 1.7f * static_cast<float>(output.items.count);
  return column(
      {"sums"},
      {row({"totals"}, {std::move(l), std::move(o)}, {.rank = 2}),
       box({"bar_output"}, {output}, {}, {.rank = 2, .weight = 0.02f, .least_height = high})},
      {.least_width = 12});
}

std::string OnlineSoftmaxScene::explain(const View& view, const Key& key) const {
  if (!key.is({"score", "weight", "weight_was", "v"})) return {};
  std::string words = fmt::format("key {} of tile {}\nscore {}   value {}", key.i, tile_of(key.i),
                                  number(trace_.scores[key.i], 3), number(trace_.values[key.i], 3));
  const std::vector<float> now = weights(view.cursor);
  if (key.i < std::ssize(now)) words += fmt::format("\nweight now {}", number(now[key.i], 4));
  if (key.is({"score"}) && trace_.keys <= online_softmax::kMostScores)
    words += "\ndrag it up or down";
  return words;
}

}  // namespace tilestep::scenes
