#include "scenes/ui/focus.hpp"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "scenes/ui/context.hpp"

namespace tilestep::ui {
namespace {

constexpr float kRing = 2;          ///< design pixels
constexpr int kFramesToScroll = 6;  ///< a panel out of sight lays itself out once it is in sight

bool pressed_mouse() {
  const ImGuiIO& io = ImGui::GetIO();
  return std::any_of(std::begin(io.MouseClicked), std::end(io.MouseClicked),
                     [](bool clicked) { return clicked; });
}

bool scrolls_by_hand(const ImGuiWindow& window) {
  return (window.Flags & ImGuiWindowFlags_NoScrollWithMouse) == 0 && window.ScrollMax.y > 0;
}

}  // namespace

int Focus::index_of(ImGuiID id) const {
  const auto at =
      std::find_if(order_.begin(), order_.end(), [id](const Stop& stop) { return stop.id == id; });
  return id == 0 || at == order_.end() ? -1 : static_cast<int>(at - order_.begin());
}

Focused Focus::control(std::string_view id, ImVec2 min, ImVec2 max, Takes takes) {
  if (drawing_ != layer_) return {};
  const ImGuiID own = ImGui::GetID(id.data(), id.data() + id.size());
  if (std::any_of(drawn_.begin(), drawn_.end(),
                  [own](const Stop& stop) { return stop.id == own; })) {
    return {};  // drawn twice: two stops of one name would catch the walk
  }
  drawn_.push_back({own, takes});
  Held& held = this->held();
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left) && ImGui::IsMouseHoveringRect(min, max) &&
      ImGui::IsWindowHovered(ImGuiHoveredFlags_AllowWhenBlockedByActiveItem)) {
    held.id = own;  // the next Tab goes on from here
  }
  if (held.id != own) return {};
  found_ = true;
  set_place(id, min, max);
  if (scrolls_ > 0) scroll_to(place_.window, min, max);
  if (holds_) return {held.shown};
  Focused said = std::exchange(said_, {});
  said.shown = held.shown;
  return said;
}

void Focus::set_place(std::string_view id, ImVec2 min, ImVec2 max) {
  ImGuiWindow* window = ImGui::GetCurrentWindow();
  place_ = {std::string(id), min, max, window->ClipRect.Min, window->ClipRect.Max, window};
}

void Focus::give(std::string_view id) {
  held().id = ImGui::GetID(id.data(), id.data() + id.size());
  scrolls_ = kFramesToScroll;
  found_ = true;  // it may have been drawn before
}

Focused Focus::list() {
  holds_ = listed_ = true;
  if (said_.down != 0) show();
  Focused said = std::exchange(said_, {});
  said.shown = held().shown;
  return said;
}

void Focus::ring(std::string_view id, ImVec2 min, ImVec2 max) {
  if (!held().shown) return;
  found_ = true;
  set_place(id, min, max);
}

void Focus::tip(std::string_view sentence) {
  if (!held().shown || !found_ || drawing_ != layer_ || sentence.empty()) return;
  if (place_.window != ImGui::GetCurrentWindowRead()) return;
  const ImVec2 middle((place_.min.x + place_.max.x) / 2, (place_.min.y + place_.max.y) / 2);
  const ImRect item(ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  if (item.Contains(middle) && tip_.empty()) tip_ = sentence;
}

void Focus::begin_frame(std::string layer) {
  layer_ = std::move(layer);
  if (layer_.empty()) {
    // What lay over the window has gone, and begins anew when it comes back.
    for (auto at = held_.begin(); at != held_.end();) {
      at = at->first.empty() ? std::next(at) : held_.erase(at);
    }
  }
  drawing_.clear();
  drawn_.clear();
  tip_.clear();
  found_ = listed_ = false;
  if (pressed_mouse()) {
    for (auto& [name, held] : held_) held.shown = false;
  }
  if (std::exchange(ends_typing_, false)) ImGui::ClearActiveID();
}

void Focus::end_frame() {
  holds_ = listed_;
  const int was = index_of(held().id);
  const std::vector<Stop> before = std::exchange(order_, drawn_);
  if (!found_) {
    if (was >= 0) {
      lost_at_ = 0;
      for (int i = 0; i < was; ++i) {
        lost_at_ = std::max(lost_at_, index_of(before[static_cast<std::size_t>(i)].id) + 1);
      }
    }
    held() = {};
    said_ = {};
  }
  if (!held().shown) return;
  if (scrolls_ > 0) request_redraw();
  const float out = px(1.5f * kRing);
  const ImVec2 min(std::max(place_.min.x, place_.clip_min.x) - out,
                   std::max(place_.min.y, place_.clip_min.y) - out);
  const ImVec2 max(std::min(place_.max.x, place_.clip_max.x) + out,
                   std::min(place_.max.y, place_.clip_max.y) + out);
  // On its way into sight.
  if (min.x + out >= max.x - out || min.y + out >= max.y - out) return;
  ImDrawList* list = ImGui::GetForegroundDrawList();
  list->AddRect(min, max, color(Role::accent), px(kControlCorner) + out, 0, px(kRing));
  MapEntry entry;
  entry.id = "focus";
  entry.label = place_.id;
  entry.min = entry.raw_min = {min.x + out, min.y + out};
  entry.max = entry.raw_max = {max.x - out, max.y - out};
  Context::current().add_part(std::move(entry));
  draw_tip();
}

void Focus::draw_tip() const {
  if (tip_.empty() || holds_) return;
  const ImVec2 screen = ImGui::GetIO().DisplaySize;
  const float pad = px(kGapSmall), wide = std::min(px(320), text_size(tip_, Font::note).x + 1);
  const ImVec2 text = wrapped_size(tip_, wide, Font::note);
  const ImVec2 size(std::ceil(text.x) + 3 * pad, std::ceil(text.y) + 2 * pad);
  ImVec2 at(place_.min.x, place_.max.y + pad);
  if (at.y + size.y > screen.y) at.y = place_.min.y - pad - size.y;
  at.x = std::clamp(at.x, 0.0f, std::max(0.0f, screen.x - size.x));
  ImGui::SetNextWindowPos({std::round(at.x), std::round(std::max(at.y, 0.0f))});
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, color(Role::panel));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, px(kControlCorner));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::Begin("focus_tip", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoInputs |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoNav |
                   ImGuiWindowFlags_NoFocusOnAppearing | ImGuiWindowFlags_Tooltip);
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
  const ImVec2 corner = ImGui::GetWindowPos();
  draw_wrapped({corner.x + 1.5f * pad, corner.y + pad}, tip_, wide, Font::note);
  ImGui::End();
}

