// The picture of the accumulator lesson: the running sums against the number of terms, and this step's
// addition in the accumulator in focus, in bits and on the number line.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/numbers/accumulator_precision/scene.hpp"

namespace tilestep::scenes {

using namespace picture;
using accumulator_precision::bits_text, accumulator_precision::Direction,
    accumulator_precision::Method, accumulator_precision::Rounding, accumulator_precision::Step,
    accumulator_precision::StepView;
using words::significant;

namespace {

/// Glyphs of ticks.
enum Glyph : std::uint8_t { kStroke, kUp, kDown, kCross, kDot };

constexpr float kLeft = 4.5f;  ///< margin for the row names, in line heights

/// The category tones, and yellow for the last, which is dashed.
std::uint8_t tone_of(Method method) {
  static constexpr std::uint8_t kTones[] = {10, 9, 3, 8, 5, 1, 4, 11, 7};
  return kTones[static_cast<std::size_t>(method)];
}
bool dashed(Method method) {
  return method == Method::kahan || method == Method::pairwise;
}

/// A row of the addition: one line of text.
Lines line_of(Name name, Text text) {
  return lines(name, {std::move(text)}, Lines::formula);
}

/// The bits in cells, field by field; bits that differ from `other` are lit.
Box row_of_bits(Name row_name, Name bit_name, const std::string& bits, const std::string& other,
                const numeric::FloatSpec& format, const Layout& layout) {
  const float cell = std::min(1.3f, 23.0f / static_cast<float>(format.bits()));
  const int counts[] = {1, format.exponent_bits, format.mantissa_bits};
  Box made = row({row_name}, {}, layout);
  int bit = 0;
  for (int f = 0; f < 3; ++f) {
    Cells cells{items(bit_name, bits.empty() ? 0 : counts[f])};
    cells.items.format = {Format::integer};
    cells.columns = counts[f];
    cells.scale = "bit";
    for (int k = 0; k < cells.items.count; ++k, ++bit) {
      const int place = bit + f;  // the fields have a space between them
      const bool changed = !other.empty() && other[place] != bits[place];
      cells.items.ids.push_back(bit);
      cells.items.value.each.push_back(bits[place] == '1' ? 1 : 0);
      cells.items.state.each.push_back(changed ? State::current : State::plain);
      const bool stays = !other.empty() && !changed;
      cells.items.ways.push_back(stays ? Way{{"before_bit", bit}, {}, 0, true} : Way{});
    }
    const float wide = std::max(cell * static_cast<float>(counts[f]), 1.0f);
    made.boxes.push_back(
        box({row_name, f}, {cells}, {}, {.weight = 0, .least_width = wide, .least_height = cell}));
  }
  return made;
}

/// "= 1.010₂ × 2⁵ " of "0 1100 010"; nothing for zero, infinity and NaN.
std::string meaning_of(const numeric::FloatSpec& format, const std::string& bits) {
  const std::string exponent = bits.substr(2, static_cast<std::size_t>(format.exponent_bits));
  const std::string mantissa =
      bits.substr(bits.size() - static_cast<std::size_t>(format.mantissa_bits));
  const bool zeros = mantissa.find('1') == std::string::npos;
  const int field = std::stoi(exponent, nullptr, 2);
  const bool top = exponent.find('0') == std::string::npos;
  const bool special = top && (format.specials == numeric::Specials::ieee ||
                               mantissa.find('0') == std::string::npos);
  if (special || (field == 0 && zeros)) return {};
  return fmt::format("= {}{}.{}₂ × 2{} ", bits[0] == '1' ? "−" : "", field == 0 ? 0 : 1, mantissa,
                     words::raised(std::max(field, 1) - format.bias()));
}

/// A value with its note, in full and in short forms for little room.
Text with_note(const std::string& meaning, const std::string& value, const RunningSum::Note& note,
               State state) {
  const auto beside = [&](const std::string& words) {
    return Run{words.empty() ? "" : "   " + words, {}, state};
  };
  return {{{meaning + value}, beside(note.full)}, {{value}, beside(note.brief)}, {{value}}};
}

}  // namespace

Extent AccumulatorPrecisionScene::extent() const {
  const Axis::Kind kind = by_powers() ? Axis::log : Axis::linear;
  auto [low, high] = rounded(from_zero() ? std::min(low_, 0.0) : low_, high_);
  if (by_powers()) {
    low = std::pow(10, std::floor(std::log10(1.2 * low_)));  // a first term near 1 is no decade
    high = std::pow(10, std::ceil(std::log10(high_)));
  }
  const double first = from_zero() ? 0 : 1;
  return {{{.name = "terms",
            .kind = kind,
            .low = first,
            .high = std::max<double>(trace_.terms, first + 1),
            .title = text("terms added"),
            .ticks = true},
           {.name = "sum",
            .kind = kind,
            .low = low,
            .high = high,
            .title = text("running sum"),
            .ticks = true},
           {.name = "level", .low = -1},
           {.name = "all_numbers",
            .low = -0.02 * rounded(0, high_).second,
            .high = rounded(0, high_).second,
            .ticks = true}}};
}

RunningSum AccumulatorPrecisionScene::followed(const View& view) const {
  const int method = view.pick("accumulator", -1);
  for (const AccumulatorTrace& a : trace_.accumulators) {
    if (static_cast<int>(a.method) == method) return {trace_, a};
  }
  return {trace_, trace_.accumulators.front()};
}

std::vector<Symbol> AccumulatorPrecisionScene::symbols(const View& view) const {
  std::vector<Symbol> all = {{"exact sum",
                              {"exact", 0},
                              0,
                              "The same terms added without any rounding, in integers of 2^-60."}};
  const Method followed = this->followed(view).a.method;
  for (const AccumulatorTrace& a : trace_.accumulators) {
    all.push_back({a.label,
                   {"accumulator", static_cast<int>(a.method)},
                   tone_of(a.method),
                   fmt::format("A running sum that is rounded to {} bits of mantissa after each "
                               "addition.",
                               a.format.mantissa_bits)});
    if (a.method == followed) all.back().code = {"s", "partial", "total", "carry"};
  }
  return all;
}

Picture AccumulatorPrecisionScene::picture(const Extent& extent, const View& view) const {
  const RunningSum sum = followed(view);
  const AccumulatorMoment now = moment(view.cursor);
  Picture made{{marked(sum.sentence(now), symbols(view))}, extent.axes};
  Box where = blocks(now);
  if (sum.a.method != Method::pairwise) {
    where = column({"number_line"}, {neighbours(sum, now, made.axes), all_numbers(sum, now)},
                   {.close = true, .rank = 1});
  }
  // Next to no room beside the plot; all of it when the plot steps aside.
  Box step = column({"step"}, {bits(sum, now), std::move(where)},
                    {.flow = Layout::either, .weight = 0.001f});
  made.subject = view.cursor.tile > 0 ? std::vector<std::string>{"number_line", "addition", "chips"}
                                      : std::vector<std::string>{"plot", "chips"};
  made.root =
      column({"accumulators"}, {plot(sum, now), rug(sum, now), chips(sum), std::move(step)});
  return made;
}

// ---- the sums ------------------------------------------------------------------------------------

/// A sum from term to term while it is finite; it starts at 0 if the axis does.
Curve AccumulatorPrecisionScene::curve(Key key, int from, int to,
                                       const std::function<double(int)>& sum) const {
  Curve curve{.key = key, .ax = "terms", .ay = "sum"};
  if (from < 0 && from_zero() && !by_powers()) curve.x = curve.y = {0};
  for (int point = std::max(from, 0); point <= to && std::isfinite(sum(point)); ++point) {
    curve.x.push_back(terms_added(point));
    curve.y.push_back(sum(point));
  }
  return curve;
}

/// Room for the longest name beside the plot.
float AccumulatorPrecisionScene::margin() const {
  std::size_t longest = 10;
  for (const AccumulatorTrace& a : trace_.accumulators) longest = std::max(longest, a.label.size());
  return 2 + 0.5f * static_cast<float>(longest);
}

Box AccumulatorPrecisionScene::plot(const RunningSum& sum, const AccumulatorMoment& now) const {
  const auto named = [](Curve& curve, const std::string& name, double last) {
    curve.end = text(name + " " + significant(last, 6), name);
    curve.end.group = "ends";
  };
  // Dashed: the reference, not one of the sums.
  const auto exact = [&](int point) { return trace_.exact[point]; };
  Curve before = curve({"exact"}, -1, now.point, exact);
  Curve to_come = curve({"exact_to_come"}, now.point, points() - 1, exact);
  before.dashed = to_come.dashed = true;
  before.about = to_come.about = {"exact", 0};
  to_come.state = State::to_come;
  before.base = to_come.base = {0};
  named(to_come, "exact", trace_.exact.back());
  Box made =
      box({"plot"}, {to_come, before}, {}, {.least_height = 3, .left = 3, .right = margin()});
  std::vector<const AccumulatorTrace*> order;  // the one in focus on top
  for (const AccumulatorTrace& a : trace_.accumulators) {
    if (&a != &sum.a) order.push_back(&a);
  }
  order.push_back(&sum.a);
  for (const AccumulatorTrace* a : order) {
    Curve one = curve({"sum", static_cast<int>(a->method)}, -1, now.known(),
                      [&](int point) { return a->steps[point].sum; });
    one.tone = tone_of(a->method);
    one.dashed = dashed(a->method);
    one.flags = a == &sum.a ? kPicked : kNone;
    if (a == &sum.a) {  // its error so far
      one.base = curve({}, -1, now.known(), exact).y;
      one.base.resize(one.y.size());
    }
    one.ends_free = true;
    one.about = {"accumulator", one.key.i};
    one.act = {Act::pick, "accumulator"};
    if (now.known() >= 0) named(one, a->label, a->steps[now.known()].sum);
    made.marks.emplace_back(std::move(one));
  }
  for (const AccumulatorTrace& a : trace_.accumulators) {
    if (!RunningSum{trace_, a}.frozen(now.known())) continue;
    Curve place = {.key = {"frozen", static_cast<int>(a.method)},
                   .x = {double(a.frozen_at)},
                   .y = {a.final_sum},
                   .ax = "terms",
                   .ay = "sum",
                   .tone = tone_of(a.method),
                   .dashed = dashed(a.method),
                   .about = {"accumulator", static_cast<int>(a.method)}};
    made.marks.emplace_back(place);
    if (&a != &sum.a) continue;
    const std::string brief = a.verdict.substr(0, a.verdict.find(':'));
    made.marks.emplace_back(
        Note{{"frozen_note"}, {place.key}, text("frozen: " + a.verdict, "frozen: " + brief)});
  }
  if (now.point >= 0) {
    made.marks.emplace_back(Rule{{"now"}, "terms", double(terms_added(now.point)), State::current});
  }
  return made;
}

/// What rounding did to each term so far.
Box AccumulatorPrecisionScene::rug(const RunningSum& sum, const AccumulatorMoment& now) const {
  Ticks ticks{items("fate", sum.a.method == Method::pairwise ? 0 : now.known() + 1)};
  ticks.x = "terms";
  std::vector<int> terms;
  int lost = 0;
  for (int point = 0; point < ticks.items.count; ++point) {
    const StepView fate = sum.view(point);
    lost += fate.lost ? 1 : 0;
    terms.push_back(terms_added(point));
    ticks.at.push_back(terms.back() - 0.5);
    ticks.items.state.each.push_back(fate.lost ? State::wrong : State::plain);
    ticks.items.glyph.each.push_back(fate.lost                           ? kCross
                                     : fate.direction == Direction::up   ? kUp
                                     : fate.direction == Direction::down ? kDown
                                                                         : kDot);
  }
  ticks.items.about = {{"term", {0, terms}}};
  ticks.items.act = {Act::go};
  Box made = box({"rug"}, {ticks}, {},
                 {.rank = 2, .weight = 0, .least_height = 0.7f, .left = 3, .right = margin()});
  // A long sum does not keep every term.
  const bool all = points() == trace_.terms;
  if (!terms.empty()) {
    made.value = all ? text(fmt::format("{} lost", lost))
                     : text(fmt::format("{} of {} shown lost", lost, terms.size()),
                            fmt::format("{} of {}", lost, terms.size()), std::to_string(lost));
  }
  return made;
}

Box AccumulatorPrecisionScene::chips(const RunningSum& sum) const {
  Chips chips{items("chip", static_cast<int>(trace_.accumulators.size()))};
  for (const AccumulatorTrace& a : trace_.accumulators) {
    chips.items.names.push_back(a.label);
    chips.items.tone.each.push_back(tone_of(a.method));
    chips.items.flags.each.push_back(&a == &sum.a ? kPicked : kNone);
    chips.items.ids.push_back(static_cast<int>(a.method));
  }
  chips.items.about = {{"accumulator", {0, chips.items.ids}}};
  chips.items.act = {Act::pick, "accumulator"};
  return box({"chips"}, {chips}, text("in bits:"),
             {.rank = 2, .weight = 0, .least_height = 1.3f, .left = kLeft});
}

// ---- the addition --------------------------------------------------------------------------------

/// The accumulator before, the term, the accumulator after.
Box AccumulatorPrecisionScene::bits(const RunningSum& sum, const AccumulatorMoment& now) const {
  const bool any = now.point >= 0;
  const int point = std::max(now.point, 0);
  const Step& s = sum.step(point);
  const numeric::FloatSpec& format = sum.a.format;
  const float before = any ? s.before : 0;  // a sum starts at 0
  const std::string before_bits = bits_text(format, before);
  const std::string after_bits = now.rounded ? bits_text(format, s.after) : std::string();
  const std::string part = sum.a.method == Method::promoted ? "partial" : "";

  const Layout heading = {.rank = 3, .weight = 0, .least_height = 0.1f, .left = kLeft};
  Box fields = row_of_bits("fields", "field", {}, {}, format, heading);
  const std::string names[] = {"±", fmt::format("exponent {}", format.exponent_bits),
                               fmt::format("mantissa {}", format.mantissa_bits)};
  for (int f = 0; f < 3; ++f) {
    fields.boxes[f].label = text(names[f], names[f].substr(0, 3));
    fields.boxes[f].least_height = 0.1f;
  }
  fields.boxes.push_back(box({"field_end"}, {}));
  const auto with_words = [&](Box bits, std::string label, Name name, Text value) {
    bits.label = text(std::move(label));
    bits.boxes.push_back(box({name}, {line_of(name, std::move(value))}));
    return bits;
  };
  const Layout in_row = {.weight = 0, .left = kLeft};
  Box first = with_words(row_of_bits("before", "before_bit", before_bits, {}, format, in_row),
                         "before", "row_before",
                         with_note(meaning_of(format, before_bits), "= " + sum.say(before),
                                   {part, part}, State::done));
  Box term = box({"term"}, {}, text(any ? fmt::format("+ t[{}]", trace_.points[point]) : ""),
                 {.rank = 3, .weight = 0, .least_height = 1.3f, .left = kLeft});
  if (any) {
    term.marks = {
        line_of("row_term", with_note("", sum.say(s.added), sum.term_note(point), State::done))};
  }
  Text value = text(any ? "…" : "");
  if (now.rounded) {
    const bool still =
        trace_.term[point] != 0 && s.after == s.before;  // also of a tree of additions
    value = with_note(meaning_of(format, after_bits), "= " + sum.say(s.after), sum.fate_note(point),
                      still || sum.view(point).misplaced() ? State::wrong : State::done);
  }
  Box last = with_words(row_of_bits("after", "after_bit", after_bits, before_bits, format, in_row),
                        any ? "after" : "", "row_after", std::move(value));
  return column({"addition"},
                {std::move(fields), std::move(first), std::move(term), std::move(last)},
                {.close = true, .weight = 0.05f});
}

/// Every number of a low-precision format, as far as the sum can reach, and the one that it holds.
Box AccumulatorPrecisionScene::all_numbers(const RunningSum& sum,
                                           const AccumulatorMoment& now) const {
  constexpr int kFewBits = 3;
  constexpr double kCrowd = 1.0 / 64;  // of the axis: below it they are too close to tell apart
  const numeric::FloatSpec& format = sum.a.format;
  Box made = box({"all_numbers"}, {}, {}, {.rank = 2, .least_height = 1.6f});
  if (format.mantissa_bits > kFewBits || !from_zero() || low_ < 0) return box({"all_numbers"}, {});
  made.label = text(fmt::format("all numbers of {}", sum.a.label), "all numbers");
  const double high = rounded(0, high_).second;
  Ticks numbers{items("number", 1)};
  numbers.x = "all_numbers";
  numbers.at = {0};
  for (double power = std::exp2(std::floor(std::log2(high))); power > kCrowd * high; power /= 2) {
    const double apart = std::ldexp(power, -format.mantissa_bits);
    for (double value = power; value < 2 * power && value <= high; value += apart) {
      ++numbers.items.count;
      numbers.at.push_back(value);
    }
  }
  made.marks = {std::move(numbers)};
  if (now.point < 0) return made;
  const Step& s = sum.step(now.point);
  const auto holds = static_cast<double>(now.rounded ? s.after : s.before);
  made.marks.emplace_back(Curve{.key = {"holds"},
                                .x = {holds},
                                .y = {0},
                                .ax = "all_numbers",
                                .ay = "level",
                                .state = State::current});
  return made;
}

/// The format's two numbers around the exact sum, the addition that led there, and the rounding.
Box AccumulatorPrecisionScene::neighbours(const RunningSum& sum, const AccumulatorMoment& now,
                                          std::vector<Axis>& axes) const {
  Box made = box({"neighbours"}, {}, {}, {.least_width = 14, .least_height = 3});
  if (now.point < 0) {
    made.marks = {lines("line_empty", {text("neighbours of the unrounded sum appear here")})};
    return made;
  }
  const Step& s = sum.step(now.point);
  const StepView v = sum.view(now.point);
  if (!std::isfinite(v.unrounded) || !std::isfinite(v.spacing)) {
    made.marks = {line_of("line_empty", {{{"past the format's range", {}, State::wrong}}})};
    return made;
  }
  const double low = v.below - v.spacing / 3, high = v.above + v.spacing / 3;
  axes.push_back({.name = "value", .low = low, .high = high});
  Ticks neighbours{items("neighbour", 0)};
  neighbours.x = "value";
  const auto add = [&](double at, std::string name, State state) {
    ++neighbours.items.count;
    neighbours.at.push_back(at);
    neighbours.items.names.push_back(std::move(name));
    neighbours.items.state.each.push_back(state);
  };
  for (const double number : {v.below, v.above}) {
    const bool exists = std::abs(number) <= numeric::max_finite(sum.a.format);
    add(number, exists ? sum.say(number) : "nothing", exists ? State::plain : State::to_come);
  }
  std::string decides = ", toward 0";
  std::vector<Curve> basins;  // what rounds to either neighbour
  if (trace_.rounding == Rounding::nearest) {
    const double halfway = (v.below + v.above) / 2;
    for (const bool up : {false, true}) {
      basins.push_back({.key = {"rounds_to", up ? 1 : 0},
                        .x = {up ? halfway : v.below, up ? v.above : halfway},
                        .y = {0.9, 0.9},
                        .ax = "value",
                        .ay = "level",
                        .state = up ? State::to_come : State::plain,
                        .base = {-0.9}});
    }
    add(halfway, "halfway " + sum.say(halfway), State::to_come);
    decides.clear();
  } else if (trace_.rounding == Rounding::stochastic) {
    const double up = v.unrounded < v.above ? (v.unrounded - v.below) / v.spacing : 1;
    decides = fmt::format(", up in {:.0f} % of cases", 100 * up);
  }
  const std::string exact = "unrounded " + sum.say(v.unrounded);
  const State landed = !now.rounded              ? State::plain
                       : v.lost || v.misplaced() ? State::wrong
                                                 : State::current;
  const double from = std::clamp<double>(s.before, low, high),
               rests = now.rounded ? std::clamp<double>(s.after, low, high) : v.unrounded;
  const Curve base{.key = {"base"},
                   .x = {low, high},
                   .y = {0, 0},
                   .ax = "value",
                   .ay = "level",
                   .state = State::to_come};
  // The sum itself: it lands on the line and jumps to its rounded value.
  const Curve rest{
      .key = {"landed"}, .x = {rests}, .y = {0}, .ax = "value", .ay = "level", .state = landed};
  made.marks = {base, neighbours,
                Arrow{{"line_exact"},
                      "value",
                      from,
                      v.unrounded,
                      State::done,
                      text(exact + decides, decides.empty() ? "" : exact)},
                rest};
  made.marks.insert(made.marks.begin(), basins.begin(), basins.end());
  if (now.rounded) {
    made.marks.emplace_back(Arrow{{"line_after", 1}, "value", v.unrounded, rests, landed});
  }
  return made;
}

/// Pairwise: the blocks of terms that wait for a block of equal size, given by the bits of the number
/// of terms.
Box AccumulatorPrecisionScene::blocks(const AccumulatorMoment& now) const {
  const int count = now.point < 0 ? 0 : terms_added(now.point);
  Chips blocks{items("block", 0)};
  for (int size = 1 << 20; size > 0; size >>= 1) {
    if ((count & size) == 0) continue;
    ++blocks.items.count;
    blocks.items.names.push_back(std::to_string(size));
    blocks.items.state.each.push_back(State::plain);
  }
  if (count > 0) blocks.items.state.each.back() = State::current;
  return box({"blocks"}, {blocks},
             blocks.items.count == 1
                 ? text("one block holds all terms", "one block")
                 : text("blocks of terms waiting for an equal one", "waiting blocks"),
             {.least_width = 14, .least_height = 2});
}

}  // namespace tilestep::scenes
