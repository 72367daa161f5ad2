#include "tests/lesson_contract/contrast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "scenes/ui/theme.hpp"

namespace tilestep::contract {
namespace {

/// A filled triangle of a frame; text has other texture coordinates, and is none.
struct Triangle {
  ImVec2 a, b, c, clip_min, clip_max;
  ImU32 color = 0;
  const ImDrawList* list = nullptr;
  int drawn = 0;  ///< after so many indices of its list

  bool holds(ImVec2 p) const {
    if (p.x < clip_min.x || p.x >= clip_max.x || p.y < clip_min.y || p.y >= clip_max.y) {
      return false;
    }
    // One without an area has all points of its line on no side of it.
    if (p.x < std::min({a.x, b.x, c.x}) || p.x > std::max({a.x, b.x, c.x}) ||
        p.y < std::min({a.y, b.y, c.y}) || p.y > std::max({a.y, b.y, c.y})) {
      return false;
    }
    const auto side = [p](ImVec2 u, ImVec2 v) {
      return (v.x - u.x) * (p.y - u.y) - (v.y - u.y) * (p.x - u.x);
    };
    const float x = side(a, b), y = side(b, c), z = side(c, a);
    return (x >= 0 && y >= 0 && z >= 0) || (x <= 0 && y <= 0 && z <= 0);
  }
};

float alpha_of(ImU32 color) {
  return static_cast<float>(color >> IM_COL32_A_SHIFT & 255u) / 255;
}
ImU32 over(ImU32 below, ImU32 color) {
  return ui::mixed(below, color | IM_COL32_A_MASK, alpha_of(color)) | IM_COL32_A_MASK;
}

/// All that is filled in a frame, in the order of drawing, found by height.
class Fills {
 public:
  explicit Fills(const ImDrawData& data)
      : bands_(static_cast<std::size_t>(data.DisplaySize.y / kBand) + 1) {
    const ImVec2 white = ImGui::GetIO().Fonts->TexUvWhitePixel;
    for (int n = 0; n < data.CmdListsCount; ++n) {
      const ImDrawList& list = *data.CmdLists[n];
      lists_.push_back(&list);
      for (const ImDrawCmd& command : list.CmdBuffer) {
        for (unsigned i = 0; i + 2 < command.ElemCount; i += 3) {
          add(list, command, static_cast<int>(command.IdxOffset + i), white);
        }
      }
    }
  }

  /// What a text was drawn on at a point. Nothing: something lies over it.
  std::optional<ImU32> ground(const ui::DrawnText& text, ImVec2 at) const {
    ImU32 color = IM_COL32_BLACK;
    const auto own = std::find(lists_.begin(), lists_.end(), text.list);
    const auto band = static_cast<std::size_t>(std::max(at.y, 0.0f) / kBand);
    if (own == lists_.end() || band >= bands_.size()) return std::nullopt;
    const Triangle* before = nullptr;
    for (const Triangle& each : bands_[band]) {
      if (!each.holds(at)) continue;
      // On the diagonal of a rectangle both its halves hold it.
      const bool other_half = before != nullptr && before->list == each.list &&
                              before->drawn + 3 == each.drawn && before->color == each.color;
      before = &each;
      if (other_half) continue;
      const auto list = std::find(lists_.begin(), lists_.end(), each.list);
      const bool later = list > own || (list == own && each.drawn >= text.drawn);
      if (later && alpha_of(each.color) > 0.3f) return std::nullopt;
      if (!later) color = over(color, each.color);
    }
    return color;
  }

 private:
  static constexpr float kBand = 16;

  void add(const ImDrawList& list, const ImDrawCmd& command, int index, ImVec2 white) {
    const ImDrawVert* corners[3];
    for (int k = 0; k < 3; ++k) {
      corners[k] = &list.VtxBuffer[static_cast<int>(command.VtxOffset) + list.IdxBuffer[index + k]];
      if (corners[k]->uv.x != white.x || corners[k]->uv.y != white.y) return;
    }
    const auto [a, b, c] = std::tuple(corners[0]->pos, corners[1]->pos, corners[2]->pos);
    // The fringe that smooths an edge is none of the ground.
    if (corners[0]->col != corners[1]->col || corners[1]->col != corners[2]->col) return;
    const Triangle made{a,
                        b,
                        c,
                        {command.ClipRect.x, command.ClipRect.y},
                        {command.ClipRect.z, command.ClipRect.w},
                        corners[0]->col,
                        &list,
                        index};
    const float last = static_cast<float>(bands_.size()) - 1;
    const auto band = [last](float y) {
      return static_cast<std::size_t>(std::clamp(std::floor(y / kBand), 0.0f, last));
    };
    for (std::size_t k = band(std::min({a.y, b.y, c.y})); k <= band(std::max({a.y, b.y, c.y}));
         ++k) {
      bands_[k].push_back(made);
    }
  }

  std::vector<const ImDrawList*> lists_;
  std::vector<std::vector<Triangle>> bands_;
};

bool holds(const std::vector<ui::MapEntry>& parts, ImVec2 at) {
  return std::any_of(parts.begin(), parts.end(), [at](const ui::MapEntry& part) {
    return at.x >= part.min.x && at.x < part.max.x && at.y >= part.min.y && at.y < part.max.y;
  });
}

}  // namespace

std::string contrast_faults(ui::Context& context, int& checked) {
  constexpr float kLeast = 4.5f;
  const Fills fills(*ImGui::GetDrawData());
  const float bottom = ImGui::GetDrawData()->DisplaySize.y;
  std::vector<ui::MapEntry> disabled;
  std::copy_if(context.map().begin(), context.map().end(), std::back_inserter(disabled),
               [](const ui::MapEntry& part) { return part.value == "disabled"; });
  std::set<std::string> faults;
  for (const ui::DrawnText& text : context.texts()) {
    const float y = (text.min.y + text.max.y) / 2;
    float least = 21;
    bool seen = false;
    ImU32 worst = 0;
    for (const float share : {0.1f, 0.5f, 0.9f}) {
      const ImVec2 at(text.min.x + share * (text.max.x - text.min.x), y);
      const bool clipped = at.x < text.clip_min.x || at.x >= text.clip_max.x ||
                           at.y < text.clip_min.y || at.y >= std::min(text.clip_max.y, bottom);
      if (clipped || holds(disabled, at)) continue;
      const auto ground = fills.ground(text, at);
      if (!ground) continue;
      seen = true;
      const float ratio = ui::contrast(over(*ground, text.color), *ground);
      if (ratio < least) worst = *ground;
      least = std::min(least, ratio);
    }
    checked += seen ? 1 : 0;
    if (least >= kLeast) continue;
    const auto hex = [](ImU32 color) {
      return fmt::format("{:02X}{:02X}{:02X}", color >> IM_COL32_R_SHIFT & 255u,
                         color >> IM_COL32_G_SHIFT & 255u, color >> IM_COL32_B_SHIFT & 255u);
    };
    faults.insert(fmt::format("'{}' ({:.0f}, {:.0f}) has {:.2f}:1, {} at {:.0f} % on {}", text.text,
                              text.min.x, text.min.y, least, hex(text.color),
                              100 * alpha_of(text.color), hex(worst)));
  }
  std::string all;
  for (const std::string& fault : faults) all += fault + "\n";
  return all;
}

}  // namespace tilestep::contract
