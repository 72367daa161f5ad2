#include "scenes/ui/code_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "scenes/ui/context.hpp"
#include "scenes/ui/line_links.hpp"

namespace tilestep::ui {
namespace {}  // namespace

CodeGrid::CodeGrid(int lines)
    : height(std::round(px(20))), advance(text_size("0", Font::mono_note).x) {
  const float digits =
      advance * static_cast<float>(std::max<std::size_t>(2, std::to_string(lines).size()));
  sign = px(11);
  number = px(22) + digits;
  step = number + px(14);
  text_left = step + px(14);
}

CodeMarks::CodeMarks(const std::vector<lab::Diagnostic>& all) {
  for (const lab::Diagnostic& each : all) {
    if (each.line > 0) by_line_[each.line - 1].push_back(&each);
  }
  for (auto& [line, marks] : by_line_) {
    std::stable_sort(marks.begin(), marks.end(),
                     [](const auto* a, const auto* b) { return a->severity < b->severity; });
  }
}

const std::vector<const lab::Diagnostic*>* CodeMarks::of(int line) const {
  const auto found = by_line_.find(line);
  return found == by_line_.end() ? nullptr : &found->second;
}

void draw_step_disc(int number, bool now, ImVec2 center) {
  const std::string digit = std::to_string(number);
  const float radius = px(8);
  if (now) {
    list().AddCircleFilled(center, radius, color(Role::accent));
  } else {
    list().AddCircle(center, radius, color(Role::muted), 0, px(1));
  }
  const float size = font_pixels(Font::note) * 0.82f;
  const float wide = text_size(digit, Font::note).x * 0.82f;
  list().AddText(
      font(Font::note), size, {std::round(center.x - wide / 2), std::round(center.y - size / 2)},
      ink(now ? Role::on_accent : Role::muted), digit.data(), digit.data() + digit.size());
}

Role role_of(Syntax kind) {
  switch (kind) {
    case Syntax::plain:
      return Role::text;
    case Syntax::keyword:
      return Role::purple;
    case Syntax::cuda:
      return Role::sky;
    case Syntax::number:
      return Role::orange;
    case Syntax::string:
      return Role::green;
    case Syntax::comment:
      return Role::muted;
  }
  return Role::text;
}

Role role_of(lab::Severity severity) {
  switch (severity) {
    case lab::Severity::error:
      return Role::wrong;
    case lab::Severity::warning:
      return Role::orange;
    case lab::Severity::note:
      return Role::muted;
  }
  return Role::muted;
}

void draw_sign(lab::Severity severity, ImVec2 center, float radius) {
  const Role role = role_of(severity);
  if (severity == lab::Severity::error) return cross(center, radius * 0.8f, role);
  if (severity == lab::Severity::note) {
    return list().AddCircle(center, radius * 0.7f, color(role), 0, px(1.5f));
  }
  list().AddTriangleFilled({center.x - radius, center.y + radius * 0.8f},
                           {center.x + radius, center.y + radius * 0.8f},
                           {center.x, center.y - radius}, color(role));
}

std::string to_sentence(const lab::Diagnostic& what) {
  std::string severity(name_of(what.severity));
  severity[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(severity[0])));
  return fmt::format("{}: {}", severity, what.text);
}

std::optional<std::pair<float, float>> CodeLines::range(int line, std::size_t from,
                                                        std::size_t to) const {
  const std::size_t begin = buffer_.offset_of({line, 0});
  const std::size_t end = begin + buffer_.line(line).size();
  if (to <= begin || from > end || from == to) return std::nullopt;
  const float left = x_of(buffer_.spot_of(std::max(from, begin)).column);
  // A line end that is selected shows as half a character.
  const float over = to > end && line + 1 < buffer_.lines() ? grid_.advance / 2 : 0;
  const float right = x_of(buffer_.spot_of(std::min(to, end)).column) + over;
  if (right <= left) return std::nullopt;
  return std::pair(left, right);
}

void CodeLines::draw_ground(int line, ImVec2 at, const ImRect& seen, bool has_keys) const {
  const float low = at.y, high = at.y + grid_.height;
  const int number = line + 1;
  if (number == look_.current) {
    list().AddRectFilled({seen.Min.x, low}, {seen.Max.x, high}, color(Role::accent, 0.17f));
    list().AddRectFilled({seen.Min.x, low}, {seen.Min.x + px(3), high}, color(Role::accent), px(2));
  } else if (has_keys && line == buffer_.spot().line) {
    list().AddRectFilled({seen.Min.x, low}, {seen.Max.x, high}, color(Role::raised, 0.8f));
  }
  if (std::count(look_.lit.begin(), look_.lit.end(), number) > 0) {
    draw_lit_line({seen.Min.x, low}, {seen.Max.x, high});
    map("lit_line", std::to_string(number), "", {seen.Min.x, low}, {seen.Max.x, high});
  }
  if (const auto* marks = marks_.of(line)) {
    list().AddRectFilled({seen.Min.x, low}, {seen.Max.x, high},
                         color(role_of(marks->front()->severity), 0.09f));
  }
  const auto [from, to] = buffer_.selection();
  if (const auto selected = range(line, from, to)) {
    list().AddRectFilled({at.x + selected->first, low}, {at.x + selected->second, high},
                         color(Role::sky, has_keys ? 0.3f : 0.16f));
  }
}

void CodeLines::draw_match(int line, ImVec2 at, std::size_t offset, std::size_t size) const {
  const auto place = range(line, offset, offset + size);
  if (!place) return;
  const ImVec2 min(at.x + place->first - px(1), at.y + px(1)),
      max(at.x + place->second + px(1), at.y + grid_.height - px(1));
  list().AddRect(min, max, color(Role::sky), px(3), 0, px(1));
}

