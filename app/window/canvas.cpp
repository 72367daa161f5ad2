#include "app/window/canvas.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "app/window/window.hpp"

namespace tilestep::app {

ImGuiScope::ImGuiScope() : own_(nullptr), before_(ImGui::GetCurrentContext()) {
  IMGUI_CHECKVERSION();
  own_ = ImGui::CreateContext();
  ImGui::SetCurrentContext(own_);
  ImGui::GetIO().IniFilename = nullptr;
  ImGui::GetIO().LogFilename = nullptr;
}
ImGuiScope::~ImGuiScope() {
  ImGui::DestroyContext(own_);
  ImGui::SetCurrentContext(before_);
}

float design_scale(int width, int height, float content_scale) {
  const float scale = std::max(content_scale, 0.5f);
  const float room =
      std::min(static_cast<float>(width) / scale / 1440, static_cast<float>(height) / scale / 900);
  // Most of the spare room goes to the type, the rest to the picture; quarter steps keep the glyphs
  // from being built anew at each pixel of a resize.
  const float growth = std::pow(std::max(room, 1.0f), 0.8f);
  return scale * std::min(std::round(growth * 4) / 4, 2.0f);
}

void settle(Shell& shell, ImVec2 size, int frames) {
  for (int frame = 0; frame < frames; ++frame) {
    ImGui::GetIO().DisplaySize = size;
    ImGui::GetIO().DeltaTime = 1.0f / 60;
    ImGui::NewFrame();
    shell.draw(size);
    ImGui::Render();
  }
}

double frame_cost_ms(const ShellOptions& options, int width, int height, int frames) {
  const ImGuiScope imgui;
  const auto lab = make_inline_lab();
  ShellOptions still = options;
  still.still = true;
  Shell shell(*lab, still);
  while (shell.update()) {
  }
  shell.prepare_fonts(design_scale(width, height, 1));
  unsigned char* pixels = nullptr;
  int atlas_width = 0, atlas_height = 0;
  ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&pixels, &atlas_width, &atlas_height);
  const ImVec2 size(static_cast<float>(width), static_cast<float>(height));
  settle(shell, size, 4);
  std::vector<double> costs_ms;
  for (int frame = 0; frame < std::max(frames, 1); ++frame) {
    const auto start = std::chrono::steady_clock::now();
    settle(shell, size, 1);
    const auto cost = std::chrono::steady_clock::now() - start;
    costs_ms.push_back(std::chrono::duration<double, std::milli>(cost).count());
  }
  std::nth_element(costs_ms.begin(), costs_ms.begin() + costs_ms.size() / 2, costs_ms.end());
  return costs_ms[costs_ms.size() / 2];
}

}  // namespace tilestep::app
