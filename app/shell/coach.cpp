#include "app/shell/coach.hpp"

#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "app/shell/panes.hpp"

namespace tilestep::app {
namespace {

using ui::Font;
using ui::px;
using ui::Role;

using Found = Coach::Found;

bool points_at(ShellState& state, const std::string& id) {
  const auto& map = state.ui.map();
  return std::any_of(map.begin(), map.end(), [&](const ui::MapEntry& part) {
    return part.id == id && ImGui::IsMouseHoveringRect(part.min, part.max, false);
  });
}

/// A number on show, at best the first.
std::string first_number(ShellState& state) {
  const LessonState& lesson = state.session.lesson();
  if (!lesson.report) return {};
  const auto readouts = lesson.player->readouts(lesson.cursor);
  return readouts.empty() ? std::string() : readouts.front().id;
}

struct CoachStop {
  const char*
      part;  ///< its id in the map, or how the id of the first such begins; empty: the first number's
  const char* title;
  const char* text;
  bool (*done)(ShellState& state, const Found& found);
};
constexpr CoachStop kStops[] = {
    {"next", "Press →",
     "It plays the next step; ← goes back, Space keeps playing. If the lesson has a question, → "
     "asks it first.",
     [](ShellState& state, const Found& found) {
       const LessonState& lesson = state.session.lesson();
       return lesson.cursor != found.cursor || lesson.gate.card().has_value();
     }},
    {"", "Point at this number",
     "Its mark says where it comes from: measured, counted, traced by the kernel, derived, or "
     "recorded earlier on a named GPU. Anything you point at lights up everywhere.",
     [](ShellState& state, const Found& found) {
       const ImVec2 now = ImGui::GetIO().MousePos;
       const bool moved = now.x != found.pointer.x || now.y != found.pointer.y;
       return moved && points_at(state, first_number(state));
     }},
    {"knob_", "Turn a knob", "The kernel runs again with it. R resets all knobs.",
     [](ShellState& state, const Found& found) {
       return state.session.lesson().settings != found.settings;
     }},
    {"tab_kernel", "Press K",
     "The kernel's own source, at this step's line. D shows each step's numbers, M the "
     "measurements.",
     [](ShellState& state, const Found& found) {
       return state.tab != found.tab || state.overlay != found.overlay;
     }},
    {"reader", "Press L",
     "It opens and closes the lesson text: a path of stops, each of which sets the scene.",
     [](ShellState& state, const Found& found) { return state.reader != found.reader; }},
    {"find", "Press Ctrl+K",
     "It finds everything else. T changes the theme, P is for a projector, ? lists the keys.",
     [](ShellState& state, const Found&) { return state.palette.is_open(); }},
};

Found look_at(ShellState& state) {
  const LessonState& lesson = state.session.lesson();
  return {lesson.cursor, lesson.settings, state.tab,
          state.overlay, state.reader,    ImGui::GetIO().MousePos};
}

/// The part that a card is about; empty where it is not on screen.
ui::MapEntry part_of(ShellState& state, std::string id) {
  if (id.empty()) id = first_number(state);
  const auto& map = state.ui.map();
  const auto found = std::find_if(map.begin(), map.end(), [&](const ui::MapEntry& part) {
    return part.id == id || (id.ends_with('_') && part.id.starts_with(id));
  });
  return found == map.end() ? ui::MapEntry() : *found;
}

}  // namespace

void Coach::draw(ShellState& state) {
  if (stop_ >= 0 && stop_ < std::ssize(kStops) && !looks_ &&
      kStops[static_cast<std::size_t>(stop_)].done(state, found_)) {
    skip();
  }
  if (stop_ >= std::ssize(kStops)) end();
  if (stop_ < 0 || state.home || !state.layer().empty()) return;
  if (std::exchange(looks_, false)) found_ = look_at(state);
  const CoachStop& stop = kStops[static_cast<std::size_t>(stop_)];
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  const ui::MapEntry part = part_of(state, stop.part);
  ImVec2 low = part.min, high = part.max;
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(window);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, 0);
  ImGui::Begin("coach", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoInputs |
                   ImGuiWindowFlags_NoFocusOnAppearing | ImGuiWindowFlags_NoSavedSettings);
  ImGui::BringWindowToDisplayFront(ImGui::GetCurrentWindow());
  ImGui::PopStyleColor();
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const bool shown = high.x > low.x;
  const ImU32 shade = ui::faded(ui::palette(ui::theme(), Role::background), 0.45f);
  const float out = px(6);
  low = {std::max(low.x - out, 0.0f), std::max(low.y - out, 0.0f)};
  high = {std::min(high.x + out, window.x), std::min(high.y + out, window.y)};
  list.AddRectFilled({0, 0}, {window.x, low.y}, shade);
  list.AddRectFilled({0, high.y}, window, shade);
  list.AddRectFilled({0, low.y}, {low.x, high.y}, shade);
  list.AddRectFilled({high.x, low.y}, {window.x, high.y}, shade);
  if (shown) list.AddRect(low, high, ui::color(Role::text), px(6), 0, px(2));

  const float width = std::round(std::min(px(400), window.x - px(32))), pad = px(16);
  const float text_height = ui::wrapped_size(stop.text, width - 2 * pad).y;
  const float row = std::round(px(ui::kControlHeight));
  const float height = std::ceil(2 * pad + ui::text_size("x", Font::body_bold).y + px(6) +
                                 text_height + px(14) + row);
  // Below the thing, else above it, else in its middle.
  float y = high.y + px(12);
  if (y + height > window.y - px(8)) y = low.y - px(12) - height;
  if (y < px(8)) y = std::max(px(8), (window.y - height) / 2);
  y = std::round(y);
  const float x = std::round(std::clamp((low.x + high.x - width) / 2, px(16),
                                        std::max(px(16), window.x - width - px(16))));
  ImGui::End();
  const CardScope card("coach_card", {x, y}, {width, height});
  ImGui::BringWindowToDisplayFront(ImGui::GetCurrentWindow());
  ui::map("coach", stop.title, stop.text, {x, y}, {x + width, y + height});
  ui::paragraph(stop.title, Font::body_bold);
  ui::space(2);
  ui::paragraph(stop.text);
  const float top = y + height - pad - row;
  ui::draw_text({x + pad, top + (row - ui::text_size("x", Font::note).y) / 2},
                fmt::format("{} of {}", stop_ + 1, std::size(kStops)), Font::note, Role::muted);
  const float skip_width = ui::text_size("Skip").x + px(24);
  const float end_width = ui::text_size("End the tour").x + px(24);
  ImGui::SetCursorScreenPos({x + width - pad - end_width - px(8) - skip_width, top});
  if (ui::button("coach_skip", "Skip")) skip();
  ImGui::SetCursorScreenPos({x + width - pad - end_width, top});
  if (ui::button("coach_end", "End the tour")) end();
}

}  // namespace tilestep::app
