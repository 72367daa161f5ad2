// The picture of the lesson on positions: wheels, the score against distance and the numbers in memory; wavelengths and
// far scores; bytes of the launches.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "scenes/attention/positions/scene.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using positions::Method, positions::Moved, positions::Phase;
using words::number, words::significant;

namespace {

constexpr int kWheels = 8;  ///< on show at a time
constexpr std::uint8_t kQuery = 1, kKey = 3, kSum = 5;
constexpr float kLeft = 2.6f;
/// Ways to stretch, in the order of their curves.
constexpr Method kStretched[] = {Method::linear, Method::ntk, Method::yarn};

Name name_of_hand(int slot, bool query) {
  constexpr Name kQueries[] = {"q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7"};
  constexpr Name kKeys[] = {"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"};
  return query ? kQueries[slot] : kKeys[slot];
}

Curve hand_curve(Key key, const PositionsScene::Hand& hand, bool query, bool turned) {
  Curve curve{.key = key, .x = {0, hand.x}, .y = {0, hand.y}, .ax = "across", .ay = "along"};
  curve.tone = query ? kQuery : kKey;
  curve.dashed = !turned;
  curve.about = {"hand", query ? 0 : 1};
  return curve;
}

Curve circle(Key key, double radius, State state) {
  constexpr int kPoints = 48;
  Curve curve{.key = key, .ax = "across", .ay = "along"};
  curve.state = state;
  for (int i = 0; i <= kPoints; ++i) {
    const double angle = 2 * std::numbers::pi * i / kPoints;
    curve.x.push_back(radius * std::cos(angle));
    curve.y.push_back(radius * std::sin(angle));
    curve.base.push_back(-std::abs(curve.y.back()));  // the disc is tinted
  }
  return curve;
}

std::uint8_t tone_of(Method method) {
  return method == Method::linear ? 10
         : method == Method::ntk  ? 11
         : method == Method::yarn ? 4
                                  : 0;
}

double sum_of(const std::vector<Moved>& launches) {
  double sum = 0;
  for (const Moved& one : launches) sum += one.read + one.written;
  return sum;
}

}  // namespace

Extent PositionsScene::extent() const {
  double term = 0, all = 0, slow = 0;
  for (int i = 0; i < pairs(); ++i) {
    const double most = largest_term(i);
    term = std::max(term, most);
    all += most;
    if (i >= trace_.first_slow()) slow += most;
  }
  const double hand = 1.06 * longest_hand();
  const auto slope = trace_.method == Method::alibi ? static_cast<double>(positions::kSlope) : 0.0;
  const auto [low, high] = rounded(-0.5 * all - slope * positions::kTokens, all);
  const auto far = rounded(-slow - slope * trace_.reach, slow);
  positions::Turning slowest = trace_.turning();
  slowest.method = Method::linear;
  double longest = 1 / turns_of(slowest).back();
  const double top = std::pow(10, std::ceil(std::log10(longest)));
  const int first = trace_.positions.front();
  return {
      {{.name = "across", .low = -hand, .high = hand},
       {.name = "along", .low = -hand, .high = hand},
       {.name = "term", .low = -rounded(0, term).second, .high = rounded(0, term).second},
       {.name = "one", .kind = Axis::band, .count = 1, .names = {""}},
       {.name = "distance",
        .kind = Axis::band,
        .count = positions::kTokens,
        .title = text("distance"),
        .ticks = true,
        .least_slot = 3},
       {.name = "score", .low = low, .high = high, .ticks = true},
       {.name = "position",
        .low = double(std::max(first - positions::kTokens, 0)),
        .high = double(std::max(first - positions::kTokens, 0) + 3 * positions::kTokens),
        .title = text("position"),
        .ticks = true},
       {.name = "token_row", .kind = Axis::band, .count = 1, .names = {""}},
       {.name = "number", .kind = Axis::band, .count = trace_.dim, .ticks = true, .least_slot = 22},
       {.name = "of", .kind = Axis::band, .count = 2, .names = {"q", "k"}, .least_slot = 12},
       {.name = "frequency",
        .kind = Axis::band,
        .count = pairs(),
        .title = text("frequency"),
        .ticks = true,
        .least_slot = 3},
       {.name = "wavelength", .kind = Axis::log, .low = 1, .high = top, .ticks = true},
       {.name = "count",
        .kind = Axis::log,
        .low = 1,
        .high = 1e5,
        .title = text("tokens that are seen"),
        .ticks = true},
       {.name = "change", .kind = Axis::log, .low = 1e-5, .high = 1, .ticks = true},
       {.name = "far_distance",
        .high = double(trace_.reach),
        .title = text("distance"),
        .ticks = true},
       {.name = "far_score", .low = far.first, .high = far.second, .ticks = true},
       {.name = "way", .kind = Axis::band, .count = 2, .names = {"four launches", "one launch"}},
       {.name = "bytes",
        .high = rounded(0, 26.0 * trace_.dim).second,
        .title = text("bytes per token"),
        .ticks = true}}};
}

