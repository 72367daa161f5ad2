#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/ui/context.hpp"

namespace tilestep::ui {
namespace {

/// A shape of its own for each provenance, so that the word can be left out where room is short.
void draw_mark(lab::Provenance provenance, ImVec2 center, float radius, ImU32 ink) {
  const float thickness = std::max(px(1.25f), 1.0f);
  switch (provenance) {
    case lab::Provenance::measured:  // a stopwatch
      list().AddCircle(center, radius, ink, 0, thickness);
      list().AddLine(center, {center.x, center.y - radius * 0.65f}, ink, thickness);
      list().AddLine(center, {center.x + radius * 0.5f, center.y}, ink, thickness);
      break;
    case lab::Provenance::counted:  // tally marks
      for (int stroke = -1; stroke <= 1; ++stroke) {
        const float x = center.x + static_cast<float>(stroke) * radius * 0.7f;
        list().AddLine({x, center.y - radius}, {x, center.y + radius}, ink, thickness);
      }
      break;
    case lab::Provenance::traced: {  // a path with its points
      const ImVec2 points[] = {{center.x - radius, center.y + radius * 0.7f},
                               {center.x, center.y - radius * 0.6f},
                               {center.x + radius, center.y + radius * 0.2f}};
      list().AddPolyline(points, 3, ink, 0, thickness);
      for (const ImVec2& point : points) list().AddCircleFilled(point, radius * 0.32f, ink);
      break;
    }
    case lab::Provenance::derived:  // an equals sign
      for (const float side : {-0.35f, 0.35f}) {
        list().AddLine({center.x - radius, center.y + side * radius},
                       {center.x + radius, center.y + side * radius}, ink, thickness);
      }
      break;
    case lab::Provenance::recorded:  // a record button
      list().AddCircle(center, radius, ink, 0, thickness);
      list().AddCircleFilled(center, radius * 0.5f, ink);
      break;
  }
}

float mark_width(std::string_view word) {
  return px(16) + std::ceil(text_size(word, Font::note).x);
}

std::string plain_sentence(lab::Provenance provenance) {
  switch (provenance) {
    case lab::Provenance::measured:
      return "Measured: timed on the device named, in this run.";
    case lab::Provenance::counted:
      return "Counted by a hardware counter of the GPU.";
    case lab::Provenance::traced:
      return "Traced: recorded by the kernel itself while it ran.";
    case lab::Provenance::derived:
      return "Derived with a formula.";
    case lab::Provenance::recorded:
      return "Recorded: measured earlier, on the GPU and day named.";
  }
  return {};
}

}  // namespace

void provenance_mark(lab::Provenance provenance, std::string_view sentence) {
  const std::string_view word = name_of(provenance);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = text_size(word, Font::note).y;
  const ImVec2 size(mark_width(word), height);
  draw_mark(provenance, {at.x + px(6), std::round(at.y + height / 2)}, px(4.5f),
            color(Role::muted));
  draw_text({at.x + px(16), at.y}, word, Font::note, Role::muted);
  ImGui::PushID(static_cast<int>(at.x * 31 + at.y));
  ImGui::InvisibleButton("provenance", size);
  ImGui::PopID();
  tooltip(sentence.empty() ? plain_sentence(provenance) : std::string(sentence));
}

namespace {

/// Lines of whole words that fit `width`, for text that is centred line by line.
std::vector<std::string> wrapped_lines(std::string_view text, float width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string word(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!lines.empty() && text_size(lines.back() + " " + word).x <= width) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

std::string mark_sentence(const Readout& readout) {
  const std::string plain = plain_sentence(readout.provenance);
  return readout.detail.empty() ? plain : fmt::format("{}\n{}", plain, readout.detail);
}

/// Label and value on one line; of the mark the shape alone.
void dense_readout(const Readout& readout) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  // Words behind the unit, and then the unit, go before anything is cut.
  std::string shown = readout.value;
  for (const std::string& unit : {readout.unit, readout.unit.substr(0, readout.unit.find(", "))}) {
    const std::string whole = unit.empty() ? readout.value : readout.value + " " + unit;
    if (text_size(whole, Font::mono).x > width * 0.55f) continue;
    shown = whole;
    break;
  }
  shown = fitted(shown, Font::mono, width * 0.6f);
  const ImVec2 size = text_size(shown, Font::mono);
  const float middle = at.y + size.y / 2;
  draw_text({at.x + width, at.y}, shown, Font::mono, readout.role, Align::right);
  float room = width - size.x - px(28);
  if (!readout.beside.empty()) {
    const float besides = text_size(readout.beside, Font::mono_note).x + px(12);
    if (besides < room / 2) {
      draw_text({at.x + width - size.x - px(12), middle - text_size("x", Font::mono_note).y / 2},
                readout.beside, Font::mono_note, Role::muted, Align::right);
      room -= besides;
    }
  }
  const ImVec2 label = draw_text({at.x, middle - text_size("x", Font::note).y / 2},
                                 fitted(readout.label, Font::note, room), Font::note, Role::muted);
  draw_mark(readout.provenance, {at.x + label.x + px(14), middle}, px(4.5f), color(Role::muted));
  ImGui::InvisibleButton(readout.id.c_str(), {width, size.y});
  Context::current().focus().control(readout.id, at, {at.x + width, at.y + size.y});
  tooltip(mark_sentence(readout));
}

void large_readout(const Readout& readout) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float mark_room = mark_width(name_of(readout.provenance));
  draw_text(at, fitted(readout.label, Font::note, width - mark_room - px(8)), Font::note,
            Role::muted);
  const ImVec2 mark(std::max(at.x, at.x + width - mark_room), at.y);
  ImGui::SetCursorScreenPos(mark);
  Context::current().focus().control(readout.id + "_mark", mark,
                                     {mark.x + mark_room, mark.y + text_size("x", Font::note).y});
  provenance_mark(readout.provenance, mark_sentence(readout));

