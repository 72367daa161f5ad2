#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/shell/shell_state.hpp"

namespace tilestep::app {
namespace {

using ui::Font;
using ui::px;
using ui::Role;

using ui::list;

void divider() {
  ui::space(12);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  list().AddLine(at, {at.x + width, at.y}, ui::color(Role::border));
  ui::space(12);
}

void heading(std::string_view title, std::string_view note) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ui::draw_text(at, title, Font::body_bold);
  const float lower = ui::text_size("x", Font::body_bold).y - ui::text_size("x", Font::note).y;
  ui::draw_text({at.x + width, at.y + lower * 0.7f}, note, Font::note, Role::muted,
                ui::Align::right);
  ImGui::Dummy({width, ui::text_size("x", Font::body_bold).y});
}

void draw_knob(ShellState& state, const lab::Knob& knob) {
  LessonState& lesson = state.session.lesson();
  const std::string idle = knob.idle(lesson.settings);
  if (!idle.empty()) state.ui.set_opacity(0.7f);
  if (const auto value = ui::knob(knob, lesson.settings.at(knob.id))) {
    state.session.set_knob(knob.id, *value, state.now_s());
  }
  if (!idle.empty()) {
    ui::paragraph(fmt::format("No effect here: {}.", idle), Font::note);
    ui::map("idle_" + knob.id, idle, "", ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
    state.ui.set_opacity(1);
  }
  ui::space(8);
}

void knobs(ShellState& state) {
  LessonState& lesson = state.session.lesson();
  divider();
  const float width = ImGui::GetContentRegionAvail().x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool changed = lesson.settings != lesson.knobs.defaults();
  heading("Knobs", "");
  const ImVec2 after = ImGui::GetCursorScreenPos();
  const float reset_width = ui::text_size("Reset").x + px(46);
  ImGui::SetCursorScreenPos({at.x + width - reset_width, at.y - px(6)});
  if (ui::button("reset", "Reset", {.icon = ui::Icon::reset, .enabled = changed, .width = -1})) {
    state.session.reset(state.now_s());
  }
  const bool compares = lesson.player->compares();
  const std::string label = compares ? "Stop comparing" : "Compare";
  const float left = ui::text_size("Knobs", Font::body_bold).x + px(8);
  const float worded = ui::text_size(label).x + px(46), square = std::round(px(ui::kControlHeight));
  const bool fits = left + worded + px(8) + reset_width <= width;
  ImGui::SetCursorScreenPos(
      {at.x + width - reset_width - (fits ? worded : square) - px(8), at.y - px(6)});
  if (ui::button("compare", label,
                 {.icon = ui::Icon::compare,
                  .selected = compares,
                  .enabled = lesson.report.has_value(),
                  .width = fits ? -1.0f : 0.0f})) {
    state.toggle_compare();
  }
  if (!compares) ui::tooltip("Keep this run as A; the next run is drawn beside it");
  ImGui::SetCursorScreenPos({after.x, after.y + px(6)});
  if (lesson.player->lacks_room()) {
    ui::paragraph("Comparing needs a larger window or smaller text.", Font::note, Role::muted);
  }
  for (const lab::Knob& knob : lesson.knobs) draw_knob(state, knob);
}

}  // namespace

void draw_side_panel(ShellState& state, const Layout& layout) {
  const PanelScope panel("side", layout.side);
  LessonState& lesson = state.session.lesson();
  if (lesson.report) {
    state.ui.set_opacity(ui::animate("outdated", lesson.outdated() ? 0.5f : 1.0f));
    const auto shown = lesson.player->readouts(lesson.cursor);
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const ui::Pointed pointed = ui::readout(shown[i]);
      if (pointed.which < 0) continue;
      const picture::Subject subject =
          picture::subject_of(scenes::readouts_of(lesson.scene(), lesson.view()).at(i).about);
      state.point_at({subject});
      if (pointed.pressed) state.define(subject, pointed.at);
    }
    state.ui.set_opacity(1);
  } else {
    ui::text("Numbers appear after the first run.", Font::note, Role::muted);
  }
  knobs(state);
}

}  // namespace tilestep::app
