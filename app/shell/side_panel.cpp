#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "app/shell/panes.hpp"

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

/// So many knobs stand in sight while the others are folded.
constexpr std::size_t kInSight = 6;

/// All, or where that is more than a glance takes in those that matter here: turned or looked for, off their defaults, of
/// the stop or the lesson's first, with an effect. By what they are about, in the lesson's order.
std::vector<const lab::Knob*> knobs_in_sight(ShellState& state) {
  const LessonState& lesson = state.session.lesson();
  std::vector<const lab::Knob*> knobs;
  std::map<std::string, int> groups;
  for (const lab::Knob& knob : lesson.knobs) {
    knobs.push_back(&knob);
    groups.emplace(knob.group, static_cast<int>(groups.size()));
  }
  if (!lesson.all_knobs && knobs.size() > kInSight) {
    const auto wanted = wanted_knobs(lesson, state.reading());
    const auto has = [](const auto& list, const auto& item) {
      return std::find(list.begin(), list.end(), item) != list.end();
    };
    const auto rank = [&](const lab::Knob* knob) {
      if (has(lesson.asked_knobs, knob->id)) return 0;
      if (lesson.settings.at(knob->id) != knob->initial) return 1;
      if (has(wanted, knob)) return 2;
      return knob->idle(lesson.settings).empty() ? 3 : 4;
    };
    std::stable_sort(knobs.begin(), knobs.end(), [&](auto a, auto b) { return rank(a) < rank(b); });
    knobs.resize(kInSight);
  }
  std::sort(knobs.begin(), knobs.end(), [&](auto a, auto b) {
    return std::pair(groups[a->group], a) < std::pair(groups[b->group], b);
  });
  return knobs;
}

/// The button that shows the folded knobs, or folds them again.
void knob_fold(LessonState& lesson, std::size_t shown) {
  const std::size_t all = lesson.knobs.all().size();
  if (all <= kInSight) return;
  const std::string label =
      lesson.all_knobs ? "Fewer knobs"
                       : fmt::format("{} more knob{}", all - shown, all - shown == 1 ? "" : "s");
  if (ui::button("more_knobs", label)) lesson.all_knobs = !lesson.all_knobs;
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
  const auto shown = knobs_in_sight(state);
  const bool grouped = shown.front()->group != shown.back()->group;
  const std::string* group = nullptr;
  for (const lab::Knob* knob : shown) {
    if (grouped && (group == nullptr || *group != knob->group)) {
      ui::text(lab::label_of(knob->group), Font::note, Role::muted);
    }
    group = &knob->group;
    draw_knob(state, *knob);
  }
  knob_fold(lesson, shown.size());
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
