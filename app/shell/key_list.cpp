#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/shell/panes.hpp"

namespace tilestep::app {
namespace {

using ui::Font;
using ui::px;
using ui::Role;

struct KeyLine {
  const char* keys;
  const char* what;
};
constexpr KeyLine kLines[] = {
    {"←  →", "Previous / next step, or its question; a clicker: the next stop when presenting"},
    {"Shift ← →  , .", "Previous / next line of the kernel, or single step"},
    {"Home  End  N", "First step, last step, next event"},
    {"Space", "Play / pause"},
    {"A  B  C  D", "Answer the open question; Esc skips it"},
    {"H", "Home: the course, and what you have done of it"},
    {"Ctrl+O", "Inspect a CUDA file; ← → its requests"},
    {", .  Home  N", "In a trace: zoom, all of it, next gap; [ ] questions"},
    {"R", "Reset knobs and step"},
    {"↑  ↓  1–9", "Lesson"},
    {"L  [  ]", "Lesson text; previous / next stop"},
    {"V", "Whole picture, or what the stop or step is about"},
    {"D  M  K  G", "Data, Measured, Kernel, Glossary"},
    {"S", "Kernel tab: source only, with PTX, with SASS"},
    {"B", "Keep this run as A and compare"},
    {"P", "Presenter mode"},
    {"T", "Dark / light theme"},
    {"Tab  Enter", "Next control (Shift: previous); press it"},
    {"Ctrl+Enter", "Run the edited kernel; Esc leaves the editor"},
    {"F8", "Go to settings where your kernel is wrong, and back"},
    {"Ctrl+Shift+Enter", "Recompile the assembly"},
    {"Ctrl+F", "Find in the kernel's editor"},
    {"Ctrl+K", "Find lessons, knobs, terms and actions"},
    {"F11", "Full screen"},
    {"Ctrl+C", "Copy the table under Data, for a spreadsheet"},
    {"Ctrl+S", "Save a capsule; with Shift the picture"},
    {"?", "This list; Esc closes it"},
};

}  // namespace

void draw_key_list(ShellState& state, ImVec2 size) {
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(size);
  ImGui::SetNextWindowFocus();
  ImGui::PushStyleColor(ImGuiCol_WindowBg,
                        ui::faded(ui::palette(ui::theme(), Role::background), 0.78f));
  ImGui::Begin("keys", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoNav);
  ImGui::PopStyleColor();
  const float row = std::round(px(32));
  const float wanted = 2 * px(24) + px(56) + row * static_cast<float>(std::size(kLines));
  const float keys_width = px(168);
  float widest = 0;
  for (const KeyLine& line : kLines) widest = std::max(widest, ui::text_size(line.what).x);
  const ImVec2 panel_size(std::min(2 * px(24) + keys_width + widest + px(16), size.x - px(32)),
                          std::min(wanted, size.y - px(32)));
  const ImVec2 min(std::round((size.x - panel_size.x) / 2),
                   std::round((size.y - panel_size.y) / 2));
  ui::map("key_list", "Keys", "open", min, {min.x + panel_size.x, min.y + panel_size.y});
  {
    const PanelScope panel("key_panel", {min, {min.x + panel_size.x, min.y + panel_size.y}}, 0, 24);
    const int scrolls = std::exchange(state.key_list_scrolls, 0);
    if (scrolls != 0) ImGui::SetScrollY(ImGui::GetScrollY() + static_cast<float>(scrolls) * row);
    ui::text("Keys", Font::section);
    ui::space(16);
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    for (const KeyLine& line : kLines) {
      const ImVec2 at = ImGui::GetCursorScreenPos();
      const float width = ImGui::GetContentRegionAvail().x;
      ui::draw_text({at.x, at.y + px(4)}, line.keys, Font::mono, Role::accent);
      const std::string what = ui::fitted(line.what, Font::body, width - keys_width);
      const ImVec2 room = ui::draw_text({at.x + keys_width, at.y + px(5)}, what);
      ui::map(fmt::format("key_line_{}", &line - kLines + 1), what, line.keys, at,
              {at.x + keys_width + room.x, at.y + row});
      ImGui::Dummy({width, row});
    }
    ImGui::PopStyleVar();
  }
  if (ImGui::IsMouseClicked(0) &&
      !ImGui::IsMouseHoveringRect(min, {min.x + panel_size.x, min.y + panel_size.y}, false)) {
    state.key_list = false;
  }
  ImGui::End();
}

}  // namespace tilestep::app
