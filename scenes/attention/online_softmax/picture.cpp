// The picture of the online-softmax lesson. From top to bottom: the step in one sentence, the scores
// in tiles with the running maximum over them, the current weights, the values with their weighted
// mean over them, and the step's formula beside the two running sums.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include "scenes/attention/online_softmax/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using online_softmax::StepRecord;
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
  const auto line = [](Name name, bool ticks, const auto& list, const auto& number) {
    double low = 0, high = 0;
    for (const auto& each : list) {
      const double value = std::invoke(number, each);
      if (!std::isfinite(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
    std::tie(low, high) = rounded(low, high);
    return Axis{.name = name, .low = low, .high = high, .ticks = ticks};
  };
  return {{{.name = "key",
            .kind = Axis::band,
            .count = trace_.keys,
            .group = trace_.tile_width,
            .group_name = "tile"},
           line("score", false, trace_.scores, std::identity()),
           {.name = "weight"},
           line("value", false, trace_.values, std::identity()),
           line("l", true, trace_.steps, &StepRecord::l),
           line("O", true, trace_.steps, &StepRecord::o),
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

/// Bars over the keys; a score, its weight and its previous weight light up together.
Bars OnlineSoftmaxScene::over_keys(Name name, const std::vector<float>& values, int decimals,
                                   Name y, int now) const {
  Bars bars{items(name, values, {Format::fixed, decimals}), "key", y};
  bars.items.about = {{"key", {0, numbers(bars.items.count)}}};
  bars.items.act = {Act::go};
  for (int k = 0; k < bars.items.count; ++k) {
    bars.items.state.each.push_back(state_of_tile(trace_.tile_of(k), now));
  }
  return bars;
}

void OnlineSoftmaxScene::add_level(Curve& curve, int tile, double y) const {
  for (const int end : {tile, tile + 1}) {
    curve.x.push_back(trace_.first_key(end));
    curve.y.push_back(y);
  }
}

Box OnlineSoftmaxScene::scores(const SoftmaxMoment& now) const {
  Bars bars = over_keys("score", trace_.scores, score_decimals_, "score", now.tile);
  if (trace_.keys <= online_softmax::kMostScores) bars.items.act = {Act::drag, "score"};
  Curve maximum{.key = {"m"}, .ax = "key", .ay = "score", .tone = kMaximum, .about = {"m", 0}};
  for (int tile = 0; tile <= now.tile; ++tile) {
    const double m = trace_.steps[tile].m;
    if (std::isfinite(m)) add_level(maximum, tile, m);
  }
  if (!maximum.x.empty()) maximum.end = text("m = " + score_text(now.m));
  Box made = box({"scores"}, {std::move(bars), std::move(maximum)}, text("score s"),
                 {.weight = 2, .least_height = 2, .left = kLeft, .right = kRight});
  made.place = Place::device_memory;
  // A score is the logarithm of its exp, so FP32's range ends on this axis.
  const auto beyond = [](double score) { return score > kEndOfExp; };
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
  Curve mean{.key = {"mean"}, .ax = "key", .ay = "value", .tone = kOutput, .about = {"O", 0}};
  Curve exact{.key = {"exact"}, .ax = "key", .ay = "value", .dashed = true};
  const int last = now.phase == SoftmaxPhase::accumulate ? now.tile : now.tile - 1;
  for (int tile = 0; tile <= last; ++tile) {
    const StepRecord& step = trace_.steps[tile];
    if (!(step.l > 0) || !std::isfinite(step.output)) continue;
    add_level(mean, tile, step.output);
    add_level(exact, tile, trace_.exact_outputs[tile]);
  }
  Box made = box({"values"}, {over_keys("v", trace_.values, integers ? 0 : 1, "value", now.tile)},
                 text("value v"),
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
  Bars bars = over_keys("weight", weights(cursor), 3, "weight", now.tile);
  const bool shrunk = now.rescale < 1 && now.tile > 0;
  Bars before{items("weight_was", shrunk ? weights({cursor.tile, 0}) : std::vector<float>(),
                    {Format::fixed, 3}),
              "key", "weight"};
  before.items.about = {{"key", {0, numbers(before.items.count)}}};
  before.items.flags.all = kWas;
  const bool wrong = wrong_at(now);
  const bool fresh = now.tile >= 0 && now.phase >= SoftmaxPhase::weights;
  const int count = bars.items.count, first = fresh ? trace_.first_key(now.tile) : count;
  for (int k = 0; k < count; ++k) {
    bars.items.tone.each.push_back(k < first ? kSummed : 0);
    if (wrong && k < first) bars.items.state.each[k] = State::wrong;
  }
  bars.items.first_way = first;
  for (int k = first; k < count; ++k) bars.items.ways.push_back({{"score", k}, {}, 0, true});
  const Rule one{{"one"}, "weight", 1, State::to_come, text("1")};
  return box({"weights"}, {std::move(before), std::move(bars), one}, text("weight"),
             {.least_height = 1.4f, .left = kLeft, .right = kRight});
}

std::vector<std::string> OnlineSoftmaxScene::formula_rows(const SoftmaxMoment& now) const {
  if (now.tile < 0)
    return {"m = −∞", "rescale = exp(m_old − m)", "p = exp(s − m)", "ℓ = 0", "O = 0"};
  const StepRecord& step = trace_.steps[now.tile];
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
  for (int key = trace_.first_key(now.tile); key < trace_.first_key(now.tile + 1); ++key) {
    const double s = trace_.scores[key], weight = trace_.weights[key], v = trace_.values[key];
    if (std::isfinite(s)) weights += std::exp(s - step.m);
    if (!(weight > 0)) continue;
    added += weight * v;
    magnitude += weight * std::abs(v);
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
    const double m = trace_.steps[tile].m, m_old = trace_.steps[tile].m_old;
    if (std::isfinite(m)) {
      sum *= std::isfinite(m_old) ? std::exp(m_old - m) : 0;
      for (int key = trace_.first_key(tile); key < trace_.first_key(tile + 1); ++key) {
        sum += std::exp(static_cast<double>(trace_.scores[key]) - m);
      }
    }
    sums.push_back(sum);
  }
  return sums;
}

/// ℓ or O, one bar per tile: the earlier tiles' part after the rescale and this tile's part; the old sum in outline.
Box OnlineSoftmaxScene::meter(const SoftmaxMoment& now, bool of_output) const {
  const auto named = [&](Name l, Name o) { return of_output ? o : l; };
  const Name axis = named("l", "O");
  const int count = now.tile + 1;
  const auto bars_of = [&](Name name) {
    Bars bars{items(name, count), named("after_l", "after_O"), axis};
    bars.items.about = {{axis, {0}}};
    bars.items.value.each.assign(count, NAN);
    return bars;
  };
  Bars before = bars_of(named("l_kept", "O_kept")), added = bars_of(named("l_added", "O_added")),
       was = bars_of(named("l_was", "O_was"));
  before.items.tone.all = of_output ? kOutput : kSummed;
  before.items.state.all = State::done;
  added.items.format = {Format::fixed, 2};
  was.items.flags.all = kWas;
  for (int tile = 0; tile < count; ++tile) {
    const bool here = tile == now.tile;
    const StepRecord& step = here ? now : trace_.steps[tile];
    const float old = of_output ? step.o_old : step.l_old, left = old * step.rescale;
    before.items.value.each[tile] = left;
    added.items.base.each.push_back(left);
    added.items.state.each.push_back(here ? State::current : State::done);
    added.items.tone.each.push_back(here ? 0 : before.items.tone.all);
    if (!here || now.phase == SoftmaxPhase::accumulate) {
      added.items.value.each[tile] = of_output ? step.o : step.l;
    }
    if (here && now.rescale < 1 && old != 0) was.items.value.each[tile] = old;
  }
  Box bars = box({named("l_added", "O_added"), -1}, {before, added, was}, {},
                 {.least_width = 2.5f, .least_height = 2.6f, .left = 3});
  Box made = column({named("bar_l", "bar_O")}, {std::move(bars)}, {.right = 3.2f});
  made.label = {marked(of_output ? "O = Σ weight · v" : "ℓ = Σ weight", symbols({})),
                marked(of_output ? "O" : "ℓ", symbols({}))};
  made.value = text(number(of_output ? now.o : now.l, 2));
  return made;
}

Box OnlineSoftmaxScene::sums(const SoftmaxMoment& now) const {
  const bool growing = now.phase == SoftmaxPhase::accumulate;
  Box l = meter(now, false);
  const std::vector<double> exact = exact_sums(growing ? now.tile + 1 : now.tile);
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
  const bool wrong = wrong_at(now);
  const std::string result = number(now.output, 3);
  std::string whole = "O / ℓ = " + result;
  if (wrong) whole += fmt::format("   (exact: {})", number(*exact_at(now), 3));
  Lines output = lines("output", {now.tile < 0 ? text("O / ℓ   nothing yet") : text(whole, result)},
                       Lines::large);
  output.rows[0].full = marked(plain(output.rows[0].full), symbols({}));
  output.items.state.each = {wrong ? State::wrong : State::plain};
  // The result of summing exp(s) directly, once the row is complete.
  const double above = trace_.naive_numerator, below = trace_.naive_denominator;
  if (growing && now.tile + 1 == tiles() && std::isinf(below)) {
    const std::string naive = number(above / below, 3);
    output.rows.push_back(text(fmt::format("Σ exp(s)·v / Σ exp(s) = {} / {} = {}", number(above, 3),
                                           number(below, 3), naive),
                               naive));
    output.items.state.each.push_back(State::wrong);
    output.items.count = 2;
  }
  const float high = 1.7f * static_cast<float>(output.items.count);
  return column(
      {"sums"},
      {row({"totals"}, {std::move(l), meter(now, true)}, {.rank = 2}),
       box({"bar_output"}, {output}, {}, {.rank = 2, .weight = 0.02f, .least_height = high})},
      {.least_width = 12});
}

std::string OnlineSoftmaxScene::explain(const View& view, const Key& key) const {
  if (!key.is({"score", "weight", "weight_was", "v"})) return {};
  std::string words =
      fmt::format("key {} of tile {}\nscore {}   value {}", key.i, trace_.tile_of(key.i),
                  number(trace_.scores[key.i], 3), number(trace_.values[key.i], 3));
  const std::vector<float> now = weights(view.cursor);
  if (key.i < std::ssize(now)) words += fmt::format("\nweight now {}", number(now[key.i], 4));
  if (key.is({"score"}) && trace_.keys <= online_softmax::kMostScores)
    words += "\ndrag it up or down";
  return words;
}

}  // namespace tilestep::scenes