  const float note_height = text_size("x", Font::note).y;
  const float unit_room =
      readout.unit.empty() ? 0 : text_size(readout.unit, Font::body).x + px(kGapSmall);
  // A long number becomes smaller before it is cut.
  const bool large = text_size(readout.value, Font::mono_large).x + unit_room <= width;
  const Font font = large ? Font::mono_large : Font::mono;
  const ImVec2 line(at.x, at.y + note_height);
  const std::string shown = fitted(readout.value, font, width - unit_room);
  const ImVec2 size = draw_text(line, shown, font, readout.role);
  const float unit_height = text_size("x", Font::body).y;
  draw_text({line.x + size.x + px(kGapSmall), line.y + (size.y - unit_height) * 0.72f},
            readout.unit, Font::body, Role::muted);
  if (!readout.beside.empty()) {
    const float besides = text_size(readout.beside, Font::mono).x;
    if (size.x + unit_room + px(12) + besides <= width) {
      draw_text({line.x + width, line.y + (size.y - text_size("x", Font::mono).y) * 0.72f},
                readout.beside, Font::mono, Role::muted, Align::right);
    }
  }
  ImGui::SetCursorScreenPos(line);
  ImGui::Dummy({width, size.y});
}

}  // namespace

namespace {

/// The colour that the number has in the picture, as a bar at its left; a frame while its thing is pointed at.
void draw_sign(const Readout& readout, ImVec2 min, ImVec2 max) {
  if (readout.lit) {
    list().AddRect({min.x - px(6), min.y - px(2)}, {max.x + px(4), max.y + px(2)},
                   color(Role::text), px(4), 0, px(1));
  }
  if (readout.sign != Role::muted) {
    list().AddRectFilled({min.x - px(8), min.y + px(1)}, {min.x - px(5), max.y - px(1)},
                         color(readout.sign), px(1.5f));
  }
}

/// The pointer is on it, or the focus of what has a sign presses it.
void follow(const Readout& readout, int which, ImVec2 min, ImVec2 max, Pointed& all) {
  const bool signed_one = readout.sign != Role::muted;
  const bool pressed =
      signed_one && Context::current().focus().control(readout.id, min, max).pressed;
  const bool hovered = ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(min, max);
  if (!hovered && !pressed) return;
  const bool clicked = signed_one && hovered && ImGui::IsMouseClicked(ImGuiMouseButton_Left);
  all = {which, pressed || clicked, pressed ? ImVec2(min.x, max.y) : ImGui::GetIO().MousePos};
}

}  // namespace

