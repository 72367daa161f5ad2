// One addition of the accumulator in focus: its bits before and after, the term between them, and
// the two neighbouring numbers that the exact sum falls between.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/numbers/accumulator_precision/layout.hpp"

namespace tilestep::scenes {

using accumulator_precision::Direction, accumulator_precision::Method,
    accumulator_precision::Rounding, accumulator_precision::Step, accumulator_precision::StepView;
using words::significant;

namespace {

/// The number of the group that the character of "0 1011 000" is in, and its place among the bits.
struct BitPlace {
  int group = 0, bit = 0;
};

template <class Draw>
void for_each_bit(const std::string& bits, const Draw& draw) {
  BitPlace place;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    if (bits[i] == ' ') {
      ++place.group;
      continue;
    }
    draw(i, place);
    ++place.bit;
  }
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

}  // namespace

void AccumulatorPrecisionScene::draw_group_names(const Layout& layout) const {
  const numeric::FloatSpec& format = focused().format;
  const int counts[] = {1, format.exponent_bits, format.mantissa_bits};
  const std::string names[] = {"±", fmt::format("exponent {}", format.exponent_bits),
                               fmt::format("mantissa {}", format.mantissa_bits)};
  float left = layout.cells_left;
  for (int group = 0; group < 3; ++group) {
    const float right = left + layout.cell * static_cast<float>(counts[group]);
    const bool last = group == 2;  // what stands to its right begins a row lower
    const float room = last ? layout.bits_max.x - left : right - left + layout.group_gap / 2;
    std::string name = names[group];
    if (ui::text_size(name, Font::note).x > room) name = name.substr(0, name.find(' '));
    if (ui::text_size(name, Font::note).x > room) name = group == 1 ? "exp" : "";
    ui::draw_text(at(left, layout.names_top), name, Font::note, Role::muted);
    left = right + layout.group_gap;
  }
}

/// The bits as cells; those of `after` that differ from `other` are lit.
void AccumulatorPrecisionScene::draw_cells(const Layout& layout, float y, const std::string& bits,
                                           const std::string& other, bool after) const {
  const float height = layout.row - px(layout.tight ? 2 : 4);
  const bool digits = layout.cell >= ui::text_size("0", Font::mono_note).x + px(2);
  for_each_bit(bits, [&](std::size_t i, BitPlace place) {
    const float x = layout.cells_left + layout.cell * static_cast<float>(place.bit) +
                    layout.group_gap * static_cast<float>(place.group);
    const ImVec2 min = at(x, y), max = at(x + layout.cell - px(1), y + height);
    const bool one = bits[i] == '1';
    const bool changed = after && i < other.size() && other[i] != bits[i];
    if (changed) {
      fill(min, max, Role::accent, one || digits ? 1.0f : 0.35f);
    } else if (digits || !one) {
      fill(min, max, Role::raised);
      outline(min, max, Role::border);
    } else {
      fill(min, max, Role::muted);
    }
    if (digits) {
      const Font font = layout.cell >= px(20) ? Font::mono : Font::mono_note;
      const char text[] = {bits[i], '\0'};
      ui::draw_text(at((min.x + max.x) / 2, (min.y + max.y - height_of(font)) / 2), text, font,
                    changed ? Role::on_accent : Role::text, Align::center);
    }
    ui::map(fmt::format("{}_bit_{}", after ? "after" : "before", place.bit),
            changed ? "changed" : "", one ? "1" : "0", min, max);
  });
}

void AccumulatorPrecisionScene::draw_bits(const Layout& layout,
                                          const AccumulatorMoment& now) const {
  const bool any = now.point >= 0;
  const int point = std::max(now.point, 0);
  const Step& s = step(point);
  const StepView v = view(point);
  const AccumulatorTrace& a = focused();
  const Font mono = layout.tight ? Font::mono_note : Font::mono;
  const auto say = [&](double value) { return significant(value, digits()); };
  const float text = (layout.row - px(layout.tight ? 2 : 4) - height_of(mono)) / 2;
  const float note = (layout.row - px(layout.tight ? 2 : 4) - layout.note) / 2;
  const auto y_of = [&](int row) {
    return layout.bits_min.y + layout.row * static_cast<float>(row);
  };
  const auto name = [&](int row, const std::string& words) {
    ui::draw_text(at(layout.min.x, y_of(row) + note), words, Font::mono_note, Role::muted);
  };
  const float cells =
      layout.cell * static_cast<float>(a.format.bits()) + 2 * layout.group_gap + px(8);
  const float values = layout.cells_left + cells;
  // A value and what is said about it: in full, in short, or not at all, as there is room.
  const auto value = [&](int row, float x, const std::string& words, const Note& note_words,
                         Role role, const char* id, const std::string& meaning = {}) {
    const float room = layout.bits_max.x - x;
    const auto fits = [&](const std::string& wide_words, const std::string& rest) {
      return ui::text_size(wide_words, mono).x + px(12) + ui::text_size(rest, Font::note).x <= room;
    };
    const std::string full = fits(meaning + words, note_words.full) ? meaning + words : words;
    const std::string shown = ui::fitted(full, mono, room);
    const ImVec2 size = ui::draw_text(at(x, y_of(row) + text), shown, mono);
    const std::string& about = fits(shown, note_words.full) ? note_words.full : note_words.brief;
    if (fits(shown, about)) {
      ui::draw_text(at(x + size.x + px(12), y_of(row) + note), about, Font::note, role);
    }
    ui::map(id, note_words.full, words, at(layout.min.x, y_of(row)),
            at(layout.bits_max.x, y_of(row) + layout.row - px(2)));
  };
  if (!layout.tight) draw_group_names(layout);

  name(0, "before");
  const float before = any ? s.before : 0;  // a sum begins with nothing
  const std::string before_bits = accumulator_precision::bits_text(a.format, before);
  draw_cells(layout, y_of(0), before_bits, before_bits, false);
  const char* part = a.method == Method::promoted ? "the part" : "";
  value(0, values, "= " + say(static_cast<double>(before)), {part, part}, Role::muted, "row_before",
        meaning_of(a.format, before_bits));
  if (!any) return;

  const int index = trace_.points[static_cast<std::size_t>(point)];
  name(1, fmt::format("+ t[{}]", index));
  value(1, layout.cells_left, say(static_cast<double>(s.added)), term_note(now.point), Role::muted,
        "row_term");

  name(2, "after");
  if (!now.rounded) {
    ui::draw_text(at(layout.cells_left, y_of(2) + text), "…", mono, Role::faint);
    return;
  }
  draw_cells(layout, y_of(2), v.after_bits, v.before_bits, true);
  value(2, values, "= " + say(static_cast<double>(s.after)), fate_note(now.point),
        v.lost ? Role::wrong : Role::muted, "row_after", meaning_of(a.format, v.after_bits));
}

/// The format's two numbers around the exact sum, the addition that led there, and the rounding.
void AccumulatorPrecisionScene::draw_number_line(const Layout& layout,
                                                 const AccumulatorMoment& now) const {
  const float left = layout.line_min.x, right = layout.line_max.x;
  const float y = std::round((layout.line_min.y + layout.line_max.y) / 2);
  ui::map("number_line", "", "", layout.line_min, layout.line_max);
  line(at(left, y), at(right, y), Role::border, 2);
  if (now.point < 0) {
    ui::draw_text(at((left + right) / 2, y + px(8)),
                  ui::fitted("the neighbours of the exact sum come here", Font::note, right - left),
                  Font::note, Role::faint, Align::center);
    return;
  }
  const Step& s = step(now.point);
  const StepView v = view(now.point);
  if (!std::isfinite(v.unrounded) || !std::isfinite(v.spacing)) {
    ui::draw_text(at((left + right) / 2, y + px(8)), "past the format's range", Font::note,
                  Role::wrong, Align::center);
    return;
  }
  const auto say = [&](double value) { return significant(value, digits()); };
  const auto x_of = [&](double value) {
    const auto share = static_cast<float>((value - v.below) / v.spacing);
    return std::clamp(left + (right - left) * (0.2f + 0.6f * share), left, right);
  };
  const float under = layout.line_max.y - layout.note;
  const auto tick = [&](double value, const char* id, bool exists) {
    const float x = std::round(x_of(value));
    line(at(x, y - px(6)), at(x, y + px(6)), exists ? Role::text : Role::faint, 2);
    const std::string label = exists ? say(value) : "nothing";
    const ImVec2 size = ui::text_size(label, Font::mono_note);
    const float at_x = std::clamp(x - size.x / 2, left, right - size.x);
    ui::draw_text(at(at_x, under), label, Font::mono_note, exists ? Role::text : Role::faint);
    ui::map(id, label, "", at(at_x, under), at(at_x + size.x, under + size.y));
    return at_x + size.x;
  };
  const double largest = numeric::max_finite(focused().format);
  const float below_end = tick(v.below, "line_below", v.below >= -largest);
  tick(v.above, "line_above", v.above <= largest);

  // What decides: halfway, a chance, or nothing where the rest is cut.
  std::string middle;
  if (trace_.rounding == Rounding::nearest) {
    const float x = std::round((x_of(v.below) + x_of(v.above)) / 2);
    ui::dashed_line(at(x, y - px(6)), at(x, y + px(6)), Role::muted, 1.5f);
    middle = "halfway " + significant(v.below + v.spacing / 2, digits() + 1);
  } else if (trace_.rounding == Rounding::stochastic) {
    const double up = (v.unrounded - v.below) / v.spacing;
    middle = fmt::format("up in {:.0f} % of cases", 100 * (v.unrounded < v.above ? up : 1));
  } else {
    middle = "toward 0";
  }
  const float middle_x = (x_of(v.below) + x_of(v.above)) / 2;
  const float half = ui::text_size(middle, Font::note).x / 2;
  const std::string above = v.above <= largest ? say(v.above) : "nothing";
  const float above_left = std::min(x_of(v.above) - ui::text_size(above, Font::mono_note).x / 2,
                                    right - ui::text_size(above, Font::mono_note).x);
  if (middle_x - half > below_end + px(4) && middle_x + half < above_left - px(4)) {
    ui::draw_text(at(middle_x, under), middle, Font::note, Role::muted, Align::center);
  }

  // The addition leads from what there was to the exact sum, the rounding from there to a number.
  const float to = x_of(v.unrounded);
  const float from = x_of(static_cast<double>(s.before));
  const float over = y - px(layout.tight ? 7 : 11);
  if (std::abs(to - from) > px(6)) ui::arrow(at(from, over), at(to, over), Role::muted, 1.5f);
  const ImVec2 tip = at(to, y - px(1));
  draw_list()->AddTriangleFilled(at(tip.x - px(5), tip.y - px(8)), at(tip.x + px(5), tip.y - px(8)),
                                 tip, ui::color(Role::text));
  const std::string label = "exact sum " + say(v.unrounded);
  const ImVec2 size = ui::text_size(label, Font::mono_note);
  const float label_x = std::clamp(to - size.x / 2, left, std::max(left, right - size.x));
  ui::draw_text(at(label_x, layout.line_min.y), label, Font::mono_note, Role::text);
  ui::map("line_exact", label, say(v.unrounded), at(label_x, layout.line_min.y),
          at(label_x + size.x, layout.line_min.y + size.y));
  if (!now.rounded) return;
  const float end = x_of(static_cast<double>(s.after));
  const Role role = v.lost ? Role::wrong : Role::accent;
  const float back = y + px(layout.tight ? 6 : 9);
  if (std::abs(end - to) > px(3)) ui::arrow(at(to, back), at(end, back), role, 2.5f);
  draw_list()->AddCircleFilled(at(end, y), px(5), ui::color(role));
  if (v.lost) ui::cross(at(to, back), px(4), Role::wrong);
  ui::map("line_after", v.lost ? "lost" : std::string(name_of(v.direction)),
          say(static_cast<double>(s.after)), at(end - px(5), y - px(5)),
          at(end + px(5), y + px(5)));
}

/// Pairwise: the blocks of terms that wait for a block of their own size, as the bits of the number
/// of terms say.
void AccumulatorPrecisionScene::draw_blocks(const Layout& layout,
                                            const AccumulatorMoment& now) const {
  const float top = layout.line_min.y + layout.note + px(2);
  const float bottom = layout.line_max.y - px(2);
  const float left = layout.line_min.x;
  ui::map("blocks", "", "", layout.line_min, layout.line_max);
  if (now.point < 0) return;
  const auto count = static_cast<unsigned>(terms_added(now.point));
  std::vector<unsigned> sizes;
  for (unsigned size = 1u << 20; size > 0; size >>= 1) {
    if ((count & size) != 0) sizes.push_back(size);
  }
  const std::string what = sizes.size() == 1 ? "one block holds all terms"
                                             : "blocks of terms that wait for their equals";
  ui::draw_text(at(left, layout.line_min.y), ui::fitted(what, Font::note, layout.line_max.x - left),
                Font::note, Role::muted);
  const float gap = px(6);
  const auto boxes = static_cast<float>(sizes.size());
  const float width = std::min((layout.line_max.x - left - gap * (boxes - 1)) / boxes, px(96));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const float x = left + (width + gap) * static_cast<float>(i);
    const ImVec2 min = at(x, top), max = at(x + width, bottom);
    const bool newest = i + 1 == sizes.size();
    fill(min, max, newest ? Role::accent : Role::raised);
    outline(min, max, newest ? Role::accent : Role::border);
    const std::string text = std::to_string(sizes[i]);
    const Font font = ui::text_size(text, Font::mono).x < width - px(4) ? Font::mono : Font::note;
    ui::draw_text(at((min.x + max.x) / 2, (min.y + max.y - height_of(font)) / 2),
                  ui::fitted(text, font, width), font, newest ? Role::on_accent : Role::text,
                  Align::center);
    ui::map(fmt::format("block_{}", i), text, newest ? "newest" : "waits", min, max);
  }
}

}  // namespace tilestep::scenes
