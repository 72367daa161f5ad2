#include "scenes/ui/theme.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <vector>

#include "scenes/ui/context.hpp"

namespace tilestep::ui {
namespace {

constexpr ImU32 rgb(unsigned hex) {
  return IM_COL32((hex >> 16) & 255u, (hex >> 8) & 255u, hex & 255u, 255);
}

// Tones are after Okabe and Ito ("Color Universal Design", 2008), lighter on dark panels and darker on white ones, so that
// each keeps 3:1 against its panel; with the last four those of category_tone are as far apart as it goes without red or green.
constexpr std::array<ImU32, kRoleCount> kDark = {
    rgb(0x0E1116), rgb(0x151A21), rgb(0x1F2630), rgb(0x2C3541), rgb(0x252D38), rgb(0xE6EAF0),
    rgb(0x9DA9B8), rgb(0x596577), rgb(0xFFB84D), rgb(0x1B1203), rgb(0x4CC38A), rgb(0xFF6B6B),
    rgb(0x7A8594), rgb(0x2E88CC), rgb(0xE69F00), rgb(0x1FB487), rgb(0xB58CFE), rgb(0x7CC8F5),
    rgb(0xE8702A), rgb(0xF0E442), rgb(0x8F8A18), rgb(0x9A5440), rgb(0xC84EA0), rgb(0xD8FFF4)};
constexpr std::array<ImU32, kRoleCount> kLight = {
    rgb(0xF1F4F8), rgb(0xFFFFFF), rgb(0xEBEFF4), rgb(0xC6CED8), rgb(0xDFE5EC), rgb(0x10151C),
    rgb(0x4A5666), rgb(0x97A3B2), rgb(0xB84E00), rgb(0xFFFFFF), rgb(0x0F7B4F), rgb(0xC62828),
    rgb(0x75808F), rgb(0x2B50DC), rgb(0xA56700), rgb(0x00806A), rgb(0xDA5FB0), rgb(0x0A99EA),
    rgb(0xB23A12), rgb(0x897D00), rgb(0x86975F), rgb(0x3F2A1C), rgb(0x8A1F72), rgb(0x25006A)};

// Nine samples of the viridis map (van der Walt and Smith, 2015).
constexpr std::array<ImU32, 9> kViridis = {rgb(0x440154), rgb(0x472D7B), rgb(0x3B528B),
                                           rgb(0x2C728E), rgb(0x21918C), rgb(0x28AE80),
                                           rgb(0x5EC962), rgb(0xADDC30), rgb(0xFDE725)};

float linear(float channel) {
  return channel <= 0.04045f ? channel / 12.92f : std::pow((channel + 0.055f) / 1.055f, 2.4f);
}

float luminance(ImU32 color) {
  const ImVec4 c = ImGui::ColorConvertU32ToFloat4(color);
  return 0.2126f * linear(c.x) + 0.7152f * linear(c.y) + 0.0722f * linear(c.z);
}

ImVec4 style_color(ThemeKind theme, Role role, float alpha = 1) {
  return ImGui::ColorConvertU32ToFloat4(faded(palette(theme, role), alpha));
}

void apply_colors(ImGuiStyle& style, ThemeKind theme) {
  const auto set = [&](ImGuiCol slot, Role role, float alpha = 1) {
    style.Colors[slot] = style_color(theme, role, alpha);
  };
  set(ImGuiCol_Text, Role::text);
  set(ImGuiCol_TextDisabled, Role::muted);
  set(ImGuiCol_WindowBg, Role::background);
  set(ImGuiCol_ChildBg, Role::panel);
  set(ImGuiCol_PopupBg, Role::panel);
  set(ImGuiCol_Border, Role::border);
  set(ImGuiCol_BorderShadow, Role::background, 0);
  set(ImGuiCol_FrameBg, Role::raised);
  set(ImGuiCol_FrameBgHovered, Role::border);
  set(ImGuiCol_FrameBgActive, Role::raised);
  set(ImGuiCol_ScrollbarBg, Role::panel, 0);
  set(ImGuiCol_ScrollbarGrab, Role::border);
  set(ImGuiCol_ScrollbarGrabHovered, Role::faint);
  set(ImGuiCol_ScrollbarGrabActive, Role::muted);
  set(ImGuiCol_Button, Role::raised);
  set(ImGuiCol_ButtonHovered, Role::border);
  set(ImGuiCol_ButtonActive, Role::border);
  set(ImGuiCol_Header, Role::accent, 0.18f);
  set(ImGuiCol_HeaderHovered, Role::raised);
  set(ImGuiCol_HeaderActive, Role::border);
  set(ImGuiCol_Separator, Role::border);
  set(ImGuiCol_TextSelectedBg, Role::accent, 0.35f);
  set(ImGuiCol_CheckMark, Role::accent);
}

}  // namespace

ImU32 palette(ThemeKind theme, Role role) {
  const auto index = static_cast<std::size_t>(role);
  assert(index < kDark.size());
  return theme == ThemeKind::dark ? kDark[index] : kLight[index];
}

namespace {

/// The tint that marks what is current is as strong as this.
constexpr float kCurrentTint = 0.17f;

ImU32 readable_ink(ThemeKind theme, Role role) {
  constexpr float kLeast = 4.6f;  // a little over what is asked for: colours are whole numbers
  const ImU32 wanted = palette(theme, role), panel = palette(theme, Role::panel);
  if (role <= Role::grid || role == Role::on_accent) return wanted;
  std::vector<ImU32> grounds = {panel, palette(theme, Role::background),
                                palette(theme, Role::raised)};
  if (role != Role::faint) {
    grounds.push_back(mixed(panel, palette(theme, Role::accent), kCurrentTint));
  }
  constexpr int kSteps = 50;
  for (int step = 0; step < kSteps; ++step) {
    const ImU32 ink = mixed(wanted, palette(theme, Role::text), static_cast<float>(step) / kSteps);
    const bool reads = std::all_of(grounds.begin(), grounds.end(),
                                   [ink](ImU32 ground) { return contrast(ink, ground) >= kLeast; });
    if (reads) return ink;
  }
  return palette(theme, Role::text);
}

}  // namespace

ImU32 ink(ThemeKind theme, Role role) {
  static const auto inks = [] {
    std::array<std::array<ImU32, kRoleCount>, 2> made{};
    for (int i = 0; i < kRoleCount; ++i) {
      made[0][static_cast<std::size_t>(i)] = readable_ink(ThemeKind::dark, static_cast<Role>(i));
      made[1][static_cast<std::size_t>(i)] = readable_ink(ThemeKind::light, static_cast<Role>(i));
    }
    return made;
  }();
  return inks[theme == ThemeKind::dark ? 0 : 1][static_cast<std::size_t>(role)];
}

ImU32 ink(Role role, float alpha) {
  const Context& context = Context::current();
  return faded(ink(context.look().theme, role), alpha * context.opacity());
}

float contrast(ImU32 a, ImU32 b) {
  const float la = luminance(a), lb = luminance(b);
  return (std::max(la, lb) + 0.05f) / (std::min(la, lb) + 0.05f);
}

ImU32 mixed(ImU32 a, ImU32 b, float t) {
  const ImVec4 ca = ImGui::ColorConvertU32ToFloat4(a), cb = ImGui::ColorConvertU32ToFloat4(b);
  return ImGui::ColorConvertFloat4ToU32({ca.x + (cb.x - ca.x) * t, ca.y + (cb.y - ca.y) * t,
                                         ca.z + (cb.z - ca.z) * t, ca.w + (cb.w - ca.w) * t});
}

ImU32 faded(ImU32 color, float alpha) {
  const float was = static_cast<float>((color >> IM_COL32_A_SHIFT) & 255u);
  const auto now = static_cast<ImU32>(std::lround(was * std::clamp(alpha, 0.0f, 1.0f)));
  return (color & ~IM_COL32_A_MASK) | (now << IM_COL32_A_SHIFT);
}

float em_size(Font font) {
  switch (font) {
    case Font::note:
    case Font::mono_note:
      return 13;
    case Font::body:
    case Font::body_bold:
    case Font::mono:
      return 16;
    case Font::section:
      return 20;
    case Font::title:
    case Font::mono_large:
      return 28;
  }
  return 16;
}

bool is_mono(Font font) {
  return font == Font::mono_note || font == Font::mono || font == Font::mono_large;
}

void apply_style(ThemeKind theme, float scale) {
  ImGuiStyle& style = ImGui::GetStyle();
  const auto whole = [scale](float design) { return std::round(design * scale); };
  style.WindowPadding = {whole(kGap), whole(kGap)};
  style.FramePadding = {whole(8), whole(5)};
  style.ItemSpacing = {whole(kGapSmall), whole(kGapSmall)};
  style.ItemInnerSpacing = {whole(kGapSmall), whole(kGapSmall)};
  style.WindowRounding = 0;
  style.ChildRounding = whole(kCorner);
  style.PopupRounding = whole(kCorner);
  style.FrameRounding = whole(kControlCorner);
  style.ScrollbarRounding = whole(4);
  style.ScrollbarSize = whole(10);
  style.WindowBorderSize = 0;
  style.ChildBorderSize = 1;
  style.PopupBorderSize = 1;
  style.FrameBorderSize = 1;
  style.CurveTessellationTol = 0.6f;
  style.CircleTessellationMaxError = 0.15f;
  apply_colors(style, theme);
}

// ---- what scenes ask for ------------------------------------------------------------------------

ImU32 color(Role role, float alpha) {
  const Context& context = Context::current();
  return faded(palette(context.look().theme, role), alpha * context.opacity());
}

ImU32 heat(float t) {
  const float clamped = std::isfinite(t) ? std::clamp(t, 0.0f, 1.0f) : 0.0f;
  // The end that means "little" lies near the panel's own brightness, but apart from it.
  const float place = theme() == ThemeKind::dark ? 0.18f + 0.82f * clamped : 0.86f * (1 - clamped);
  const float slot = place * static_cast<float>(kViridis.size() - 1);
  const auto index = std::min(static_cast<std::size_t>(slot), kViridis.size() - 2);
  return faded(mixed(kViridis[index], kViridis[index + 1], slot - static_cast<float>(index)),
               Context::current().opacity());
}

ImU32 readable_on(ImU32 background) {
  constexpr ImU32 kBlack = rgb(0x000000), kWhite = rgb(0xFFFFFF);
  return contrast(background, kBlack) >= contrast(background, kWhite) ? kBlack : kWhite;
}

}  // namespace tilestep::ui
