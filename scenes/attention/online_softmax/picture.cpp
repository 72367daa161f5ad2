// The picture of the online-softmax lesson. From top to bottom: what happens in one sentence, the
// scores in tiles with the running maximum over them, the weights as they stand now, and below the
// step's formula beside the two running sums.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/attention/online_softmax/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using words::number;

namespace {

/// A colour for what was summed before; the tile worked on is amber, the running maximum purple.
constexpr std::uint8_t kSummed = 5, kMaximum = 4;
/// Margins of both charts, in heights of a line.
constexpr float kLeft = 3.4f, kRight = 5.5f;

State state_of_tile(int tile, int current) {
  return tile < current ? State::done : tile == current ? State::current : State::to_come;
}

}  // namespace

Extent OnlineSoftmaxScene::extent() const {
  double low = 0, high = 0, l = 0, o = 0;
  for (const float score : trace_.scores) {
    if (!std::isfinite(score)) continue;
    low = std::min<double>(low, score);
    high = std::max<double>(high, score);
  }
  for (const auto& step : trace_.steps) {
    if (std::isfinite(step.l)) l = std::max<double>(l, std::abs(step.l));
    if (std::isfinite(step.o)) o = std::max<double>(o, std::abs(step.o));
  }
  const auto line = [](Name name, std::pair<double, double> ends) {
    return Axis{.name = name, .low = ends.first, .high = ends.second};
  };
  return {{{.name = "key",
            .kind = Axis::band,
            .count = trace_.keys,
            .group = trace_.tile_width,
            .group_name = "tile"},
           line("score", rounded(low, high)),
           line("weight", {0, 1}),
           line("l", rounded(0, l)),
           line("O", rounded(0, o)),
           {.name = "sum", .kind = Axis::band, .count = 1}}};
}

Picture OnlineSoftmaxScene::picture(const Extent& extent, const View& view) const {
  const SoftmaxMoment now = moment(view.cursor);
  Picture made;
  made.headline = text(sentence(view.cursor));
  made.axes = extent.axes;
  made.axes[0].current_group = now.tile;
  made.axes[0].focus = std::max(now.tile, 0) * trace_.tile_width;
  Box below = row({"below"}, {formulas(now), sums(now)});
  below.rank = 1;
  below.least_height = 3;
  below.most_height = 6.4f;
  below.weight = 3;
  made.root =
      column({"softmax"}, {scores(view.cursor), weight_bars(view.cursor), std::move(below)});
  return made;
}

Box OnlineSoftmaxScene::scores(Cursor cursor) const {
  const SoftmaxMoment now = moment(cursor);
  Bars bars{items("score", trace_.scores, {Format::fixed, score_decimals_}), "key", "score"};
  Column<int> key;
  for (int k = 0; k < trace_.keys; ++k) {
    bars.items.state.each.push_back(state_of_tile(tile_of(k), now.tile));
    key.each.push_back(k);
  }
  bars.items.about = {{Name("key"), std::move(key)}};
  Curve maximum{{"m"}, {}, {}, {}, {}, "key", "score", kMaximum};
  for (int tile = 0; tile <= now.tile; ++tile) {
    const double m = trace_.steps[static_cast<std::size_t>(tile)].m;
    if (!std::isfinite(m)) continue;
    const int first = tile * trace_.tile_width;
    maximum.x.insert(maximum.x.end(),
                     {double(first), double(std::min(first + trace_.tile_width, trace_.keys))});
    maximum.y.insert(maximum.y.end(), {m, m});
  }
  if (!maximum.x.empty()) maximum.end = text("m = " + score_text(now.m));
  Box made = box({"scores"}, {std::move(bars), std::move(maximum)}, text("score s"));
  made.left = kLeft;
  made.right = kRight;
  made.least_height = 2.4f;
  made.weight = 1.3f;
  return made;
}

/// The weights shrink before the new tile adds its own; what they were stays as an outline.
Box OnlineSoftmaxScene::weight_bars(Cursor cursor) const {
  const SoftmaxMoment now = moment(cursor);
  Bars bars{items("weight", weights(cursor), {Format::fixed, 3}), "key", "weight"};
  Bars before{items("weight_was", 0), "key", "weight"};
  Column<int> key;
  const bool wrong = wrong_at(now);
  const bool fresh = now.tile >= 0 && now.phase >= SoftmaxPhase::weights;
  for (int k = 0; k < bars.items.count; ++k) {
    const bool added = fresh && tile_of(k) == now.tile;
    bars.items.state.each.push_back(added ? State::current : wrong ? State::wrong : State::done);
    bars.items.tone.each.push_back(added ? std::uint8_t{0} : kSummed);
    bars.items.ways.push_back(added ? Way{{"score", k}, {}, 0, true} : Way{});
    key.each.push_back(k);
  }
  bars.items.about = {{Name("key"), key}};
  if (now.phase >= SoftmaxPhase::rescale && now.rescale < 1 && now.tile > 0) {
    before.items.value.each = weights({cursor.tile, 0});
    before.items.count = static_cast<int>(before.items.value.each.size());
    before.items.flags.all = kWas;
    key.each.resize(before.items.value.each.size());
    before.items.about = {{Name("key"), std::move(key)}};
  }
  const Rule one{{"one"}, "weight", 1, State::to_come, text("1")};
  Box made = box({"weights"}, {std::move(before), std::move(bars), one}, text("weight"));
  made.left = kLeft;
  made.right = kRight;
  made.least_height = 1.7f;
  return made;
}

