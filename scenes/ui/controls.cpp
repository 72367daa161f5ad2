#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "scenes/ui/context.hpp"
#include "scenes/ui/control_parts.hpp"

namespace tilestep::ui {
namespace {

Focus& focus() {
  return Context::current().focus();
}

struct ButtonColors {
  ImU32 fill, edge, ink;
};

ButtonColors button_colors(const ButtonLook& look, float hover, bool held) {
  if (!look.enabled)
    return {color(Role::raised, 0.4f), color(Role::border, 0.6f), color(Role::faint)};
  if (look.primary) {
    const ImU32 accent = color(Role::accent);
    const ImU32 lit = mixed(accent, color(Role::text), 0.18f * hover + (held ? 0.15f : 0.0f));
    return {lit, faded(accent, 0), color(Role::on_accent)};
  }
  if (look.selected) {
    return {mixed(color(Role::raised), color(Role::accent), 0.14f + 0.06f * hover),
            color(Role::accent), color(Role::text)};
  }
  const ImU32 fill = mixed(color(Role::raised), color(Role::border), held ? 1.0f : 0.7f * hover);
  return {fill, color(Role::border), color(Role::text)};
}

}  // namespace

void use_hand() {
  if (ImGui::IsItemHovered()) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
}

bool button(std::string_view id, std::string_view label, const ButtonLook& look) {
  const bool icon_only = look.icon != Icon::none && look.width == 0;
  const float height = std::round(px(kControlHeight));
  float width = px(look.width);
  if (icon_only) {
    width = height;
  } else if (look.width <= 0) {
    width = std::ceil(text_size(label).x) + 2 * px(12) + px(look.icon == Icon::none ? 0 : 22);
  }
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const ImVec2 size(std::round(width), height);
  const ImVec2 max(min.x + size.x, min.y + size.y);
  ImGui::PushID(id.data(), id.data() + id.size());
  bool pressed = ImGui::InvisibleButton("button", size) && look.enabled;
  const bool hovered = ImGui::IsItemHovered() && look.enabled;
  if (look.enabled) pressed = focus().control(id, min, max).pressed || pressed;
  const float hover = animate("hover", hovered ? 1.0f : 0.0f, 0.12f);
  const ButtonColors colors = button_colors(look, hover, hovered && ImGui::IsItemActive());
  ImGui::PopID();
  if (look.enabled) use_hand();

  list().AddRectFilled(min, max, colors.fill, px(kControlCorner));
  list().AddRect(min, max, colors.edge, px(kControlCorner));
  const ImVec2 center((min.x + max.x) / 2, (min.y + max.y) / 2);
  if (icon_only) {
    draw_icon(look.icon, center, px(14), colors.ink);
    tooltip(label);
  } else {
    const float icon_room = look.icon == Icon::none ? 0 : px(14 + 8);
    const std::string shown = fitted(label, Font::body, size.x - px(6) - icon_room);
    const ImVec2 text = text_size(shown);
    const float left = std::round(center.x - (text.x + icon_room) / 2);
    if (look.icon != Icon::none) {
      draw_icon(look.icon, {left + px(7), center.y}, px(14), colors.ink);
    }
    draw_text_in({left + icon_room, std::round(center.y - text.y / 2)}, shown, Font::body,
                 colors.ink);
    if (shown != label) tooltip(label);
  }
  map(id, label, !look.enabled ? "disabled" : look.selected ? "selected" : "", min, max);
  return pressed;
}

namespace {

std::vector<float> part_widths(const std::vector<std::string>& labels) {
  std::vector<float> widths;
  for (const std::string& label : labels) {
    widths.push_back(std::ceil(text_size(label).x) + 2 * px(12));
  }
  return widths;
}

/// What the keys choose while the focus is on part `index` of several: itself, or one beside it, which the
/// focus goes to.
std::optional<int> part_by_keys(std::string_view id, int index, int count, ImVec2 low,
                                ImVec2 high) {
  const auto name = [id](int part) { return fmt::format("{}_{}", id, part); };
  const Focused keys = focus().control(name(index), low, high, Takes::across);
  if (keys.across == 0) return keys.pressed ? std::optional(index) : std::nullopt;
  const int to = std::clamp(index + keys.across, 0, count - 1);
  focus().give(name(to));
  return to;
}

}  // namespace

float segmented_width(const std::vector<std::string>& labels) {
  const std::vector<float> widths = part_widths(labels);
  return std::accumulate(widths.begin(), widths.end(), 0.0f);
}

std::optional<int> segmented(std::string_view id, const std::vector<std::string>& labels,
                             int selected, float width) {
  const float height = std::round(px(kControlHeight));
  std::vector<float> widths = part_widths(labels);
  const float wanted = std::accumulate(widths.begin(), widths.end(), 0.0f);
  const float room = width > 0 ? px(width) : std::min(wanted, ImGui::GetContentRegionAvail().x);
  if (wanted > 0) {
    for (float& each : widths) each = std::floor(each * room / wanted);
  }
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const float total = std::accumulate(widths.begin(), widths.end(), 0.0f);
  list().AddRectFilled(min, {min.x + total, min.y + height}, color(Role::raised),
                       px(kControlCorner));
  list().AddRect(min, {min.x + total, min.y + height}, color(Role::border), px(kControlCorner));
  std::optional<int> chosen;
  ImGui::PushID(id.data(), id.data() + id.size());
  ImGui::BeginGroup();
  float x = min.x;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const int index = static_cast<int>(i);
    const ImVec2 low(x, min.y), high(x + widths[i], min.y + height);
    ImGui::SetCursorScreenPos(low);
    ImGui::PushID(index);
    if (ImGui::InvisibleButton("part", {std::max(widths[i], 1.0f), height}) && index != selected) {
      chosen = index;
    }
    const float hover = animate("hover", ImGui::IsItemHovered() ? 1.0f : 0.0f, 0.12f);
    use_hand();
    ImGui::PopID();
    if (const auto to = part_by_keys(id, index, static_cast<int>(labels.size()), low, high)) {
      if (*to != selected) chosen = *to;
    }
    if (index == selected) {
      list().AddRectFilled(low, high, mixed(color(Role::raised), color(Role::accent), 0.2f),
                           px(kControlCorner));
      list().AddRect(low, high, color(Role::accent), px(kControlCorner));
    } else if (hover > 0) {
      list().AddRectFilled(low, high, color(Role::border, 0.7f * hover), px(kControlCorner));
    }
    const std::string shown = fitted(labels[i], Font::body, widths[i] - px(8));
    draw_text({(low.x + high.x) / 2, (low.y + high.y - text_size(shown).y) / 2}, shown, Font::body,
              index == selected ? Role::text : Role::muted, Align::center);
    if (shown != labels[i]) tooltip(labels[i]);
    map(fmt::format("{}_{}", id, i), labels[i], index == selected ? "selected" : "", low, high);
    x += widths[i];
  }
  ImGui::EndGroup();
  ImGui::PopID();
  return chosen;
}

