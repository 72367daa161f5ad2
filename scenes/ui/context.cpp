#include "scenes/ui/context.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace tilestep::ui {
namespace {

Context* current_context = nullptr;

}  // namespace

Context::Current::Current(Context& context) : before_(current_context) {
  current_context = &context;
}
Context::Current::~Current() {
  current_context = before_;
}

Context& Context::current() {
  assert(current_context != nullptr && "ui is used outside a frame");
  return *current_context;
}

float Context::scale() const {
  return look_.display_scale * look_.text_scale * (look_.presenter ? kPresenterScale : 1.0f);
}

bool Context::prepare_fonts(ImFontAtlas& atlas) {
  return fonts_.build(atlas, scale());
}

void Context::begin_frame() {
  map_.clear();
  redraw_ = false;
  opacity_ = 1;
  apply_style(look_.theme, scale());
}

float Context::animation_seconds() const {
  // A window that slept must not jump over a whole animation in one frame.
  return look_.still ? 0.0f : std::min(ImGui::GetIO().DeltaTime, few_frames_ ? 0.5f : 0.05f);
}

float px(float design_pixels) {
  return design_pixels * Context::current().scale();
}
ImFont* font(Font font) {
  return Context::current().fonts().font(font);
}
float font_pixels(Font font) {
  return Context::current().fonts().pixels(font);
}
ThemeKind theme() {
  return Context::current().look().theme;
}
bool presenter() {
  return Context::current().look().presenter;
}
float animation_seconds() {
  return Context::current().animation_seconds();
}
void request_redraw() {
  Context::current().request_redraw();
}

float animate(std::string_view id, float target, float seconds) {
  Context& context = Context::current();
  struct Moving {
    bool started = false;
    float value = 0;
  };
  Moving& moving = context.kept<Moving>(kept_name("animate", id));
  if (!moving.started || context.look().still || seconds <= 0) {
    moving = {true, target};
    return target;
  }
  if (moving.value == target) return target;
  // Exponential approach: 95 % of the way after `seconds`.
  const float share = 1 - std::exp(-3.0f * context.animation_seconds() / seconds);
  moving.value += (target - moving.value) * share;
  const float near = 0.002f * std::max(1.0f, std::abs(target));
  if (std::abs(target - moving.value) < near) moving.value = target;
  if (moving.value != target) context.request_redraw();
  return moving.value;
}

std::string kept_name(std::string_view kind, std::string_view id) {
  std::string name(kind);
  name += '/';
  name += std::to_string(ImGui::GetID(id.data(), id.data() + id.size()));
  return name;
}

FontScope::FontScope(Font font) {
#if IMGUI_VERSION_NUM >= 19200
  ImGui::PushFont(ui::font(font), font_pixels(font));
#else
  ImGui::PushFont(ui::font(font));
#endif
}
FontScope::~FontScope() {
  ImGui::PopFont();
}

void map(std::string_view id, std::string_view label, std::string_view value, ImVec2 min,
         ImVec2 max) {
  // Only what can be seen: a part that is scrolled away has no place on the screen.
  const ImVec2 clip_min = ImGui::GetWindowDrawList()->GetClipRectMin();
  const ImVec2 clip_max = ImGui::GetWindowDrawList()->GetClipRectMax();
  const ImVec2 seen_min(std::max(min.x, clip_min.x), std::max(min.y, clip_min.y));
  const ImVec2 seen_max(std::min(max.x, clip_max.x), std::min(max.y, clip_max.y));
  if (seen_min.x >= seen_max.x || seen_min.y >= seen_max.y) return;
  const ImVec2 density = ImGui::GetIO().DisplayFramebufferScale;
  Context::current().map().push_back({std::string(id), std::string(label), std::string(value),
                                      ImVec2(seen_min.x * density.x, seen_min.y * density.y),
                                      ImVec2(seen_max.x * density.x, seen_max.y * density.y)});
}

const std::vector<MapEntry>& map_entries() {
  return Context::current().map();
}

}  // namespace tilestep::ui
