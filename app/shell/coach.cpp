#include "app/shell/coach.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "app/shell/shell_state.hpp"

namespace tilestep::app {
namespace {

using ui::Font;
using ui::px;
using ui::Role;

struct CoachStop {
  std::array<const char*, 3> parts;  ///< ids in the map; the first that is on screen is shown
  const char* title;
  const char* text;
};
constexpr CoachStop kStops[] = {
    {{"picture", "", ""},
     "A recording",
     "The picture is drawn from what the kernel itself recorded while it ran. Point at a thing: it "
     "says what it is, and lights up wherever it appears."},
    {{"next", "", ""},
     "Step",
     "→ plays the next step, ← goes back, Space plays on. Where the lesson has a question, → asks "
     "before it shows."},
    {{"m", "sectors", "title"},
     "Every number has a mark",
     "The mark beside a number says where it comes from: measured, counted, traced by the kernel, "
     "derived, or recorded earlier on a named GPU. Point at it for the whole sentence."},
    {{"knob_preset", "reset", "bar"},
     "Knobs run the kernel",
     "Turn one and the kernel runs again with it. B keeps a run to compare the next one with."},
    {{"tab_data", "bar", "transport"},
     "Data and measurements",
     "D shows the numbers of each step, M the throughput, K the kernel's own source with the line "
     "that the step is at."},
    {{"reader", "", ""},
     "The text",
     "L opens the lesson's text beside the picture: a path of stops, each of which sets the "
     "scene."},
    {{"theme", "presenter", "find"},
     "Theme, projector, everything else",
     "T changes the theme, P is for a projector, Ctrl+K finds the rest, and ? lists the keys."},
};

}  // namespace

void Coach::draw(ShellState& state) {
  if (stop_ < 0) return;
  if (stop_ >= static_cast<int>(std::size(kStops))) return end();
  const CoachStop& stop = kStops[static_cast<std::size_t>(stop_)];
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  ImVec2 low(0, 0), high(0, 0);
  for (const char* id : stop.parts) {
    for (const ui::MapEntry& part : state.ui.map()) {
      if (part.id != id || high.x > 0) continue;
      low = part.min;
      high = part.max;
    }
  }
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(window);
  ImGui::SetNextWindowFocus();
  ImGui::PushStyleColor(ImGuiCol_WindowBg, 0);
  ImGui::Begin("coach", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoNav);
  ImGui::PopStyleColor();
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImU32 shade = ui::faded(ui::palette(ui::theme(), Role::background), 0.62f);
  const float out = px(6);
  low = {std::max(low.x - out, 0.0f), std::max(low.y - out, 0.0f)};
  high = {std::min(high.x + out, window.x), std::min(high.y + out, window.y)};
  list.AddRectFilled({0, 0}, {window.x, low.y}, shade);
  list.AddRectFilled({0, high.y}, window, shade);
  list.AddRectFilled({0, low.y}, {low.x, high.y}, shade);
  list.AddRectFilled({high.x, low.y}, {window.x, high.y}, shade);
  list.AddRect(low, high, ui::color(Role::text), px(6), 0, px(2));

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
  {
    const PanelScope panel("coach_panel", {{x, y}, {x + width, y + height}},
                           ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
    ui::map("coach", stop.title, stop.text, {x, y}, {x + width, y + height});
    ui::paragraph(stop.title, Font::body_bold);
    ui::space(2);
    ui::paragraph(stop.text);
    const ImVec2 foot(x + pad, y + height - pad - row);
    ImGui::SetCursorScreenPos(foot);
    const int count = static_cast<int>(std::size(kStops));
    const bool last = stop_ + 1 == count;
    const float button = ui::text_size("Next").x + px(40);
    ui::draw_text({foot.x, foot.y + (row - ui::text_size("x", Font::note).y) / 2},
                  fmt::format("{} of {}", stop_ + 1, count), Font::note, Role::muted);
    ImGui::SetCursorScreenPos({x + width - pad - button, foot.y});
    if (ui::button("coach_next", last ? "Done" : "Next",
                   {.primary = true, .width = button / px(1)})) {
      go_on();
    }
    if (!last) {
      const float skip = ui::text_size("Skip").x + px(24);
      ImGui::SetCursorScreenPos({x + width - pad - button - px(8) - skip, foot.y});
      if (ui::button("coach_skip", "Skip")) end();
    }
  }
  ImGui::End();
}

}  // namespace tilestep::app