namespace {

/// As a press of the mouse on the combo box of this label does.
void open_list(const char* label) {
  ImGui::OpenPopupEx(ImHashStr("##ComboPopup", 0, ImGui::GetID(label)));
}

/// The list of a dropdown while it is open: ↑ and ↓ mark a choice, Enter takes it, Esc closes the list.
std::optional<int> open_choices(std::string_view id, const std::vector<std::string>& choices,
                                int selected) {
  const int last = static_cast<int>(choices.size()) - 1;
  int& marked = Context::current().kept<int>(kept_name("marked", id));
  if (ImGui::IsWindowAppearing()) marked = selected;
  const Focused keys = focus().list();
  if (keys.down != 0) marked = std::clamp(marked + keys.down, 0, std::max(last, 0));
  std::optional<int> chosen;
  for (int index = 0; index <= last; ++index) {
    const std::string& words = choices[static_cast<std::size_t>(index)];
    const bool taken = keys.pressed && index == marked;
    if (ImGui::Selectable(words.c_str(), index == selected) || taken) {
      if (index != selected) chosen = index;
    }
    const std::string name = fmt::format("{}_{}", id, index);
    map(name, words, index == selected ? "selected" : "", ImGui::GetItemRectMin(),
        ImGui::GetItemRectMax());
    if (index != marked) continue;
    focus().ring(name, ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
    if (keys.down != 0) ImGui::SetScrollHereY(0.5f);
  }
  if (keys.pressed || keys.closed) ImGui::CloseCurrentPopup();
  return chosen;
}

}  // namespace

std::optional<int> dropdown(std::string_view id, std::string_view label,
                            const std::vector<std::string>& choices, int selected, float width) {
  std::optional<int> chosen;
  const bool known = selected >= 0 && selected < static_cast<int>(choices.size());
  const std::string full = known ? choices[static_cast<std::size_t>(selected)] : std::string();
  const std::string shown = fitted(full, Font::body, width - px(48));
  const FontScope body(Font::body);
  const float pad = (std::round(px(kControlHeight)) - font_pixels(Font::body)) / 2;
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {px(12), pad});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(kGapSmall), px(kGapSmall)});
  ImGui::SetNextItemWidth(width);
  ImGui::PushID(id.data(), id.data() + id.size());
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const ImVec2 max(min.x + width, min.y + std::round(px(kControlHeight)));
  map(id, label, full, min, max);
  const Focused keys = focus().control(id, min, max, Takes::down);
  if (keys.pressed || keys.down != 0) open_list("##choices");
  if (ImGui::BeginCombo("##choices", shown.c_str(),
                        ImGuiComboFlags_HeightLarge | ImGuiComboFlags_NoArrowButton)) {
    chosen = open_choices(id, choices, selected);
    ImGui::EndCombo();
  }
  ImGui::PopID();
  ImGui::PopStyleVar(2);
  use_hand();
  const ImVec2 tip(max.x - px(16), (min.y + max.y) / 2 + px(2));
  const ImVec2 points[] = {{tip.x - px(5), tip.y - px(5)}, tip, {tip.x + px(5), tip.y - px(5)}};
  list().AddPolyline(points, 3, color(Role::muted), 0, px(1.5f));
  return chosen;
}

