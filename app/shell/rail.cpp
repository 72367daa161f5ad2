#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/shell/panes.hpp"
#include "scenes/shared/course.hpp"

namespace tilestep::app {
namespace {

using ui::Font;
using ui::px;
using ui::Role;

using ui::list;

/// The mark of the program: tiles that step up.
void draw_mark(ImVec2 at, float size) {
  const float tile = size * 0.28f, gap = size * 0.08f;
  for (int column = 0; column < 3; ++column) {
    for (int row = 0; row <= column; ++row) {
      const float x = at.x + static_cast<float>(column) * (tile + gap);
      const float y = at.y + size - tile - static_cast<float>(row) * (tile + gap);
      const bool top = row == column;
      list().AddRectFilled({x, y}, {x + tile, y + tile},
                           ui::color(top ? Role::accent : Role::faint), size * 0.06f);
    }
  }
}

/// One lesson in the rail; the narrow rail shows its number only.
bool lesson_row(const LessonState& lesson, std::size_t index, bool chosen, bool narrow) {
  const float width = ImGui::GetContentRegionAvail().x;
  const float height = std::round(px(40));
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const ImVec2 max(min.x + width, min.y + height);
  ImGui::PushID(lesson.info.id.c_str());
  bool pressed = ImGui::InvisibleButton("lesson", {width, height});
  const float hover = ui::animate("hover", ImGui::IsItemHovered() ? 1.0f : 0.0f, 0.12f);
  ImGui::PopID();
  if (ImGui::IsItemHovered()) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  const std::string id = "lesson_" + lesson.info.id;
  pressed = ui::Context::current().focus().control(id, min, max).pressed || pressed;
  if (chosen) {
    list().AddRectFilled(min, max, ui::color(Role::raised), px(ui::kControlCorner));
    list().AddRectFilled({min.x, min.y + px(8)}, {min.x + px(3), max.y - px(8)},
                         ui::color(Role::accent), px(2));
  } else if (hover > 0) {
    list().AddRectFilled(min, max, ui::color(Role::raised, hover), px(ui::kControlCorner));
  }
  const std::string number = std::to_string(index + 1);
  const float middle = (min.y + max.y) / 2;
  const Role role = chosen ? Role::text : Role::muted;
  const ImVec2 digit = ui::text_size(number, Font::mono_note);
  if (narrow) {
    ui::draw_text({(min.x + max.x) / 2, middle - digit.y / 2}, number, Font::mono_note, role,
                  ui::Align::center);
  } else {
    ui::draw_text({min.x + px(14), middle - digit.y / 2}, number, Font::mono_note, Role::muted);
    const float left = px(34);
    const float room = width - left - px(8);
    // A long title in smaller type reads better than one that is cut off.
    const bool fits = ui::text_size(lesson.info.title, Font::body_bold).x <= room;
    const Font font = !fits ? Font::note : chosen ? Font::body_bold : Font::body;
    const std::string title = ui::fitted(lesson.info.title, font, room);
    ui::draw_text({min.x + left, middle - ui::text_size(title, font).y / 2}, title, font, role);
  }
  ui::tooltip(fmt::format("{} · {}", lesson.info.chapter, lesson.info.title));
  ui::map(id, lesson.info.title, chosen ? "selected" : "", min, max);
  return pressed;
}

/// Beside a lesson: a tick where all of its path was read, a ring where some was.
void draw_done(ShellState& state, const std::string& lesson, ImVec2 min, bool narrow) {
  const auto done = state.progress.lessons.find(lesson);
  if (done == state.progress.lessons.end() || done->second.stops.empty()) return;
  const auto& course = scenes::course();
  const auto row = std::find_if(course.begin(), course.end(), [&](const scenes::CourseRow& each) {
    return each.lesson == lesson;
  });
  if (row == course.end()) return;
  const auto read =
      std::count_if(row->stops.begin(), row->stops.end(),
                    [&](const std::string& stop) { return done->second.stops.count(stop) > 0; });
  const ImVec2 center(min.x + px(8), min.y + px(narrow ? 10 : 20));
  const bool all = read == std::ssize(row->stops);
  if (all) {
    ui::check(center, px(4), Role::good);
  } else if (read > 0) {
    list().AddCircle(center, px(2.5f), ui::color(Role::muted), 0, px(1.25f));
  }
  ui::map("done_" + lesson, fmt::format("{} of {} stops read", read, row->stops.size()),
          all        ? "all"
          : read > 0 ? "some"
                     : "",
          {center.x - px(5), center.y - px(5)}, {center.x + px(5), center.y + px(5)});
}

/// A row above the lessons. Returns whether it was pressed.
bool way_row(const char* id, const std::string& name, const char* letter, const char* tip,
             bool selected, bool narrow) {
  const float width = ImGui::GetContentRegionAvail().x, height = std::round(px(32));
  const ImVec2 min = ImGui::GetCursorScreenPos(), max(min.x + width, min.y + height);
  bool pressed = ImGui::InvisibleButton(id, {width, height});
  const bool hovered = ImGui::IsItemHovered();
  if (hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  pressed = ui::Context::current().focus().control(id, min, max).pressed || pressed;
  if (selected || hovered) {
    list().AddRectFilled(min, max, ui::color(Role::raised), px(ui::kControlCorner));
  }
  const std::string label = narrow ? letter : name;
  const float y = (min.y + max.y - ui::text_size(label).y) / 2;
  ui::draw_text({narrow ? (min.x + max.x) / 2 : min.x + px(14), y}, label, Font::body,
                selected ? Role::text : Role::muted, narrow ? ui::Align::center : ui::Align::left);
  ui::tooltip(tip);
  ui::map(id, name, selected ? "selected" : "", min, max);
  return pressed;
}

/// The ways to the course, and to a file of one's own.
void ways(ShellState& state, bool narrow) {
  if (way_row("home_row", "Home", "H", "The course and your progress  (H)", state.home, narrow))
    state.show_home(!state.home);
  if (way_row("inspect_row", "Any CUDA file", "F",
              "Run a .cu file and see what its kernels do to memory  (Ctrl+O)",
              state.inspect_page.on_show, narrow)) {
    if (state.inspection.file().empty()) {
      state.choose_inspected();
    } else {
      state.show_inspection();
    }
  }
  if (way_row("profile_row", "Profiler trace", "T",
              "Open a trace of PyTorch's profiler or Nsight Systems, with six questions",
              state.profile_page.on_show, narrow)) {
    if (state.profiling.file().empty()) {
      state.choose_profile();
    } else {
      state.show_profile();
    }
  }
  ui::space(8);
}

/// Scrolls the chosen lesson into sight when it is another one, or when room or type have changed: not when the user
/// has scrolled away from it.
void keep_in_sight(std::size_t chosen, ImVec2 min, ImVec2 max) {
  constexpr int kFrames = 3;  // until ImGui knows how far there is to scroll
  ImGuiStorage& kept = *ImGui::GetStateStorage();
  int& frames = *kept.GetIntRef(ImGui::GetID("frames"), kFrames);
  const auto same = [&kept](const char* name, float now) {
    return std::exchange(*kept.GetFloatRef(ImGui::GetID(name), -1), now) == now;
  };
  const bool same_lesson = same("lesson", static_cast<float>(chosen));
  const bool same_room = same("room", ImGui::GetWindowHeight());
  if (!same_lesson || !same_room || !same("row", max.y - min.y)) frames = kFrames;
  if (frames == 0) return;
  --frames;
  const float top = ImGui::GetWindowPos().y, bottom = top + ImGui::GetWindowHeight();
  if (min.y < top) ImGui::SetScrollY(ImGui::GetScrollY() + min.y - top);
  if (max.y > bottom) ImGui::SetScrollY(ImGui::GetScrollY() + max.y - bottom);
}

void lessons(ShellState& state, bool narrow) {
  for (std::size_t i = 0; i < state.session.lessons().size(); ++i) {
    const LessonState& lesson = state.session.lessons()[i];
    const bool chosen = i == state.session.chosen();
    const ImVec2 min = ImGui::GetCursorScreenPos();
    if (lesson_row(lesson, i, chosen && state.shows_lesson(), narrow)) {
      state.session.choose(i);
      state.show_home(false);
    }
    draw_done(state, lesson.info.id, min, narrow);
    if (chosen) keep_in_sight(i, min, {min.x, min.y + std::round(px(40))});
  }
}

void tools(ShellState& state, bool narrow) {
  const auto next = [narrow] {
    if (!narrow) ImGui::SameLine(0, px(4));
  };
  const bool dark = ui::theme() == ui::ThemeKind::dark;
  if (ui::button("theme", dark ? "Light theme" : "Dark theme",
                 {.icon = dark ? ui::Icon::sun : ui::Icon::moon})) {
    state.toggle_theme();
  }
  next();
  if (ui::button("presenter", "Presenter mode", {.icon = ui::Icon::screen})) {
    state.set_presenter(true);
  }
  next();
  const float scale = state.ui.look().text_scale;
  if (ui::button("text_smaller", "A−", {.enabled = scale > 1.0f, .width = 32})) {
    state.set_text_scale(scale - 0.25f);
  }
  ui::tooltip("Smaller text");
  next();
  if (ui::button("text_larger", "A+", {.enabled = scale < 2.0f, .width = 32})) {
    state.set_text_scale(scale + 0.25f);
  }
  ui::tooltip("Larger text");
  next();
  if (ui::button("help", "Keys", {.icon = ui::Icon::help})) state.key_list = !state.key_list;
}

}  // namespace

void draw_rail(ShellState& state, const Layout& layout) {
  if (layout.rail_kind == RailKind::none) return;
  const bool narrow = layout.rail_kind == RailKind::narrow;
  const Rect& place = layout.rail;
  list().AddRectFilled(place.min, place.max, ui::color(Role::panel));
  list().AddLine({place.max.x - 1, place.min.y}, {place.max.x - 1, place.max.y},
                 ui::color(Role::border));
  const float pad = px(12);
  const float head = px(narrow ? 60 : 72);
  const float mark = px(24);
  draw_mark({place.min.x + (narrow ? (place.width() - mark) / 2 : px(18)), place.min.y + px(24)},
            mark);
  if (!narrow) {
    ui::draw_text({place.min.x + px(52), place.min.y + px(24)}, "tilestep", Font::section);
  }
  const float row = std::round(px(ui::kControlHeight));
  const float foot = pad * 2 + (narrow ? 5 * row + 4 * ImGui::GetStyle().ItemSpacing.y : row);

  ImGui::PushStyleColor(ImGuiCol_ChildBg, 0);
  ImGui::SetCursorScreenPos({place.min.x + pad, place.min.y + head});
  ImGui::BeginChild("lessons", {place.width() - 2 * pad, place.height() - head - foot});
  ways(state, narrow);
  lessons(state, narrow);
  ImGui::EndChild();
  ImGui::SetCursorScreenPos({place.min.x + pad, place.max.y - foot + pad});
  ImGui::BeginChild("tools", {place.width() - pad, foot - pad}, false,
                    ImGuiWindowFlags_NoScrollbar);
  tools(state, narrow);
  ImGui::EndChild();
  ImGui::PopStyleColor();
}

}  // namespace tilestep::app