Picture PositionsScene::picture(const Extent& extent, const View& view) const {
  const Cursor cursor = view.cursor;
  Picture made{{marked(sentence(view), symbols(view))}, extent.axes};
  const int part = part_of(cursor);
  const Box gap = box({"gap"}, {}, {}, {.weight = 0, .least_height = 0.5f});
  if (in_pairs(cursor)) {
    for (Axis& axis : made.axes) {
      if (axis.name == Name("number"))
        axis.focus = positions::number_of(trace_.pairs, trace_.dim, std::max(pair(cursor), 0), 0);
    }
    made.root =
        column({"positions", part}, {gap, wheels(view), near(view),
                                     row({"below"}, {numbers(view), tokens(view)},
                                         {.rank = 3, .weight = 0.2f, .least_height = 3.2f})});
    made.subject = {"wheels", "near"};
    return made;
  }
  if (extends(cursor)) {
    const bool counts = trace_.method == Method::nope;
    made.root =
        column({"positions", part},
               {gap, row({"extension"}, {counts ? count() : frequencies(cursor), far(cursor)})});
    made.subject = {counts ? "count_box" : "wavelengths", "far"};
    return made;
  }
  made.root = column({"positions", part}, {gap, launches(cursor)});
  made.subject = {"launches"};
  return made;
}

// ---- wheels -------------------------------------------------------------------------------------------

Box PositionsScene::wheel(const View& view, int slot, int i) const {
  const Cursor cursor = view.cursor;
  const int key = trace_.last() - distance(view);
  const bool is_turned = i < turned(cursor), is_now = i == pair(cursor);
  const State state = is_now ? State::current : is_turned ? State::done : State::to_come;
  std::vector<Mark> marks = {circle({"rim", slot}, longest_hand(), state)};
  for (const bool query : {true, false}) {
    const auto hand = [&](bool after) {
      return query ? query_hand(i, after) : key_hand(key, i, after);
    };
    // Where the hand came from, on the wheel that has just turned.
    if (is_now && hand(false).is_number()) {
      Curve was =
          hand_curve({query ? Name("q_was") : Name("k_was"), slot}, hand(false), query, false);
      was.state = State::to_come;
      marks.emplace_back(std::move(was));
    }
    if (hand(is_turned).is_number())
      marks.emplace_back(hand_curve({name_of_hand(slot, query)}, hand(is_turned), query, true));
  }
  Bars term{items("term", 0), {}, "one"};
  term.x = "term";
  term.items.count = 1;
  term.items.ids = {i};
  const bool known = i < summed(cursor);
  const float value = known ? trace_.term(key, i) : NAN;
  term.items.value.each = {value};
  term.items.state.each = {is_now && known ? State::current : State::done};
  term.items.tone.all = is_now && known ? 0 : kSum;
  term.items.names = {known && std::isfinite(value) ? number(static_cast<double>(value), 2) : ""};
  const std::string says =
      turns(trace_.method)
          ? significant(1 / turns_of(trace_.turning())[static_cast<std::size_t>(i)], 3)
          : std::string("∞");
  return column(
      {"slot", slot},
      {box({"wheel", slot}, std::move(marks), text(says),
           {.weight = 1, .least_width = 2.2f, .least_height = 2.2f, .wish = 5, .aspect = 1}),
       box({"term_box", slot}, {std::move(term)}, {},
           {.weight = 0, .least_width = 2.2f, .least_height = 0.8f})},
      {.close = true, .least_width = 2.2f});
}

