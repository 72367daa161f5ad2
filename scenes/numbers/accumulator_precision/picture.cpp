// The picture of the accumulator lesson: the running sums against the number of terms, and the addition
// of this step in the accumulator that is followed, in bits and on the number line.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "scenes/numbers/accumulator_precision/scene.hpp"

namespace tilestep::scenes {

using accumulator_precision::Direction, accumulator_precision::Method,
    accumulator_precision::Rounding, accumulator_precision::Step, accumulator_precision::StepView;
using picture::Arrow, picture::Axis, picture::Box, picture::Cells, picture::Chips, picture::Curve,
    picture::Extent, picture::Format, picture::Items, picture::Key, picture::Lines, picture::Name,
    picture::Picture, picture::Rule, picture::Run, picture::State, picture::Text, picture::Ticks,
    picture::Way;
using words::significant;

namespace {

/// Glyphs of ticks.
enum Glyph : std::uint8_t { kStroke, kUp, kDown, kCross, kDot };

/// There are more accumulators than colours that all people tell apart: two come again, dashed.
std::uint8_t tone_of(Method method) {
  static constexpr std::uint8_t kTones[] = {6, 7, 5, 3, 4, 1, 2, 4, 7};
  return kTones[static_cast<std::size_t>(method)];
}
bool dashed(Method method) {
  return method == Method::kahan || method == Method::pairwise;
}

double at(const std::vector<double>& values, int point) {
  return values[static_cast<std::size_t>(point)];
}

/// A row of the addition: one line of text.
Lines line_of(Name name, Text text) {
  Lines line;
  line.items = picture::items(name, 1);
  line.rows = {std::move(text)};
  return line;
}

/// The bits in cells, field by field; those that differ from `other` are lit, the rest come from it.
Box row_of_bits(Name row_name, Name bit_name, const std::string& bits, const std::string& other,
                const numeric::FloatSpec& format, float cell) {
  const int counts[] = {1, format.exponent_bits, format.mantissa_bits};
  Box row = picture::row({row_name}, {});
  int bit = 0;
  for (int f = 0; f < 3; ++f) {
    Cells cells;
    cells.items = picture::items(bit_name, bits.empty() ? 0 : counts[f]);
    cells.items.format = {Format::integer};
    cells.columns = counts[f];
    cells.scale = "bit";
    for (int k = 0; k < cells.items.count; ++k, ++bit) {
      const auto place = static_cast<std::size_t>(bit + f);  // the fields have a space between them
      const bool changed = !other.empty() && other[place] != bits[place];
      cells.items.ids.push_back(bit);
      cells.items.value.each.push_back(bits[place] == '1' ? 1 : 0);
      cells.items.state.each.push_back(changed ? State::current : State::plain);
      const bool stays = !other.empty() && !changed;
      cells.items.ways.push_back(stays ? Way{{"before_bit", bit}, {}, 0, true} : Way{});
    }
    Box field = picture::box({row_name, f}, {cells});
    field.weight = 0;
    field.least_width = std::max(cell * static_cast<float>(counts[f]), 1.0f);
    field.least_height = cell;
    row.boxes.push_back(std::move(field));
  }
  return row;
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

/// A value with what is said beside it, in full and where room is short.
Text with_note(const std::string& meaning, const std::string& value, const std::string& full,
               const std::string& brief, State state) {
  const auto beside = [&](const std::string& note) {
    return Run{note.empty() ? "" : "   " + note, {}, state};
  };
  return {{{meaning + value}, beside(full)}, {{value}, beside(brief)}, {{value}}};
}

}  // namespace

Extent AccumulatorPrecisionScene::extent() const {
  // Zero is left out where all the sums are far from it, or they would be one flat line.
  const bool from_zero = low_ <= 0 || low_ < 0.5 * high_;
  const auto [low, high] = picture::rounded(from_zero ? std::min(low_, 0.0) : low_, high_);
  const double first = from_zero ? 0 : 1;
  return {{{.name = "terms",
            .low = first,
            .high = std::max<double>(trace_.terms, first + 1),
            .title = picture::text("terms added"),
            .ticks = true},
           {.name = "sum",
            .low = low,
            .high = high,
            .title = picture::text("running sum"),
            .ticks = true},
           {.name = "level", .low = -1}}};
}

RunningSum AccumulatorPrecisionScene::followed(const View& view) const {
  const int method = view.pick("accumulator", -1);
  for (const AccumulatorTrace& a : trace_.accumulators) {
    if (static_cast<int>(a.method) == method) return {trace_, a};
  }
  return {trace_, trace_.accumulators.front()};
}

Picture AccumulatorPrecisionScene::picture(const Extent& extent, const View& view) const {
  const RunningSum sum = followed(view);
  const AccumulatorMoment now = moment(view.cursor);
  Picture picture;
  picture.headline = picture::text(sum.sentence(now));
  picture.axes = extent.axes;
  Box where = sum.a.method == Method::pairwise ? blocks(now) : number_line(sum, now, picture.axes);
  Box step = picture::column({"step"}, {bits(sum, now), std::move(where)});
  step.flow = Box::either;
  step.weight = 0;
  picture.root = picture::column({"accumulators"}, {plot(sum, now, picture.axes[0].low),
                                                    rug(sum, now), chips(sum), std::move(step)});
  return picture;
}

// ---- the sums ------------------------------------------------------------------------------------

Curve AccumulatorPrecisionScene::curve(const AccumulatorTrace& a, int last, double first) const {
  Curve curve;
  curve.key = {"sum", static_cast<int>(a.method)};
  curve.ax = "terms";
  curve.ay = "sum";
  curve.tone = tone_of(a.method);
  curve.dashed = dashed(a.method);
  if (first == 0) curve.x = curve.y = {0};
  for (int point = 0; point <= last; ++point) {
    const auto sum = static_cast<double>(a.steps[static_cast<std::size_t>(point)].sum);
    if (!std::isfinite(sum)) break;
    curve.x.push_back(terms_added(point));
    curve.y.push_back(sum);
  }
  if (last >= 0) {
    const auto sum = static_cast<double>(a.steps[static_cast<std::size_t>(last)].sum);
    curve.end = picture::text(a.label + " " + significant(sum, 6), a.label);
    curve.end.group = "ends";
    curve.ends_free = true;
  }
  return curve;
}

/// Dashed: it is what the sums are held against, not what they do.
Curve AccumulatorPrecisionScene::exact(Key key, int from, int to, double first) const {
  Curve curve;
  curve.key = key;
  curve.ax = "terms";
  curve.ay = "sum";
  curve.dashed = true;
  if (from < 0 && first == 0) curve.x = curve.y = {0};
  for (int point = std::max(from, 0); point <= to; ++point) {
    curve.x.push_back(terms_added(point));
    curve.y.push_back(at(trace_.exact, point));
  }
  return curve;
}

/// Room for the longest name beside the plot.
float AccumulatorPrecisionScene::margin() const {
  std::size_t longest = 10;
  for (const AccumulatorTrace& a : trace_.accumulators) longest = std::max(longest, a.label.size());
  return 2 + 0.5f * static_cast<float>(longest);
}

Box AccumulatorPrecisionScene::plot(const RunningSum& sum, const AccumulatorMoment& now,
                                    double first) const {
  Box plot = picture::box({"plot"}, {});
  plot.left = 3;
  plot.right = margin();
  plot.least_height = 3;
  Curve to_come = exact({"exact_to_come"}, now.point, points() - 1, first);
  to_come.state = State::to_come;
  to_come.end = picture::text("exact " + significant(trace_.exact.back(), 6), "exact");
  to_come.end.group = "ends";
  plot.marks = {to_come, exact({"exact"}, -1, now.point, first)};
  for (const AccumulatorTrace& a : trace_.accumulators) {
    if (&a != &sum.a) plot.marks.emplace_back(curve(a, now.known(), first));
  }
  Curve followed = curve(sum.a, now.known(), first);
  followed.flags = picture::kPicked;
  plot.marks.emplace_back(followed);
  for (const AccumulatorTrace& a : trace_.accumulators) {
    if (!RunningSum{trace_, a}.frozen(now.known())) continue;
    Curve place = curve(a, -1, 1);
    place.key = {"frozen", static_cast<int>(a.method)};
    place.x = {static_cast<double>(a.frozen_at)};
    place.y = {static_cast<double>(a.final_sum)};
    plot.marks.emplace_back(place);
    if (&a != &sum.a) continue;
    const std::string brief = a.verdict.substr(0, a.verdict.find(':'));
    plot.marks.emplace_back(picture::Note{
        {"frozen_note"}, {place.key}, picture::text("frozen: " + a.verdict, "frozen: " + brief)});
  }
  if (now.point >= 0) {
    plot.marks.emplace_back(Rule{{"now"}, "terms", double(terms_added(now.point)), State::current});
  }
  return plot;
}

/// What rounding did with each term so far.
Box AccumulatorPrecisionScene::rug(const RunningSum& sum, const AccumulatorMoment& now) const {
  Ticks ticks;
  ticks.items = picture::items("fate", sum.a.method == Method::pairwise ? 0 : now.known() + 1);
  ticks.x = "terms";
  std::vector<int> terms;
  int lost = 0;
  for (int point = 0; point < ticks.items.count; ++point) {
    const RunningSum::Fate fate = sum.fate(point);
    lost += fate.lost ? 1 : 0;
    ticks.at.push_back(terms_added(point) - 0.5);
    terms.push_back(terms_added(point));
    ticks.items.state.each.push_back(fate.lost ? State::wrong : State::plain);
    ticks.items.glyph.each.push_back(fate.lost                           ? kCross
                                     : fate.direction == Direction::up   ? kUp
                                     : fate.direction == Direction::down ? kDown
                                                                         : kDot);
  }
  ticks.items.about = {{"term", {0, terms}}};
  Box rug = picture::box({"rug"}, {ticks});
  rug.rank = 2;
  rug.weight = 0;
  rug.least_height = 0.7f;
  rug.left = 3;
  rug.right = margin();
  if (ticks.items.count > 0) rug.value = picture::text(fmt::format("{} lost", lost));
  return rug;
}

Box AccumulatorPrecisionScene::chips(const RunningSum& sum) const {
  Chips chips;
  chips.items = picture::items("chip", static_cast<int>(trace_.accumulators.size()));
  for (const AccumulatorTrace& a : trace_.accumulators) {
    chips.items.names.push_back(a.label);
    chips.items.tone.each.push_back(tone_of(a.method));
    chips.items.flags.each.push_back(&a == &sum.a ? picture::kPicked : picture::kNone);
    chips.items.ids.push_back(static_cast<int>(a.method));
  }
  chips.items.about = {{"accumulator", {0, chips.items.ids}}};
  chips.items.act = {picture::Act::pick, "accumulator"};
  Box box = picture::box({"chips"}, {chips}, picture::text("in bits:"));
  box.rank = 2;
  box.weight = 0;
  box.least_height = 1.3f;
  box.left = 4.5f;
  return box;
}

// ---- the addition --------------------------------------------------------------------------------

/// The accumulator before, the term, the accumulator after.
Box AccumulatorPrecisionScene::bits(const RunningSum& sum, const AccumulatorMoment& now) const {
  const bool any = now.point >= 0;
  const int point = std::max(now.point, 0);
  const Step& s = sum.step(point);
  const numeric::FloatSpec& format = sum.a.format;
  const float before = any ? s.before : 0;  // a sum begins with nothing
  const std::string before_bits = accumulator_precision::bits_text(format, before);
  const std::string after_bits =
      now.rounded ? accumulator_precision::bits_text(format, s.after) : std::string();
  const float cell = std::min(1.3f, 23.0f / static_cast<float>(format.bits()));
  const std::string part = sum.a.method == Method::promoted ? "the part" : "";

  Box box = picture::column({"addition"}, {});
  box.close = true;
  Box fields = row_of_bits("fields", "field", {}, {}, format, cell);
  const std::string names[] = {"±", fmt::format("exponent {}", format.exponent_bits),
                               fmt::format("mantissa {}", format.mantissa_bits)};
  for (std::size_t f = 0; f < 3; ++f) {
    fields.boxes[f].label = picture::text(names[f], names[f].substr(0, 3));
    fields.boxes[f].least_height = 0.1f;
  }
  fields.boxes.push_back(picture::box({"field_end"}, {}));
  fields.left = 4.5f;
  fields.weight = 0;
  fields.rank = 3;
  fields.least_height = 0.1f;
  box.boxes.push_back(std::move(fields));
  const auto add = [&](Box row, std::string label, Name name, Text value) {
    row.label = picture::text(std::move(label));
    row.left = 4.5f;
    row.weight = 0;
    Box words = picture::box({name}, {line_of(name, std::move(value))});
    words.least_width = 4;
    row.boxes.push_back(std::move(words));
    box.boxes.push_back(std::move(row));
  };
  add(row_of_bits("before", "before_bit", before_bits, {}, format, cell), "before", "row_before",
      with_note(meaning_of(format, before_bits), "= " + sum.say(double(before)), part, part,
                State::done));
  Box term = picture::box({"term"}, {});
  term.left = 4.5f;
  term.weight = 0;
  term.least_height = 1.3f;
  term.rank = 3;
  if (any) {
    const auto [full, brief] = sum.term_note(point);
    term.label = picture::text(fmt::format("+ t[{}]", trace_.points[std::size_t(point)]));
    term.marks = {
        line_of("row_term", with_note("", sum.say(double(s.added)), full, brief, State::done))};
  }
  box.boxes.push_back(std::move(term));
  Text value = picture::text(any ? "…" : "");
  if (now.rounded) {
    const auto [full, brief] = sum.fate_note(point);
    value = with_note(meaning_of(format, after_bits), "= " + sum.say(double(s.after)), full, brief,
                      sum.fate(point).lost ? State::wrong : State::done);
  }
  add(row_of_bits("after", "after_bit", after_bits, before_bits, format, cell), any ? "after" : "",
      "row_after", std::move(value));
  return box;
}

/// The format's two numbers around the exact sum, the addition that led there, and the rounding.
Box AccumulatorPrecisionScene::number_line(const RunningSum& sum, const AccumulatorMoment& now,
                                           std::vector<Axis>& axes) const {
  Box box = picture::box({"number_line"}, {});
  box.least_width = 14;
  box.least_height = 3;
  box.rank = 1;
  if (now.point < 0) {
    Lines words = line_of("line_empty", picture::text("the neighbours of the exact sum come here"));
    words.voice = Lines::words;
    box.marks = {words};
    return box;
  }
  const Step& s = sum.step(now.point);
  const StepView v = sum.view(now.point);
  if (!std::isfinite(v.unrounded) || !std::isfinite(v.spacing)) {
    box.marks = {line_of("line_empty", {{{"past the format's range", {}, State::wrong}}})};
    return box;
  }
  const double low = v.below - v.spacing / 3, high = v.above + v.spacing / 3;
  axes.push_back({.name = "value", .low = low, .high = high});
  const double largest = numeric::max_finite(sum.a.format);
  Ticks neighbours;
  neighbours.items = picture::items("neighbour", 2);
  neighbours.x = "value";
  for (const double number : {v.below, v.above}) {
    const bool exists = std::abs(number) <= largest;
    neighbours.at.push_back(number);
    neighbours.items.names.push_back(exists ? sum.say(number) : "nothing");
    neighbours.items.state.each.push_back(exists ? State::plain : State::to_come);
  }
  std::string decides = "toward 0";
  if (trace_.rounding == Rounding::nearest) {
    ++neighbours.items.count;
    neighbours.at.push_back((v.below + v.above) / 2);
    neighbours.items.names.push_back("halfway " + sum.say(neighbours.at.back()));
    neighbours.items.state.each.push_back(State::to_come);
    decides.clear();
  } else if (trace_.rounding == Rounding::stochastic) {
    const double up = v.unrounded < v.above ? (v.unrounded - v.below) / v.spacing : 1;
    decides = fmt::format("up in {:.0f} % of cases", 100 * up);
  }
  const Curve base{.key = {"base"},
                   .x = {low, high},
                   .y = {0, 0},
                   .ax = "value",
                   .ay = "level",
                   .state = State::to_come};
  const std::string exact = "exact sum " + sum.say(v.unrounded);
  const Arrow up{
      {"line_exact"},
      "value",
      std::clamp<double>(s.before, low, high),
      v.unrounded,
      State::done,
      decides.empty() ? picture::text(exact) : picture::text(exact + ", " + decides, exact)};
  const State landed = !now.rounded ? State::plain : v.lost ? State::wrong : State::current;
  const double rests = now.rounded ? std::clamp<double>(s.after, low, high) : v.unrounded;
  // The sum itself: it lands on the line, and springs to the number that it becomes.
  const Curve rest{
      .key = {"landed"}, .x = {rests}, .y = {0}, .ax = "value", .ay = "level", .state = landed};
  box.marks = {base, neighbours, up, rest};
  if (now.rounded) {
    box.marks.emplace_back(Arrow{{"line_after", 1}, "value", v.unrounded, rests, landed});
  }
  return box;
}

/// Pairwise: the blocks of terms that wait for a block of their own size, as the bits of the number
/// of terms say.
Box AccumulatorPrecisionScene::blocks(const AccumulatorMoment& now) const {
  const unsigned count = now.point < 0 ? 0 : static_cast<unsigned>(terms_added(now.point));
  Chips blocks;
  blocks.items = picture::items("block", 0);
  for (unsigned size = 1u << 20; size > 0; size >>= 1) {
    if ((count & size) == 0) continue;
    ++blocks.items.count;
    blocks.items.names.push_back(std::to_string(size));
    blocks.items.state.each.push_back(State::plain);
  }
  if (count > 0) blocks.items.state.each.back() = State::current;
  Box box =
      picture::box({"blocks"}, {blocks},
                   picture::text("blocks of terms that wait for their equals", "blocks that wait"));
  if (blocks.items.count == 1) box.label = picture::text("one block holds all terms", "one block");
  box.least_width = 14;
  box.least_height = 2;
  return box;
}

}  // namespace tilestep::scenes
