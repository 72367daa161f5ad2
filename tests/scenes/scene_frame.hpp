#pragma once

#include <imgui.h>

#include <functional>
#include <map>
#include <string>

#include "scenes/ui/context.hpp"
#include "scenes/ui/ui.hpp"

namespace tilestep::tests {

/// Draws frames without a display: an ImGui context whose draw lists nobody renders.
class SceneFrame {
 public:
  SceneFrame() : imgui_(ImGui::CreateContext()) {
    ImGui::SetCurrentContext(imgui_);
    ImGui::GetIO().IniFilename = nullptr;
    context_.look().still = true;
  }
  ~SceneFrame() { ImGui::DestroyContext(imgui_); }
  SceneFrame(const SceneFrame&) = delete;
  SceneFrame& operator=(const SceneFrame&) = delete;

  ui::Look& look() { return context_.look(); }

  /// Draws one frame: `draw` fills a window of `size`. Returns what is on screen, by id.
  std::map<std::string, ui::MapEntry> draw(ImVec2 size, const std::function<void()>& draw) {
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
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoSavedSettings);
    draw();
    ImGui::End();
    ImGui::PopStyleVar();
    ImGui::Render();
    std::map<std::string, ui::MapEntry> parts;
    for (const ui::MapEntry& entry : context_.map()) parts[entry.id] = entry;
    return parts;
  }

 private:
  ImGuiContext* imgui_;
  ui::Context context_;
};

}  // namespace tilestep::tests