Box PositionsScene::wheels(const View& view) const {
  const int now = std::clamp(pair(view.cursor), 0, pairs() - 1);
  const int first = std::min(now / kWheels * kWheels, std::max(pairs() - kWheels, 0));
  // Two rows where there is height for large wheels, otherwise one.
  std::vector<Box> rows;
  const int count = std::min(kWheels, pairs());
  for (int half = 0; half < 2; ++half) {
    std::vector<Box> slots;
    for (int slot = half * count / 2; slot < (half + 1) * count / 2; ++slot)
      slots.push_back(wheel(view, slot, first + slot));
    Layout layout;
    layout.even = true;
    rows.push_back(row({"wheel_row", half}, std::move(slots), layout));
  }
  Layout layout{.weight = 1.2f, .least_height = 3, .wish = 1};
  layout.flow = Layout::wished;
  Box made = column({"wheels"}, std::move(rows), layout);
  made.label = {marked("hands of q and k, and the tokens of a whole turn", symbols(view)),
                marked("hands of q and k", symbols(view)),
                {{"wheels"}}};
  return made;
}

// ---- the score ------------------------------------------------------------------------------------------

Box PositionsScene::near(const View& view) const {
  const Cursor cursor = view.cursor;
  const int count = summed(cursor), now = pair(cursor);
  Bars bars{items("score", positions::kTokens), "distance", "score"};
  bars.items.act = {Act::pick, "distance"};
  bars.items.tone.all = kSum;
  bars.items.about = {{"distance", {0, picture::numbers(positions::kTokens)}}};
  for (int d = 0; d < positions::kTokens; ++d) {
    const auto score = score_at(d, cursor);
    bars.items.value.each.push_back(score ? static_cast<float>(*score) : 0.0f);
    bars.items.flags.each.push_back(d == distance(view) ? kPicked : kNone);
    bars.items.state.each.push_back(count > 0 ? State::done : State::to_come);
  }
  std::vector<Mark> marks = {std::move(bars)};
  if (now >= 0 && now < count) {
    Curve wave{.key = {"wave"}, .ax = "distance", .ay = "score"};
    wave.state = State::current;
    for (int d = 0; d < positions::kTokens; ++d) {
      wave.x.push_back(d + 0.5);
      wave.y.push_back(static_cast<double>(trace_.term(trace_.last() - d, now)));
    }
    wave.base = {0};
    wave.end = text(fmt::format("frequency {}", now), std::to_string(now));
    marks.emplace_back(std::move(wave));
  }
  if (count == pairs() && trace_.broken != positions::Break::none) {
    Curve right{.key = {"sound"}, .ax = "distance", .ay = "score"};
    right.dashed = true;
    for (int d = 0; d < positions::kTokens; ++d) {
      right.x.push_back(d + 0.5);
      right.y.push_back(
          static_cast<double>(trace_.sound[static_cast<std::size_t>(trace_.last() - d)]));
    }
    right.base = {0};
    right.end = text("right");
    marks.emplace_back(std::move(right));
  }
  const std::string of = fmt::format("{} of {} frequencies", count, pairs());
  return labelled({"near"},
                  box({"near_plot"}, std::move(marks), {},
                      {.least_height = 2.5f, .left = kLeft, .right = 6.5f}),
                  text("score against distance: " + of, "score: " + of, "score"),
                  {.rank = 1, .weight = 1.6f, .least_width = 14, .least_height = 3.5f});
}

/// Where the two tokens stand: dragging one moves both.
Box PositionsScene::tokens(const View& view) const {
  Spans spans{items("token", 2), {0, 0}, {}, {}, 0, "position", "token_row"};
  spans.items.names = {"k", "q"};
  spans.items.tone.each = {kKey, kQuery};
  spans.items.about = {{"hand", {0, {1, 0}}}};
  spans.items.act = {Act::drag, "position"};
  const int key = trace_.last() - distance(view);
  for (const int token : {key, trace_.last()}) {
    const int at = trace_.positions[static_cast<std::size_t>(token)];
    spans.begin.push_back(at);
    spans.end.push_back(at + 1);
  }
  spans.now = spans.end.back();
  return labelled(
      {"tokens"}, box({"token_line"}, {std::move(spans)}, {}, {.least_height = 1.4f, .left = 1}),
      text("positions: drag q, both move", "positions"),
      {.rank = 4, .weight = 1, .least_width = 8, .least_height = 3.2f, .most_height = 5});
}

