#include "scenes/ui/context.hpp"

#include <imgui_internal.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace tilestep::ui {
namespace {

Context* current_context = nullptr;

/// Dear ImGui up to 1.87 divides by 0 for a rectangle whose corners come out with a radius below 1e-6: one of
/// which a side is just above two pixels (ocornut/imgui issue 5249).
void mend_arcs() {
#if IMGUI_VERSION_NUM < 18800
  ImGui::GetDrawListSharedData()->CircleSegmentCounts[0] = IM_DRAWLIST_ARCFAST_SAMPLE_MAX;
#endif
}

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
  const float wanted = look_.text_scale * (look_.presenter ? kPresenterScale : 1.0f);
  return look_.display_scale * std::min(wanted, look_.most_scale);
}

bool Context::prepare_fonts(ImFontAtlas& atlas) {
  return fonts_.build(atlas, scale());
}

void Context::begin_frame() {
  map_.clear();
  later_.clear();
  lost_.clear();
  texts_.clear();
  redraw_ = false;
  opacity_ = 1;
  apply_style(look_.theme, scale());
  mend_arcs();
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
  if (!moving.started || context.look().still || context.look().calm || seconds <= 0) {
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

namespace {

/// One direction of a window and of the windows around it.
struct Reach {
  float from, to;  ///< what scrolling can bring into sight
};

Reach reach(float seen_from, float seen_to, float scroll, float most) {
  return {seen_from - scroll, seen_to + most - scroll};
}

}  // namespace

namespace {

bool reached_in(const ImGuiWindow* window, ImVec2 min, ImVec2 max) {
  constexpr float kSlack = 1;  // rounding to whole pixels
  for (; window != nullptr; window = window->ParentWindow) {
    const ImRect& seen = window->InnerRect;
    // Out of sight as a whole it lays nothing out, and does not know how far it scrolls.
    const bool unknown = window->SkipItems;
    const bool scrolls = (window->Flags & ImGuiWindowFlags_NoScrollWithMouse) == 0;
    const ImVec2 most = scrolls ? window->ScrollMax : ImVec2(0, 0);
    const Reach x = reach(seen.Min.x, seen.Max.x, scrolls ? window->Scroll.x : 0, most.x);
    const Reach y = reach(seen.Min.y, seen.Max.y, scrolls ? window->Scroll.y : 0, most.y);
    if (!unknown && (min.x < x.from - kSlack || max.x > x.to + kSlack || min.y < y.from - kSlack ||
                     max.y > y.to + kSlack)) {
      return false;
    }
    if ((window->Flags & ImGuiWindowFlags_ChildWindow) == 0) break;
    // Scrolled into sight, it lies somewhere in the window; the window itself must be in sight.
    min = ImClamp(min, seen.Min, seen.Max);
    max = ImClamp(max, seen.Min, seen.Max);
  }
  return true;
}

/// Where a part of the map is drawn.
struct Ground {
  const ImGuiWindow* window;
  ImVec2 clip_min, clip_max;
};
Ground ground() {
  const ImDrawList* list = ImGui::GetWindowDrawList();
  return {ImGui::GetCurrentWindowRead(), list->GetClipRectMin(), list->GetClipRectMax()};
}

/// A part that is scrolled away has no place on the screen; one that cannot be scrolled to is lost.
void add_part(std::vector<MapEntry>& seen, std::vector<MapEntry>& lost, const Ground& on,
              MapEntry part, ImVec2 min, ImVec2 max, ImVec2 least) {
  const ImVec2 density = ImGui::GetIO().DisplayFramebufferScale;
  const auto pixels = [density](ImVec2 at) { return ImVec2(at.x * density.x, at.y * density.y); };
  part.min = pixels({std::max(min.x, on.clip_min.x), std::max(min.y, on.clip_min.y)});
  part.max = pixels({std::min(max.x, on.clip_max.x), std::min(max.y, on.clip_max.y)});
  part.raw_min = pixels(min);
  part.raw_max = pixels(max);
  part.least = pixels(least);
  part.cut = !reached_in(on.window, min, max);
  const bool in_sight = part.min.x < part.max.x && part.min.y < part.max.y;
  if (in_sight) {
    seen.push_back(std::move(part));
  } else if (part.cut) {
    lost.push_back(std::move(part));
  }
}

MapEntry named_part(std::string_view id, std::string_view label, std::string_view value) {
  MapEntry part;
  part.id = id;
  part.label = label;
  part.value = value;
  return part;
}

}  // namespace

bool can_be_reached(ImVec2 min, ImVec2 max) {
  return reached_in(ImGui::GetCurrentWindowRead(), min, max);
}

void map(std::string_view id, std::string_view label, std::string_view value, ImVec2 min,
         ImVec2 max, ImVec2 least) {
  Context::current().add_part(named_part(id, label, value), min, max, least);
}

void Context::add_part(MapEntry part, ImVec2 min, ImVec2 max, ImVec2 least) {
  ui::add_part(map_, lost_, ground(), std::move(part), min, max, least);
}

void Context::map_later(std::function<void(const AddPart&)> parts) {
  later_.push_back([this, on = ground(), at = map_.size(), parts = std::move(parts)] {
    std::vector<MapEntry> seen;
    parts([&](std::string_view id, std::string_view label, std::string_view value, ImVec2 min,
              ImVec2 max, ImVec2 least) {
      ui::add_part(seen, lost_, on, named_part(id, label, value), min, max, least);
    });
    map_.insert(map_.begin() + static_cast<std::ptrdiff_t>(at), seen.begin(), seen.end());
  });
}

void Context::add_later_parts() {
  // From the last on, since each stands at the place that it had when it was announced.
  const auto later = std::exchange(later_, {});
  for (auto add = later.rbegin(); add != later.rend(); ++add) (*add)();
}

std::vector<MapEntry>& Context::map() {
  add_later_parts();
  return map_;
}

std::vector<MapEntry>& Context::lost() {
  add_later_parts();
  return lost_;
}

const std::vector<MapEntry>& map_entries() {
  return Context::current().map();
}

}  // namespace tilestep::ui