float CodeLines::draw(int line, ImVec2 at, const ImRect& seen) const {
  draw_number(line, at);
  draw_code(line, at);
  const auto* marks = marks_.of(line);
  const std::string_view text = buffer_.line(line);
  float right = x_of(characters(text));
  if (marks != nullptr) {
    draw_sign(marks->front()->severity, {at.x + grid_.sign, at.y + grid_.height / 2}, px(5));
    for (const lab::Diagnostic* each : *marks) draw_place(line, at, *each);
    right = draw_message(line, at, right, seen);
  } else {
    right = draw_value(line, at, right);
  }
  map(fmt::format("editor_line_{}", line + 1), text, line + 1 == look_.current ? "current" : "",
      {seen.Min.x, at.y}, {seen.Max.x, at.y + grid_.height});
  return right;
}

void CodeLines::draw_number(int line, ImVec2 at) const {
  const float y = at.y + (grid_.height - font_pixels(Font::mono_note)) / 2;
  const bool now = line + 1 == look_.current || line == buffer_.spot().line;
  draw_text({at.x + grid_.number, y}, std::to_string(line + 1), Font::mono_note,
            now ? Role::text : Role::muted, Align::right);
  draw_step(line, {at.x + grid_.step, at.y + grid_.height / 2});
}

void CodeLines::draw_step(int line, ImVec2 center) const {
  const auto& steps = look_.step_lines;
  const auto found = std::find(steps.begin(), steps.end(), line + 1);
  if (found != steps.end()) {
    draw_step_disc(static_cast<int>(found - steps.begin()) + 1, line + 1 == look_.current, center);
  }
}

void CodeLines::draw_code(int line, ImVec2 at) const {
  if (line >= std::ssize(tint_)) return;  // the empty one behind the last line end
  const std::string_view text = buffer_.text();
  const float y = at.y + (grid_.height - font_pixels(Font::mono_note)) / 2;
  float x = at.x + x_of(0);
  for (const SyntaxSpan& span : tint_[static_cast<std::size_t>(line)].spans) {
    const std::string_view piece = text.substr(span.begin, span.end - span.begin);
    draw_text({x, y}, piece, Font::mono_note, role_of(span.kind));
    x += grid_.advance * static_cast<float>(span.columns);
  }
}

/// A line under the word that is meant.
void CodeLines::draw_place(int line, ImVec2 at, const lab::Diagnostic& what) const {
  const std::string_view text = buffer_.line(line);
  if (what.column < 1 || static_cast<std::size_t>(what.column) > text.size()) return;
  const auto is_part = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || std::isalnum(byte) != 0 || c == '_';
  };
  const auto from = static_cast<std::size_t>(what.column) - 1;
  std::size_t to = from + 1;
  if (is_part(text[from])) {
    while (to < text.size() && is_part(text[to])) ++to;
  }
  const float left = at.x + x_of(characters(text.substr(0, from)));
  const float right = at.x + x_of(characters(text.substr(0, to)));
  const float y = at.y + grid_.height - px(2);
  list().AddLine({left, y}, {right, y}, color(role_of(what.severity)), px(2));
}

/// The first sentence at the line's end, as much of it as there is room for. Returns where it ends.
float CodeLines::draw_message(int line, ImVec2 at, float left, const ImRect& seen) const {
  const auto& marks = *marks_.of(line);
  const lab::Diagnostic& worst = *marks.front();
  std::string sentence = to_sentence(worst);
  if (marks.size() > 1) sentence += fmt::format("  (and {} more)", marks.size() - 1);
  const float x = left + px(24);
  const float room = std::max(px(200), seen.Max.x - (at.x + x) - px(16));
  const std::string shown = fitted(sentence, Font::note, room);
  const ImVec2 size = text_size(shown, Font::note);
  const float y = at.y + (grid_.height - size.y) / 2;
  draw_text({at.x + x, y}, shown, Font::note, role_of(worst.severity));
  map(fmt::format("diagnostic_{}", line + 1), sentence, name_of(worst.severity), {at.x + x, at.y},
      {at.x + x + size.x, at.y + grid_.height});
  return x + size.x + px(16);
}

float CodeLines::draw_value(int line, ImVec2 at, float left) const {
  const auto value = look_.values.find(line + 1);
  if (value == look_.values.end()) return left;
  const float x = left + px(16);
  const float wide = text_size(value->second, Font::mono_note).x + px(12);
  const bool now = line + 1 == look_.current;
  const ImVec2 low(at.x + x, at.y + px(1)), high(low.x + wide, at.y + grid_.height - px(1));
  list().AddRectFilled(low, high, color(Role::raised), px(4));
  draw_text({low.x + px(6), at.y + (grid_.height - font_pixels(Font::mono_note)) / 2},
            value->second, Font::mono_note, now ? Role::text : Role::muted);
  map(fmt::format("value_{}", line + 1), value->second, now ? "current" : "", low, high);
  return x + wide + px(8);
}

void CodeLines::draw_tip(int line, ImVec2 origin) const {
  const auto* marks = marks_.of(line);
  if (marks == nullptr) return;
  const float mouse = ImGui::GetIO().MousePos.x - origin.x;
  const float end = x_of(characters(buffer_.line(line)));
  if (mouse > grid_.text_left && mouse < end) return;  // on the code itself
  constexpr std::size_t kMost = 6;
  std::string all;
  for (std::size_t i = 0; i < std::min(marks->size(), kMost); ++i) {
    all += (i > 0 ? "\n" : "") + to_sentence(*(*marks)[i]);
  }
  show_tooltip(all);
}

}  // namespace tilestep::ui