Box PositionsScene::numbers(const View& view) const {
  const Cursor cursor = view.cursor;
  const int key = trace_.last() - distance(view);
  Cells cells{items("number", 2 * trace_.dim)};
  cells.x = "number";
  cells.y = "of";
  cells.columns = trace_.dim;
  cells.items.per_row = trace_.dim;
  for (const bool query : {true, false}) {
    for (int n = 0; n < trace_.dim; ++n) {
      const int i = pair_with(trace_.pairs, trace_.dim, n);
      const bool is_turned = i < turned(cursor);
      const auto at = static_cast<std::size_t>(n);
      const float value = query ? (is_turned ? trace_.q_turned : trace_.q)[at]
                          : is_turned
                              ? trace_.k_turned[static_cast<std::size_t>(key * trace_.dim) + at]
                              : trace_.k[at];
      cells.items.names.push_back(number(static_cast<double>(value), 2));
      cells.items.tone.each.push_back(query ? kQuery : kKey);
      cells.items.state.each.push_back(i == pair(cursor) ? State::current
                                       : is_turned       ? State::done
                                                         : State::to_come);
    }
  }
  std::vector<int> hands(static_cast<std::size_t>(2 * trace_.dim), 1);
  std::fill_n(hands.begin(), trace_.dim, 0);
  cells.items.about = {{"hand", {0, std::move(hands)}}};
  return labelled(
      {"numbers"},
      box({"number_rows"}, {std::move(cells)}, {}, {.least_height = 2.2f, .left = 1.4f}),
      text(
          fmt::format("q and k in memory: {} pairs",
                      trace_.pairs == positions::Pairs::interleaved ? "interleaved" : "half-split"),
          "in memory"),
      {.rank = 3, .weight = 2, .least_width = 14, .least_height = 3.2f, .most_height = 7});
}

// ---- past the trained length ------------------------------------------------------------------------------

Box PositionsScene::frequencies(Cursor) const {
  std::vector<Mark> marks;
  const auto add = [&](Key key, Method method, bool own) {
    positions::Turning turning = trace_.turning();
    turning.method = method;
    Curve curve{.key = key, .ax = "frequency", .ay = "wavelength"};
    const std::vector<double> each = turns_of(turning);
    for (std::size_t i = 0; i < each.size(); ++i) {
      curve.x.push_back(static_cast<double>(i) + 0.5);
      curve.y.push_back(1 / each[i]);
    }
    curve.tone = tone_of(method);
    curve.dashed = !own;
    curve.flags = own ? kPicked : kNone;
    if (own) curve.base = {1};
    curve.end = text(method == Method::rope ? "as trained" : std::string(name_of(method)));
    marks.emplace_back(std::move(curve));
  };
  add({"trained"}, Method::rope, trace_.method == Method::rope);
  if (trace_.scale > 1) {
    constexpr Name kNames[] = {"linear", "ntk", "yarn"};
    for (std::size_t i = 0; i < std::size(kStretched); ++i)
      add({kNames[i]}, kStretched[i], trace_.method == kStretched[i]);
  }
  marks.emplace_back(Rule{{"trained_length"},
                          "wavelength",
                          double(trace_.trained_length),
                          State::plain,
                          text("trained length", "trained")});
  return labelled(
      {"wavelengths"},
      box({"wavelength_plot"}, std::move(marks), {}, {.least_height = 5, .left = 3.2f, .right = 5}),
      text("tokens of a whole turn, by frequency (derived)", "tokens of a turn"),
      {.weight = 1, .least_width = 14, .least_height = 7});
}

/// What a model without positions can count by: equal weights of what a causal mask lets it see.
Box PositionsScene::count() const {
  Curve change{.key = {"change_curve"}, .ax = "count", .ay = "change"};
  for (const double n : {1.0, 1e5}) {
    change.x.push_back(n);
    change.y.push_back(1 / n);
  }
  change.tone = kSum;
  change.base = {1e-5};
  change.end = text("1/n");
  const Rule spacing{{"spacing"}, "change", 0x1p-8, State::plain, text("BF16: 1/256")};
  return labelled(
      {"count_box"},
      box({"count_plot"}, {change, spacing}, {}, {.least_height = 5, .left = 3.2f, .right = 5}),
      text("change of a weight 1/n by one token more (derived)", "one token more"),
      {.weight = 1, .least_width = 14, .least_height = 7});
}

