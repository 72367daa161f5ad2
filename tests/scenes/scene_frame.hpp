#pragma once

#include <imgui.h>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kernels/base/simt/sanitizers.hpp"
#include "scenes/stage/scene_player.hpp"
#include "scenes/ui/context.hpp"
#include "scenes/ui/ui.hpp"
#include "tests/catch.hpp"

namespace tilestep::tests {

/// What is on screen, by id.
using Parts = std::map<std::string, ui::MapEntry>;

inline ImVec2 center(const ui::MapEntry& part) {
  return {(part.min.x + part.max.x) / 2, (part.min.y + part.max.y) / 2};
}

/// Up to rounding to whole pixels.
inline bool within(const ui::MapEntry& inner, const ui::MapEntry& outer, float slack = 1) {
  return inner.min.x >= outer.min.x - slack && inner.max.x <= outer.max.x + slack &&
         inner.min.y >= outer.min.y - slack && inner.max.y <= outer.max.y + slack;
}

/// A picture of ordinary size, a small one, and a large one.
inline const ImVec2 kPictureSizes[] = {{860, 480}, {560, 240}, {1900, 1000}};
/// Sweeps go through all sizes, except under a sanitizer: memory is no other at the third.
#if defined(TILESTEP_ASAN) || defined(TILESTEP_TSAN)
inline const std::span<const ImVec2> kSweptSizes(kPictureSizes, 2);
#else
inline const std::span<const ImVec2> kSweptSizes(kPictureSizes);
#endif

/// The scene of a lesson. Throws Error if there is none.
inline std::unique_ptr<scenes::Scene> scene_of(std::string_view lesson) {
  for (auto& scene : scenes::make_scenes()) {
    if (scene->lesson() == lesson) return std::move(scene);
  }
  throw Error("no scene for " + std::string(lesson));
}

/// A window's player of that scene.
inline scenes::ScenePlayer player_of(std::string_view lesson) {
  return scenes::ScenePlayer(scene_of(lesson));
}

/// Draws frames without a display: an ImGui context whose draw lists nobody renders.
class SceneFrame {
 public:
  SceneFrame() : imgui_(ImGui::CreateContext()) {
    ImGui::SetCurrentContext(imgui_);
    ImGui::GetIO().IniFilename = nullptr;
    // As the window's renderer has it: a picture may have more than 65,536 vertices.
    ImGui::GetIO().BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
    context_.look().still = true;
  }
  ~SceneFrame() { ImGui::DestroyContext(imgui_); }
  SceneFrame(const SceneFrame&) = delete;
  SceneFrame& operator=(const SceneFrame&) = delete;

  ui::Look& look() { return context_.look(); }
  ui::Context& context() { return context_; }

  /// Draws one frame: `draw` fills a window of `size`.
  void show(ImVec2 size, const std::function<void()>& draw,
            ImGuiWindowFlags flags = ImGuiWindowFlags_NoScrollWithMouse) {
    ImGui::SetCurrentContext(imgui_);
    ImGuiIO& io = ImGui::GetIO();
    io.DisplaySize = size;
    io.DeltaTime = 1.0f / 60;
    const ui::Context::Current current(context_);
    if (context_.prepare_fonts(*io.Fonts)) {
      unsigned char* pixels = nullptr;
      int width = 0;
      int height = 0;
      io.Fonts->GetTexDataAsRGBA32(&pixels, &width, &height);
    }
    ImGui::NewFrame();
    context_.begin_frame();
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize(size);
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(0, 0));
    ImGui::Begin("picture", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoSavedSettings | flags);
    draw();
    ImGui::End();
    ImGui::PopStyleVar();
    ImGui::Render();
  }

  /// The same. Returns what is on screen, by id.
  Parts draw(ImVec2 size, const std::function<void()>& draw,
             ImGuiWindowFlags flags = ImGuiWindowFlags_NoScrollWithMouse) {
    show(size, draw, flags);
    Parts parts;
    for (const ui::MapEntry& entry : context_.map()) parts[entry.id] = entry;
    return parts;
  }

  /// A panel whose content may be longer than it: the frame after the one that measured it.
  Parts draw_scrolling(ImVec2 size, const std::function<void()>& draw) {
    show(size, draw, 0);
    return this->draw(size, draw, 0);
  }

  /// Presses and releases the left button on a part that `draw` draws. Returns what is on screen
  /// then; the pointer stays where it is.
  Parts click(const std::string& id, ImVec2 size, const std::function<void()>& draw) {
    const Parts parts = this->draw(size, draw);
    REQUIRE(parts.count(id) == 1);
    ImGui::GetIO().MousePos = center(parts.at(id));
    for (const bool down : {false, true, false}) {
      ImGui::GetIO().MouseDown[0] = down;
      show(size, draw);
    }
    return this->draw(size, draw);
  }

 private:
  ImGuiContext* imgui_;
  ui::Context context_;
};

}  // namespace tilestep::tests
