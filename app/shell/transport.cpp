#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/shell/panes.hpp"
#include "app/shell/steps.hpp"

namespace tilestep::app {
namespace {

using ui::Font;
using ui::Icon;
using ui::px;
using ui::Role;

constexpr double kSpeeds[] = {0.5, 1, 2, 4};
constexpr const char* kSpeedNames[] = {"0.5×", "1×", "2×", "4×"};

void step_buttons(ShellState& state, const scenes::StepAxis& axis) {
  Session& session = state.session;
  const scenes::Cursor cursor = session.lesson().cursor;
  const bool ready = session.lesson().report.has_value();
  const bool back = ready && !at_start(axis, cursor), on = ready && !at_end(axis, cursor);
  const float gap = px(4);
  const std::string &noun = axis.noun, &unit = axis.unit.empty() ? noun : axis.unit;
  if (ui::button("first", fmt::format("First {}", noun), {.icon = Icon::first, .enabled = back})) {
    session.first();
  }
  ImGui::SameLine(0, gap);
  if (ui::button("previous", fmt::format("Previous {}", unit),
                 {.icon = Icon::back, .enabled = back})) {
    session.step_back();
  }
  ImGui::SameLine(0, gap);
  const bool playing = session.playing();
  if (ui::button("play", playing ? "Pause" : "Play",
                 {.icon = playing ? Icon::pause : Icon::play, .primary = true, .enabled = ready})) {
    session.toggle_play();
  }
  ImGui::SameLine(0, gap);
  if (ui::button("next", fmt::format("Next {}", unit), {.icon = Icon::forward, .enabled = on})) {
    state.go_on();
  }
  ImGui::SameLine(0, gap);
  if (ui::button("last", fmt::format("Last {}", noun), {.icon = Icon::last, .enabled = on})) {
    session.last();
  }
  if (axis.phases > 1 || unit != noun) {
    ImGui::SameLine(0, px(12));
    const char* label = axis.phases > 1 ? "Next line" : "Next step";
    if (ui::button("next_line", label, {.icon = Icon::line, .enabled = on})) {
      session.line_on();
    }
  }
  if (session.lesson().events.empty()) return;
  ImGui::SameLine(0, gap);
  if (ui::button("next_event", "Next event  (N)", {.icon = Icon::event, .enabled = on})) {
    session.next_event();
  }
}

/// Steps are counted from 1, whatever the kernel calls them and however it counts.
std::string place_text(const scenes::StepAxis& axis, int tile) {
  return tile == 0 ? fmt::format("{} {} to come", axis.tiles, axis.tiles == 1 ? "step" : "steps")
                   : fmt::format("Step {} of {}", tile, axis.tiles);
}

/// The width of the label at any step, so that what stands beside it keeps its place.
float place_width(const scenes::StepAxis& axis) {
  float width = 0;
  for (const int tile : {0, axis.tiles}) {
    width = std::max(width, ui::text_size(place_text(axis, tile)).x);
  }
  return width + px(4);
}

/// "Step 2 of 4", and the phase inside it.
void place_label(const ShellState& state, const scenes::StepAxis& axis, float width) {
  const scenes::Cursor cursor = state.session.lesson().cursor;
  const std::string place = place_text(axis, cursor.tile);
  std::string name = axis.phase_name(cursor);
  if (name.empty() && axis.phases_in(cursor.tile) > 1 && cursor.tile > 0) {
    name = fmt::format("{} of {}", cursor.phase + 1, axis.phases_in(cursor.tile));
  }
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float row = std::round(px(ui::kControlHeight));
  if (name.empty()) {
    const float y = at.y + (row - ui::text_size(place).y) / 2;
    ui::draw_text({at.x, y}, ui::fitted(place, Font::body, width));
  } else {
    const float top = at.y + (row - ui::text_size("x", Font::note).y * 2) / 2;
    ui::draw_text({at.x, top}, ui::fitted(place, Font::note, width), Font::note);
    ui::draw_text({at.x, top + ui::text_size("x", Font::note).y},
                  ui::fitted(name, Font::note, width), Font::note, Role::muted);
  }
  ImGui::Dummy({width, row});
  ui::map("place", place, name, at, {at.x + width, at.y + row});
}

void speed_choice(ShellState& state, bool narrow) {
  Session& session = state.session;
  std::size_t now = 1;
  for (std::size_t i = 0; i < std::size(kSpeeds); ++i) {
    if (kSpeeds[i] == session.speed()) now = i;
  }
  if (narrow) {  // one button that goes round
    if (ui::button("speed", kSpeedNames[now], {.width = 52})) {
      session.set_speed(kSpeeds[(now + 1) % std::size(kSpeeds)]);
    }
    return;
  }
  const std::vector<std::string> names(std::begin(kSpeedNames), std::end(kSpeedNames));
  if (const auto chosen = ui::segmented("speed", names, static_cast<int>(now), 176)) {
    session.set_speed(kSpeeds[static_cast<std::size_t>(*chosen)]);
  }
}

/// What the cursor has seen happen.
std::vector<ui::ScrubberMark> marks_of(const LessonState& lesson, const scenes::StepAxis& axis) {
  std::vector<ui::ScrubberMark> marks;
  for (const scenes::Event& event : lesson.events) {
    if (lesson.cursor < event.at) break;
    marks.push_back({axis.steps_at(axis.place_of(event.at)), event.text});
  }
  return marks;
}

void scrub(ShellState& state, const scenes::StepAxis& axis, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({at.x, at.y + px(4)});
  const LessonState& lesson = state.session.lesson();
  const auto moved = ui::scrubber("scrubber", axis.steps_at(lesson.playhead.position()), axis.tiles,
                                  width, marks_of(lesson, axis));
  if (!moved) return;
  if (moved->released) {
    state.session.end_scrub();
  } else {
    state.session.scrub(axis.place_at(moved->to));
  }
}

}  // namespace

void draw_transport(ShellState& state, const Layout& layout) {
  const float row = std::round(px(ui::kControlHeight));
  const float above = layout.two_rows ? px(12) : std::floor((layout.transport.height() - row) / 2);
  const PanelScope panel("transport", layout.transport,
                         ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse,
                         std::min(12.0f, above / px(1)));
  const scenes::StepAxis axis = state.session.axis();
  const float width = ImGui::GetContentRegionAvail().x;
  const bool narrow = width < px(760);
  const float speed = px(narrow ? 52 : 176);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  step_buttons(state, axis);
  const float after = ImGui::GetItemRectMax().x - at.x + px(16);
  if (layout.two_rows) {
    ImGui::SameLine(0, px(16));
    place_label(state, axis, std::max(px(24), width - after - speed - px(8)));
    ImGui::SetCursorScreenPos({at.x + width - speed, at.y});
    speed_choice(state, true);
    ImGui::SetCursorScreenPos({at.x, at.y + px(40)});
    scrub(state, axis, width);
    return;
  }
  // Where a question has the bar's room the numbers stand here: nothing plays while it waits.
  const bool numbers = layout.staged && layout.bar.height() <= 0;
  const float place = std::max(place_width(axis), px(112)), least = px(112 + 2 * 16);
  const float end = numbers ? std::max(speed, width - after - place - least) : speed;
  const float room = width - after - end - 2 * px(16);
  const float label = std::clamp(place, px(112), std::max(px(112), room - px(112)));
  const float scrubber = room - label;
  ImGui::SetCursorScreenPos({at.x + after, at.y});
  scrub(state, axis, scrubber);
  ImGui::SetCursorScreenPos({at.x + after + scrubber + px(16), at.y});
  place_label(state, axis, label);
  ImGui::SetCursorScreenPos({at.x + width - end, at.y});
  numbers ? draw_stage_numbers(state, end) : speed_choice(state, narrow);
}

}  // namespace tilestep::app
