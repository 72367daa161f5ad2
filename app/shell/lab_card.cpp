#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "app/shell/panes.hpp"

namespace tilestep::app {

using ui::Font;
using ui::px;
using ui::Role;

namespace {

constexpr float kWidth = 340;

/// One of the labs: a button with its name, and below it what it is.
bool offer_line(const LabOffer& offer, std::size_t index, bool chosen, float width) {
  const std::string name = ui::fitted(offer.name, Font::body, width - px(24));
  const bool pressed =
      ui::button(fmt::format("lab_{}", index), name, {.selected = chosen, .width = width / px(1)});
  ui::text(ui::fitted(chosen ? offer.detail + " · now" : offer.detail, Font::note, width),
           Font::note, Role::muted);
  ui::space(4);
  return pressed;
}

}  // namespace

void draw_lab_card(ShellState& state, ImVec2 size) {
  if (!state.lab_card) return;
  const float width = std::min(px(kWidth), size.x - px(16));
  const ImVec2 place(std::clamp(state.lab_card->at.x - width, px(8), size.x - width - px(8)),
                     std::min(state.lab_card->at.y, size.y - px(160)));
  const CardScope card("labs", place, {width, 0});
  const ImVec2 start = ImGui::GetCursorScreenPos();
  ui::text("Where this lesson's kernels run", Font::body_bold);
  const ImVec2 below = ImGui::GetCursorScreenPos();
  const float square = std::round(px(ui::kControlHeight));
  ImGui::SetCursorScreenPos({place.x + width - px(16) - square, start.y - px(4)});
  const bool closed = ui::button("close_labs", "Close  (Esc)", {.icon = ui::Icon::cross});
  ImGui::SetCursorScreenPos({below.x, std::max(below.y, ImGui::GetItemRectMax().y) + px(4)});
  const auto& offers = state.session.offers();
  const float room = width - px(32);
  bool chosen = false;
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if (!offer_line(offers[i], i, state.session.lesson().lab == i, room)) continue;
    state.session.choose_lab(i, state.now_s());
    chosen = true;
  }
  ui::map("labs", "Where kernels run", offers[state.session.lesson().lab].name, place,
          {place.x + ImGui::GetWindowSize().x, place.y + ImGui::GetWindowSize().y});
  const bool inside = ImGui::IsWindowHovered(ImGuiHoveredFlags_AllowWhenBlockedByActiveItem);
  const bool elsewhere = ImGui::IsMouseClicked(ImGuiMouseButton_Left) && !inside &&
                         !std::exchange(state.lab_card->opened, false);
  if (closed || chosen || elsewhere) state.lab_card.reset();
}

}  // namespace tilestep::app