/// Scrolls the windows around as far as it takes.
void Focus::scroll_to(ImGuiWindow* window, ImVec2 min, ImVec2 max) {
  const float room = px(kGapSmall);
  bool moved = false;
  for (; window != nullptr; window = window->ParentWindow) {
    const ImRect& seen = window->InnerRect;
    // What fills the window, as a stop that scrolls it, is in sight wherever it stands.
    const bool fills = min.y <= seen.Min.y && max.y >= seen.Max.y;
    if (scrolls_by_hand(*window) && !fills) {
      float by = 0;
      if (max.y + room > seen.Max.y) by = max.y + room - seen.Max.y;
      if (min.y - room - by < seen.Min.y) by = min.y - room - seen.Min.y;
      by = std::clamp(window->Scroll.y + by, 0.0f, window->ScrollMax.y) - window->Scroll.y;
      if (std::abs(by) >= 1) {
        ImGui::SetScrollY(window, window->Scroll.y + by);
        min.y -= by;
        max.y -= by;
        moved = true;
      }
    }
    moved = moved || window->SkipItems;
    if ((window->Flags & ImGuiWindowFlags_ChildWindow) == 0) break;
    min = ImClamp(min, seen.Min, seen.Max);
    max = ImClamp(max, seen.Min, seen.Max);
  }
  scrolls_ = moved ? scrolls_ - 1 : 0;
}

void Focus::move(int by) {
  if (holds_) {
    said_.closed = true;
    return;
  }
  if (order_.empty()) return;
  const int count = static_cast<int>(order_.size());
  const int now = index_of(held().id);
  int to = by > 0 ? 0 : count - 1;
  if (now >= 0) {
    to = now + by;
  } else if (lost_at_ >= 0) {
    to = by > 0 ? lost_at_ : lost_at_ - 1;
  }
  held() = {order_[static_cast<std::size_t>((to % count + count) % count)].id, true};
  said_ = {};
  scrolls_ = kFramesToScroll;
  if (ImGui::GetCurrentContext() != nullptr) ends_typing_ = ImGui::GetIO().WantTextInput;
}

bool Focus::is_on(std::string_view id) {
  return held().shown && held().id == ImGui::GetID(id.data(), id.data() + id.size());
}

bool Focus::shown() const {
  const auto held = held_.find(layer_);
  return held != held_.end() && held->second.shown && index_of(held->second.id) >= 0;
}

bool Focus::takes(FocusKey key) const {
  if (!shown()) return false;
  const int now = index_of(held_.at(layer_).id);
  const Takes takes = order_[static_cast<std::size_t>(now)].takes;
  switch (key) {
    case FocusKey::press:
    case FocusKey::escape:
      return true;
    case FocusKey::left:
    case FocusKey::right:
      return takes == Takes::across;
    case FocusKey::up:
    case FocusKey::down:
      return takes == Takes::down;
    default:
      return false;
  }
}

bool Focus::key(FocusKey key) {
  if (!holds_) {
    if (!takes(key)) return false;
    if (key == FocusKey::escape) {
      held().shown = false;
      return true;
    }
  }
  constexpr int kFar = 1 << 16;
  switch (key) {
    case FocusKey::press:
      said_.pressed = true;
      break;
    case FocusKey::escape:
      said_.closed = true;
      break;
    case FocusKey::left:
    case FocusKey::right:
      said_.across += key == FocusKey::right ? 1 : -1;
      break;
    case FocusKey::up:
    case FocusKey::down:
      said_.down += key == FocusKey::down ? 1 : -1;
      break;
    case FocusKey::home:
    case FocusKey::end:
      said_.down = key == FocusKey::end ? kFar : -kFar;
      break;
  }
  return true;
}

void scroll_stop(std::string_view id) {
  const ImGuiWindow* window = ImGui::GetCurrentWindowRead();
  Focus& all = Context::current().focus();
  // A panel that was never in sight knows of nothing in it: the walk comes by, and then it does.
  const bool unknown = window->SkipItems && window->ContentSize.y <= 0;
  if (window->ScrollMax.y <= 0 && !unknown && !all.is_on(id)) return;
  const Focused focus = all.control(id, window->InnerRect.Min, window->InnerRect.Max, Takes::down);
  if (focus.down == 0) return;
  const float by = px(56) * static_cast<float>(focus.down);
  ImGui::SetScrollY(std::clamp(window->Scroll.y + by, 0.0f, window->ScrollMax.y));
}

}  // namespace tilestep::ui