SliderMove slider(std::string_view id, float share, float width, const SliderLook& look) {
  const float height = std::round(px(24));
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const float radius = px(look.knob_radius);
  const float left = min.x + radius, right = min.x + std::max(width, 4 * radius) - radius;
  ImGui::PushID(id.data(), id.data() + id.size());
  ImGui::InvisibleButton("slider", {right + radius - min.x, height});
  const bool active = ImGui::IsItemActive();
  const bool lit = active || ImGui::IsItemHovered();
  const float hover = animate("hover", lit ? 1.0f : 0.0f, 0.12f);
  const Focused keys = focus().control(id, min, {right + radius, min.y + height},
                                       look.nudges ? Takes::across : Takes::press);
  ImGui::PopID();
  use_hand();
  std::optional<float> changed;
  if (active) {
    const float wanted =
        std::clamp((ImGui::GetIO().MousePos.x - left) / (right - left), 0.0f, 1.0f);
    if (wanted != share) changed = wanted;
  }
  const float y = std::round(min.y + height / 2);
  const float x = left + (right - left) * std::clamp(share, 0.0f, 1.0f);
  const float half = px(2);
  list().AddRectFilled({left, y - half}, {right, y + half}, color(Role::border), half);
  if (look.ticks > 1 && (right - left) / static_cast<float>(look.ticks) > px(6)) {
    for (int tick = 0; tick <= look.ticks; ++tick) {
      const float at =
          left + (right - left) * static_cast<float>(tick) / static_cast<float>(look.ticks);
      list().AddCircleFilled({at, y}, px(3.5f), color(at <= x ? Role::accent : Role::faint));
    }
  }
  list().AddRectFilled({left, y - half}, {x, y + half}, color(Role::accent), half);
  list().AddCircleFilled({x, y}, radius + px(1.5f) * hover, color(Role::accent));
  list().AddCircleFilled({x, y}, radius - px(3), color(Role::panel));
  return {changed, keys.across};
}

