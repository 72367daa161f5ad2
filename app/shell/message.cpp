#include <imgui_internal.h>

#include <algorithm>
#include <cmath>

#include "app/shell/panes.hpp"

namespace tilestep::app {
namespace {

constexpr double kLeastSeconds = 4, kSecondsALetter = 0.05;

}  // namespace

void ShellState::say(std::string sentence) {
  const auto letters = static_cast<double>(sentence.size());
  message = {std::move(sentence), now_s() + std::max(kLeastSeconds, kSecondsALetter * letters)};
  ui.request_redraw();
}

void draw_message(const ShellState& state, ImVec2 size) {
  using ui::px;
  const std::string& sentence = state.message->sentence;
  const float room = std::min(px(720), size.x - px(64));
  const ImVec2 text = ui::wrapped_size(sentence, room);
  const ImVec2 panel(std::ceil(std::min(text.x, room)) + px(32), std::ceil(text.y) + px(24));
  const ImVec2 min(std::round((size.x - panel.x) / 2), std::round(size.y - panel.y - px(24)));
  const ImVec2 max(min.x + panel.x, min.y + panel.y);
  // Over everything, and not in the way of hands: a window that takes the focus takes what is pressed and
  // typed elsewhere.
  ImGui::SetNextWindowPos(min);
  ImGui::SetNextWindowSize(panel);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, ui::color(ui::Role::raised));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, px(ui::kCorner));
  ImGui::Begin("message", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoInputs |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoNav |
                   ImGuiWindowFlags_NoFocusOnAppearing);
  ImGui::BringWindowToDisplayFront(ImGui::GetCurrentWindow());
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  ui::draw_wrapped({min.x + px(16), min.y + px(12)}, sentence, room);
  ui::map("message", "Message", sentence, min, max);
  ImGui::End();
}

}  // namespace tilestep::app
