#include <imgui.h>

#include <algorithm>

#include "app/shell/panes.hpp"

namespace tilestep::app {

using ui::Font;
using ui::px;
using ui::Role;

void ShellState::point_at(const std::vector<picture::Subject>& subjects) {
  points_at.insert(points_at.end(), subjects.begin(), subjects.end());
}

void ShellState::define(const picture::Subject& subject, ImVec2 at) {
  const picture::Symbol* symbol = session.lesson().player->symbol_of(subject);
  if (symbol == nullptr || symbol->meaning.empty()) return;
  definition = {subject, at};
  ui.request_redraw();
}

void follow_pointer(ShellState& state) {
  scenes::ScenePlayer& player = *state.session.lesson().player;
  if (const auto clicked = player.take_symbol()) {
    state.define(*clicked, ImGui::GetIO().MousePos);
  }
  // What is pinned stays lit while the pointer is on nothing else.
  if (state.points_at.empty() && state.definition) {
    state.points_at.push_back(state.definition->subject);
  }
  // The picture has been drawn by now: it lights up in the next frame.
  if (player.pointed_beside() != state.points_at) ui::request_redraw();
  player.point_at(std::exchange(state.points_at, {}));
}

namespace {

/// The numbers on show that are about a thing: "running maximum m  3.0".
void values_of(const ShellState& state, const picture::Subject& subject) {
  const LessonState& lesson = state.session.lesson();
  if (!lesson.report) return;
  for (const scenes::Readout& readout : lesson.scene().readouts(lesson.view())) {
    if (picture::subject_of(readout.about) != subject) continue;
    ui::text(readout.label, Font::note, Role::muted);
    ImGui::SameLine(0, px(8));
    ui::text(readout.unit.empty() ? readout.value : readout.value + " " + readout.unit, Font::mono);
  }
}

}  // namespace

void draw_definition(ShellState& state, ImVec2 size) {
  if (!state.definition) return;
  const picture::Subject& subject = state.definition->subject;
  const picture::Symbol* symbol = state.session.lesson().player->symbol_of(subject);
  if (symbol == nullptr) {  // of another lesson
    state.definition.reset();
    return;
  }
  const float width = std::min(px(320), size.x - px(16));
  const ImVec2 at(std::clamp(state.definition->at.x + px(12), px(8), size.x - width - px(8)),
                  std::clamp(state.definition->at.y + px(16), px(8), size.y - px(160)));
  const CardScope card("definition", at, {width, 0});
  const ImVec2 start = ImGui::GetCursorScreenPos();
  ui::text(symbol->word, Font::section,
           symbol->tone > 0 ? picture::tone_role(symbol->tone) : Role::text);
  const ImVec2 below = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({at.x + width - px(16) - std::round(px(ui::kControlHeight)), start.y});
  const bool closed = ui::button("close_definition", "Close  (Esc)", {.icon = ui::Icon::cross});
  ImGui::SetCursorScreenPos({below.x, std::max(below.y, ImGui::GetItemRectMax().y)});
  ui::paragraph(symbol->meaning, Font::body, Role::text);
  values_of(state, subject);
  ui::map("definition", symbol->word, symbol->meaning, at,
          {at.x + ImGui::GetWindowSize().x, at.y + ImGui::GetWindowSize().y});
  const bool inside = ImGui::IsWindowHovered(ImGuiHoveredFlags_AllowWhenBlockedByActiveItem);
  // The click that opened it is not one elsewhere.
  const ImVec2 clicked = ImGui::GetIO().MouseClickedPos[0];
  const bool opened = clicked.x == state.definition->at.x && clicked.y == state.definition->at.y;
  const bool elsewhere = ImGui::IsMouseClicked(ImGuiMouseButton_Left) && !inside && !opened;
  if (closed || elsewhere) state.definition.reset();
}

}  // namespace tilestep::app