Pointed readout(const Readout& readout) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::PushID(readout.id.c_str());
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  ImGui::BeginGroup();
  if (Context::current().dense()) {
    dense_readout(readout);
  } else {
    large_readout(readout);
  }
  ImGui::PopStyleVar();  // the gap after the group is the usual one
  ImGui::EndGroup();
  ImGui::PopID();
  const ImVec2 max = ImGui::GetItemRectMax();
  draw_sign(readout, at, max);
  map(readout.id, readout.label,
      readout.unit.empty() ? readout.value : fmt::format("{} {}", readout.value, readout.unit), at,
      max);
  Pointed pointed;
  follow(readout, 0, at, max, pointed);
  return pointed;
}

Pointed readout_line(const std::vector<Readout>& readouts, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float row = std::round(px(kControlHeight)), middle = at.y + row / 2;
  float x = at.x;
  Pointed pointed;
  for (std::size_t i = 0; i < readouts.size(); ++i) {
    const Readout& readout = readouts[i];
    const std::string unit = readout.unit.substr(0, readout.unit.find(", "));
    const std::string shown = unit.empty() ? readout.value : readout.value + " " + unit;
    const ImVec2 value = text_size(shown, Font::mono), label = text_size(readout.label, Font::note);
    const float beside =
        readout.beside.empty() ? 0 : text_size(readout.beside, Font::mono_note).x + px(8);
    const float room = label.x + px(6) + value.x + beside + px(18);
    if (x + room > at.x + width) break;  // a number is shown whole or not at all
    draw_text({x, middle - label.y / 2}, readout.label, Font::note, Role::muted);
    float right = x + label.x + px(6);
    draw_text({right, middle - value.y / 2}, shown, Font::mono, readout.role);
    right += value.x;
    if (beside > 0) {
      draw_text({right + px(8), middle - text_size("x", Font::mono_note).y / 2}, readout.beside,
                Font::mono_note, Role::muted);
      right += beside;
    }
    draw_mark(readout.provenance, {right + px(12), middle}, px(4.5f), color(Role::muted));
    ImGui::SetCursorScreenPos({x, at.y});
    ImGui::InvisibleButton(readout.id.c_str(), {room, row});
    Context::current().focus().control(readout.id, {x, at.y}, {x + room, at.y + row});
    tooltip(mark_sentence(readout));
    follow(readout, static_cast<int>(i), {x, at.y}, {x + room, at.y + row}, pointed);
    draw_sign(readout, {x, at.y + px(4)}, {x + room, at.y + row - px(4)});
    map(readout.id, readout.label, shown, {x, at.y}, {x + room, at.y + row});
    x += room + px(20);
  }
  return pointed;
}

void badge(std::string_view id, std::string_view text, Role role) {
  const float room = ImGui::GetContentRegionAvail().x;
  const float height = std::round(px(24)), pad = px(12);
  const std::string shown = fitted(text, Font::note, room - 2 * pad - px(12));
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const ImVec2 size(std::ceil(text_size(shown, Font::note).x) + 2 * pad + px(12), height);
  const ImVec2 max(min.x + size.x, min.y + size.y);
  list().AddRectFilled(min, max, color(Role::raised), height / 2);
  list().AddRect(min, max, color(Role::border), height / 2);
  list().AddCircleFilled({min.x + pad + px(1), min.y + height / 2}, px(3.5f), color(role));
  draw_text({min.x + pad + px(12), min.y + (height - text_size(shown, Font::note).y) / 2}, shown,
            Font::note, Role::text);
  ImGui::Dummy(size);
  if (shown != text) tooltip(text);
  map(id, text, "", min, max);
}

void empty_state(std::string_view title, std::string_view sentence) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const std::vector<std::string> lines = wrapped_lines(sentence, std::min(room.x, px(520)));
  const float title_height = text_size("x", Font::section).y;
  const float line_height = text_size("x").y * 1.15f;
  const float height =
      title_height + px(kGapSmall) + line_height * static_cast<float>(lines.size());
  const float middle = at.x + room.x / 2;
  float y = at.y + std::max(0.0f, (room.y - height) / 2);
  draw_text({middle, y}, fitted(title, Font::section, room.x), Font::section, Role::text,
            Align::center);
  y += title_height + px(kGapSmall);
  for (const std::string& line : lines) {
    draw_text({middle, y}, line, Font::body, Role::muted, Align::center);
    y += line_height;
  }
  ImGui::Dummy({room.x, std::max(1.0f, std::min(room.y, y - at.y))});
}

}  // namespace tilestep::ui