void begin_typing(std::string_view id) {
  const Focused keys = focus().control(id, ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  if (keys.pressed) ImGui::SetKeyboardFocusHere(-1);
}

std::optional<float> range_slider(std::string_view id, float share, float width) {
  constexpr float kNudge = 0.01f;
  const SliderMove move = slider(id, share, width);
  if (move.nudges == 0) return move.to;
  return std::clamp(share + kNudge * static_cast<float>(move.nudges), 0.0f, 1.0f);
}

std::optional<ScrubberMove> scrubber(std::string_view id, double value, int count, float width,
                                     const std::vector<ScrubberMark>& marks) {
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const double steps = std::max(count, 1);
  const auto share = static_cast<float>(count > 0 ? value / steps : 0);
  // ← and → are the window's own steps, with their questions.
  const auto moved =
      slider(id, share, width, {.ticks = count, .knob_radius = 8, .nudges = false}).to;
  const bool released = ImGui::IsItemDeactivated(), active = ImGui::IsItemActive();
  map(id, "Scrubber", fmt::format("{:g}/{}", std::floor(value), count), min,
      ImGui::GetItemRectMax(), {px(96), px(20)});
  const float radius = px(8), left = min.x + radius,
              right = min.x + std::max(width, px(32)) - radius;
  const float y = std::round(min.y + px(24) / 2) - px(9);
  for (const ScrubberMark& mark : marks) {
    const float x = left + (right - left) * static_cast<float>(mark.at / steps);
    list().AddTriangleFilled({x - px(4), y - px(5)}, {x + px(4), y - px(5)}, {x, y + px(1)},
                             color(Role::text));
    const ImVec2 low(x - px(5), y - px(6)), high(x + px(5), y + px(3));
    if (!active && ImGui::IsMouseHoveringRect(low, high)) show_tooltip(mark.label);
    map(fmt::format("event_{:g}", mark.at), mark.label, "", low, high);
  }
  if (released) return ScrubberMove{value, true};
  if (!moved || count < 1) return std::nullopt;
  const double wanted = static_cast<double>(*moved) * steps;
  if (wanted == value) return std::nullopt;
  return ScrubberMove{wanted, false};
}

bool toggle_switch(std::string_view id, bool on) {
  const ImVec2 size(std::round(px(40)), std::round(px(24)));
  const ImVec2 min = ImGui::GetCursorScreenPos();
  ImGui::PushID(id.data(), id.data() + id.size());
  bool pressed = ImGui::InvisibleButton("switch", size);
  pressed = focus().control(id, min, {min.x + size.x, min.y + size.y}).pressed || pressed;
  const float place = animate("place", on ? 1.0f : 0.0f, 0.15f);
  ImGui::PopID();
  use_hand();
  const float radius = size.y / 2;
  const ImVec2 max(min.x + size.x, min.y + size.y);
  list().AddRectFilled(min, max, mixed(color(Role::raised), color(Role::accent), place), radius);
  list().AddRect(min, max, mixed(color(Role::faint), color(Role::accent), place), radius);
  const float x = min.x + radius + (size.x - 2 * radius) * place;
  list().AddCircleFilled({x, min.y + radius}, radius - px(5),
                         mixed(color(Role::muted), color(Role::on_accent), place));
  return pressed;
}

}  // namespace tilestep::ui
