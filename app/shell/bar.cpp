#include <algorithm>
#include <cmath>

#include "app/shell/panes.hpp"

namespace tilestep::app {

using ui::px;

std::vector<const lab::Knob*> wanted_knobs(const LessonState& lesson, const Reading& reading) {
  std::vector<const lab::Knob*> knobs;
  const auto add = [&](const lab::Knob& knob) {
    if (knob.kind == lab::KnobKind::text) return;  // a bar has no room for one
    if (std::find(knobs.begin(), knobs.end(), &knob) == knobs.end()) knobs.push_back(&knob);
  };
  if (reading.guide && reading.stop >= 0) {
    const auto settings = [&](int stop) {
      return stop < 0 ? lab::Settings{} : reading.guide->stops[std::size_t(stop)].settings;
    };
    const lab::Settings before = lesson.knobs.completed(settings(reading.stop - 1));
    for (const auto& [id, value] : settings(reading.stop)) {
      if (before.at(id) != value) add(lesson.knobs.at(id));
    }
  }
  for (const std::string& id : lesson.scene().stage_knobs()) add(lesson.knobs.at(id));
  return knobs;
}

void draw_stage_numbers(ShellState& state, float width) {
  LessonState& lesson = state.session.lesson();
  if (!lesson.report) return;
  state.ui.set_opacity(ui::animate("outdated", lesson.outdated() ? 0.5f : 1.0f));
  const ui::Pointed pointed = ui::readout_line(lesson.player->readouts(lesson.cursor), width);
  if (pointed.which >= 0) {
    const auto about = scenes::readouts_of(lesson.scene(), lesson.view());
    const picture::Subject subject =
        picture::subject_of(about[static_cast<std::size_t>(pointed.which)].about);
    state.point_at({subject});
    if (pointed.pressed) state.define(subject, pointed.at);
  }
  state.ui.set_opacity(1);
}

void draw_bar(ShellState& state, const Layout& layout) {
  const PanelScope panel("bar", layout.bar,
                         ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse, 0);
  LessonState& lesson = state.session.lesson();
  const float pad = px(12), width = layout.bar.width() - 2 * pad;
  const float row = std::round(px(ui::kControlHeight));
  const ImVec2 at(layout.bar.min.x + pad,
                  ImGui::GetWindowPos().y + std::round((layout.bar.height() - row) / 2));
  auto knobs = wanted_knobs(lesson, state.reading());
  const auto most = static_cast<std::size_t>(std::max(0.0f, std::floor(width * 0.62f / px(190))));
  if (knobs.size() > most) knobs.resize(most);
  const float gap = px(20);
  const float each =
      knobs.empty() ? 0
                    : std::min(px(240), (width * 0.62f - gap * static_cast<float>(knobs.size())) /
                                            static_cast<float>(knobs.size()));
  const float taken = (each + gap) * static_cast<float>(knobs.size());
  ImGui::SetCursorScreenPos(at);
  draw_stage_numbers(state, width - taken);
  float x = at.x + width - taken + gap;
  for (const lab::Knob* knob : knobs) {
    ImGui::SetCursorScreenPos({x, at.y});
    if (const auto value = ui::knob_line(*knob, lesson.settings.at(knob->id), each)) {
      state.session.set_knob(knob->id, *value, state.now_s());
    }
    x += each + gap;
  }
}

}  // namespace tilestep::app
