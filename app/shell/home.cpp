#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/shell/panes.hpp"
#include "scenes/shared/course.hpp"

namespace tilestep::app {
namespace {

using ui::Font;
using ui::px;
using ui::Role;

using ui::list;

/// "3 of 15 read"; muted while nothing is done.
struct Count {
  std::string words;
  bool some = false;
};

std::vector<Count> counts_of(const scenes::CourseRow& row, const Progress::Lesson& done) {
  const auto known = [](const std::set<std::string>& all, const std::vector<std::string>& names) {
    return std::count_if(names.begin(), names.end(),
                         [&](const std::string& name) { return all.count(name) > 0; });
  };
  const auto read = known(done.stops, row.stops), solved = known(done.exercises, row.exercises);
  std::vector<Count> counts = {
      {fmt::format("{} of {} stops read", read, row.stops.size()), read > 0},
      {fmt::format("{} of {} exercises solved", solved, row.exercises.size()), solved > 0}};
  if (!done.asked.empty()) {
    counts.push_back(
        {fmt::format("{} of {} questions right", done.right.size(), done.asked.size()), true});
  }
  return counts;
}

/// A lesson of the course. Returns whether it was pressed.
bool course_row(const scenes::CourseRow& row, std::size_t index, const Progress::Lesson& done) {
  const float width = ImGui::GetContentRegionAvail().x, pad = px(16);
  const float counted = std::min(px(200), width * 0.36f);
  const float room = width - 2 * pad - px(36) - counted - px(16);
  const float line = std::ceil(ui::text_size("x", Font::note).y + px(3));
  const std::string before = "Before: " + row.before;
  const float after_height = ui::wrapped_size(row.after, room).y;
  const float before_height = ui::wrapped_size(before, room, Font::note).y;
  const float title = ui::text_size("x", Font::body_bold).y;
  const std::vector<Count> counts = counts_of(row, done);
  const float height =
      std::ceil(2 * px(10) + std::max(title + px(3) + after_height + px(3) + before_height,
                                      line * static_cast<float>(1 + counts.size())));
  const ImVec2 min = ImGui::GetCursorScreenPos(), max(min.x + width, min.y + height);
  const std::string id = "course_" + row.lesson;
  bool pressed = ImGui::InvisibleButton(id.c_str(), {width, height});
  const bool hovered = ImGui::IsItemHovered();
  if (hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  pressed = ui::Context::current().focus().control(id, min, max).pressed || pressed;
  list().AddRectFilled(min, max, ui::color(hovered ? Role::raised : Role::panel), px(ui::kCorner));
  list().AddRect(min, max, ui::color(Role::border), px(ui::kCorner));
  const float left = min.x + pad + px(36);
  float y = min.y + px(10);
  ui::draw_text({min.x + pad, y}, std::to_string(index + 1), Font::body_bold, Role::muted);
  ui::draw_text({left, y}, ui::fitted(row.title, Font::body_bold, room), Font::body_bold);
  y += title + px(3);
  ui::draw_wrapped({left, y}, row.after, room);
  y += after_height + px(3);
  ui::draw_wrapped({left, y}, before, room, Font::note, Role::muted);
  y = min.y + px(10);
  const auto say = [&](const std::string& words, Role role) {
    const std::string shown = ui::fitted(words, Font::note, counted);
    ui::draw_text({max.x - pad, y}, shown, Font::note, role, ui::Align::right);
    y += line;
  };
  say(fmt::format("{} · about {} min", row.chapter, row.minutes), Role::muted);
  std::string said;
  for (const Count& count : counts) {
    say(count.words, count.some ? Role::text : Role::muted);
    said += (said.empty() ? "" : "; ") + count.words;
  }
  ui::map(id, row.title, said, min, max);
  ui::space(6);
  return pressed;
}

void draw_course(ShellState& state) {
  const auto& rows = scenes::course();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (course_row(rows[i], i, state.progress.lessons[rows[i].lesson])) state.begin_lesson(i);
  }
}

void draw_ways_on(ShellState& state) {
  const std::string& first = state.session.lessons().front().info.title;
  const std::string& here = state.session.lesson().info.title;
  const auto button = [](const char* id, const std::string& label, bool primary) {
    const float width = ui::text_size(label).x + px(32), room = ImGui::GetContentRegionAvail().x;
    return ui::button(id, label, {.primary = primary, .width = std::min(width, room) / px(1)});
  };
  const bool wide = ImGui::GetContentRegionAvail().x > px(700);
  if (state.has_place) {
    if (button("continue", "Continue: " + here, true)) return state.show_home(false);
    if (wide) ImGui::SameLine(0, px(8));
  }
  if (button("begin", "Begin: " + first, !state.has_place)) return state.begin_lesson(0);
  if (wide) ImGui::SameLine(0, px(8));
  if (button("inspect_begin", "Open a CUDA file", false)) return state.choose_inspected();
  if (wide) ImGui::SameLine(0, px(8));
  if (button("coach_begin", "Tour of the window", false)) {
    state.show_home(false);
    state.coach.begin();
  }
}

}  // namespace

void draw_home(ShellState& state, const Layout& layout, ImVec2 size) {
  const float margin = px(16), most = px(1040);
  const float left = layout.rail.max.x + margin, right = size.x - margin;
  const float width = std::min(right - left, most);
  const float from = std::round((left + right - width) / 2);
  ImGui::SetCursorScreenPos({from, 0});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, 0);
  ImGui::BeginChild("home", {width, size.y}, false, ImGuiWindowFlags_NoNavInputs);
  ImGui::PopStyleColor();
  ui::scroll_stop("home");
  ui::space(24);
  ui::text("tilestep", Font::title);
  ui::map("home", "Home", "", ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  ui::space(4);
  ui::paragraph(
      "How GPU kernels for language models work: step through real CUDA kernels and watch what "
      "each line does. Every picture is drawn from what the kernel recorded, and every number "
      "says where it comes from.");
  ui::space(12);
  draw_ways_on(state);
  ui::space(20);
  ui::text("The course", Font::section);
  ui::space(6);
  draw_course(state);
  ui::space(20);
  ImGui::EndChild();
}

}  // namespace tilestep::app
