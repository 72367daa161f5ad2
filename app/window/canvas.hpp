#pragma once

#include <imgui.h>

#include "app/shell/shell.hpp"

/// Shared by the window and the offscreen pictures.
namespace tilestep::app {

/// An ImGui context of its own, current until the end of the scope.
class ImGuiScope {
 public:
  ImGuiScope();
  ~ImGuiScope();
  ImGuiScope(const ImGuiScope&) = delete;
  ImGuiScope& operator=(const ImGuiScope&) = delete;

 private:
  ImGuiContext* own_;
  ImGuiContext* before_;
};

/// Real pixels a design pixel for a surface of `width` × `height` on a display whose content scale
/// is `content_scale`: large surfaces get larger type, in steps, so that a picture for a stage
/// reads as well as the design size of 1440×900.
float design_scale(int width, int height, float content_scale);

/// Processor time of this thread, in milliseconds: other load on the machine does not count.
double processor_ms();

/// Draws frames until the layout has settled: ImGui learns sizes and scroll ranges from the frame
/// before. Each takes `frame_seconds` of its clock.
void settle(Shell& shell, ImVec2 size, int frames, float frame_seconds = 1.0f / 60);

}  // namespace tilestep::app