Box PositionsScene::far(Cursor cursor) const {
  std::vector<Mark> marks;
  const bool known = cursor >= Cursor{trace_.extension(), static_cast<int>(Phase::score)};
  const auto add = [&](Key key, const positions::Far& of, std::string name, bool own) {
    Curve curve{.key = key, .ax = "far_distance", .ay = "far_score"};
    for (int sample = 0; sample < positions::kSamples; ++sample) {
      curve.x.push_back(trace_.distance(sample));
      curve.y.push_back(static_cast<double>(of.slow[static_cast<std::size_t>(sample)]));
    }
    curve.tone = own ? kSum : std::uint8_t{0};
    curve.dashed = !own;
    curve.flags = own ? kPicked : kNone;
    if (own) curve.base = {0};
    curve.end = text(std::move(name));
    marks.emplace_back(std::move(curve));
  };
  if (known) {
    if (trace_.method != Method::rope) add({"untouched"}, trace_.untouched, "rope", false);
    add({"far_mean"}, trace_.far, std::string(name_of(trace_.method)), true);
  }
  marks.emplace_back(Rule{{"far_length"},
                          "far_distance",
                          double(trace_.trained_length),
                          State::plain,
                          text("trained length", "trained")});
  if (!known)
    marks.emplace_back(Curve{.key = {"far_none"}, .ax = "far_distance", .ay = "far_score"});
  return labelled(
      {"far"}, box({"far_plot"}, std::move(marks), {}, {.least_height = 5, .left = 3, .right = 4}),
      text(fmt::format("score of frequencies {}–{} against distance", trace_.first_slow(),
                       pairs() - 1),
           "slow part of the score"),
      {.weight = 1.2f, .least_width = 14, .least_height = 7});
}

// ---- launches ---------------------------------------------------------------------------------------------

Box PositionsScene::launches(Cursor cursor) const {
  SpanList list("moved", "bytes", "way", "stage");
  Box bars = box({"launch_bars"}, {}, {}, {.weight = 3, .least_height = 4, .left = 6, .right = 4});
  Ledger table{items("launch_bytes", 0), {}, {text("read"), text("written")}};
  const auto add = [&](int lane, const std::vector<Moved>& all, bool known) {
    double at = 0;
    for (const Moved& one : all) {
      const auto stage = static_cast<int>(one.stage);
      table.rows.push_back(text(std::string(name_of(one.stage))));
      for (const double bytes : {one.read, one.written})
        table.items.names.push_back(known ? significant(bytes, 4) : "–");
      if (!known) continue;
      const double end = at + one.read + one.written;
      list.add(
          {lane, at, end, State::done, kSum, std::string(name_of(one.stage)), stage, stage, 1});
      at = end;
    }
    if (known)
      bars.marks.emplace_back(
          lane_end({"moved_end", lane}, "bytes", "way", at, text(significant(at, 4) + " B")));
  };
  add(0, trace_.apart, true);
  add(1, trace_.together, cursor >= Cursor{trace_.length(), static_cast<int>(Phase::score)});
  table.items.count = static_cast<int>(table.items.names.size());
  table.items.per_row = 2;
  bars.marks.insert(bars.marks.begin(), list.made(sum_of(trace_.apart)));
  return labelled(
      {"launches"},
      {std::move(bars), box({"launch_table"}, {std::move(table)}, {},
                            {.rank = 1, .least_width = 14, .least_height = 7})},
      text("bytes that a token's q, k and v cost, by the kernels' accesses", "bytes per token"),
      {.weight = 1, .least_width = 14, .least_height = 5});
}

// ---- explanations -------------------------------------------------------------------------------------------

std::string PositionsScene::explain(const View& view, const Key& key) const {
  if (key.is({"score"}) && key.i >= 0 && key.i < positions::kTokens) {
    const auto score = score_at(key.i, view.cursor);
    const int position = trace_.positions[static_cast<std::size_t>(trace_.last() - key.i)];
    return fmt::format("k at position {}, distance {}\nscore so far {}\nclick to follow it",
                       position, key.i, score ? number(*score, 3) : "0");
  }
  if (key.is({"number"}) && key.j >= 0 && key.j < trace_.dim)
    return fmt::format("number {} of {}: frequency {}", key.j, key.i == 0 ? "q" : "k",
                       pair_with(trace_.pairs, trace_.dim, key.j));
  if (key.is({"token"})) return "drag it: both tokens move";
  return {};
}

}  // namespace tilestep::scenes