std::vector<std::string> OnlineSoftmaxScene::formula_rows(const SoftmaxMoment& now) const {
  if (now.tile < 0)
    return {"m = −∞", "rescale = exp(m_old − m)", "p = exp(s − m)", "l = 0", "O = 0"};
  const auto& step = trace_.steps[static_cast<std::size_t>(now.tile)];
  const std::string factor = number(step.rescale, 3), m = score_text(step.m);
  std::string rescale =
      fmt::format("rescale = exp({} − {}) = {}", score_text(step.m_old), m, factor);
  if (std::isinf(step.m)) {
    rescale = fmt::format("rescale = {}   (no maximum yet)", factor);
  } else if (trace_.skip_rescale && step.m > step.m_old) {
    rescale = fmt::format("rescale = {}   (skipped; it should be {})", factor,
                          number(std::exp(step.m_old - step.m), 3));
  }
  std::vector<std::string> rows = {
      fmt::format("m = max({}, {}) = {}", score_text(step.m_old), score_text(step.tile_max), m),
      std::move(rescale),
      fmt::format("Σp = Σ exp(s − {}) = {}", std::isinf(step.m) ? "0" : m,
                  number(step.tile_sum, 2)),
      fmt::format("l = {} × {} + {} = {}", number(step.l_old, 2), factor, number(step.tile_sum, 2),
                  number(step.l, 2)),
      fmt::format("O = {} × {} + Σp·v = {}", number(step.o_old, 2), factor, number(step.o, 2))};
  // What is to come is named, not given away.
  for (std::size_t row = static_cast<std::size_t>(now.phase) + 1; row < rows.size(); ++row) {
    if (row == 4 && now.phase == SoftmaxPhase::accumulate) break;
    rows[row] = rows[row].substr(0, rows[row].find('=') + 1) + " …";
  }
  return rows;
}

Box OnlineSoftmaxScene::formulas(const SoftmaxMoment& now) const {
  Lines lines{items("formula", 5), {}};
  const auto phase = static_cast<int>(now.phase);
  for (int row = 0; row < 5; ++row) {
    const State state = now.tile < 0 ? State::to_come : state_of_tile(std::min(row, 3), phase);
    lines.items.state.each.push_back(state);
  }
  for (std::string& row : formula_rows(now)) {
    // Where there is no room, what it comes to.
    const std::size_t first = row.find('='), last = row.rfind('=');
    std::string brief = first == last ? "" : row.substr(0, first) + row.substr(last);
    lines.rows.push_back(text(std::move(row), std::move(brief)));
  }
  Box made = box({"formulas"}, {std::move(lines)});
  made.weight = 1.3f;
  made.least_width = 16;
  return made;
}

/// What earlier tiles left after the rescale, what this tile added, and in outline what the sum was.
Box OnlineSoftmaxScene::sums(const SoftmaxMoment& now) const {
  const auto meter = [&](Key key, Name axis, double old, double kept, double sum) {
    const bool growing = now.phase == SoftmaxPhase::accumulate && now.tile >= 0;
    const auto part = [&](Name name, double from, double to) {
      Bars bar{items(name, std::vector{static_cast<float>(std::abs(to))}), axis, "sum"};
      bar.items.base.all = static_cast<float>(std::abs(from));
      bar.items.about = {{axis, Column<int>{0}}};
      return bar;
    };
    Bars before = part(axis == Name("l") ? Name("l_kept") : Name("O_kept"), 0, kept);
    before.items.tone.all = kSummed;
    before.items.state.all = State::done;
    Box made = box(key, {std::move(before)}, text(std::string(axis.text())));
    if (growing && sum != kept) {
      Bars added = part(axis == Name("l") ? Name("l_added") : Name("O_added"), kept, sum);
      added.items.state.all = State::current;
      made.marks.push_back(std::move(added));
    }
    if (now.rescale < 1 && old != 0) {
      Bars was = part(axis == Name("l") ? Name("l_was") : Name("O_was"), 0, old);
      was.items.flags.all = kWas;
      made.marks.push_back(std::move(was));
    }
    made.left = 1.4f;
    made.right = 4.5f;
    made.value = text(number(sum, 2));
    made.most_height = 1.8f;
    return made;
  };
  Lines output{items("output", 1), {}};
  output.voice = Lines::large;
  output.items.state.all = wrong_at(now) ? State::wrong : State::plain;
  output.rows = {text(now.tile < 0 ? "O / l   nothing yet" : "O / l = " + number(now.output, 3),
                      now.tile < 0 ? "" : number(now.output, 3))};
  Box result = box({"bar_output"}, {std::move(output)});
  result.rank = 2;
  result.least_height = 1.7f;
  Box made =
      column({"sums"}, {meter({"bar_l"}, "l", now.l_old, now.l_kept, now.l),
                        meter({"bar_O"}, "O", now.o_old, now.o_kept, now.o), std::move(result)});
  made.least_width = 12;
  return made;
}

std::string OnlineSoftmaxScene::explain(const View& view, const Key& key) const {
  const std::string_view name = key.name.text();
  if (!name.starts_with("score") && !name.starts_with("weight")) return {};
  const auto k = static_cast<std::size_t>(key.i);
  std::string words = fmt::format("key {} of tile {}\nscore {}   value {}", key.i, tile_of(key.i),
                                  number(trace_.scores[k], 3), number(trace_.values[k], 3));
  const std::vector<float> now = weights(view.cursor);
  if (k < now.size()) words += fmt::format("\nweight now {}", number(now[k], 4));
  return words;
}

}  // namespace tilestep::scenes
