#pragma once

#include <string>

#include "app/shell/shell.hpp"

/// What the window saves, copies and opens for its user. All of it says on screen what came of it, and throws
/// nothing.
namespace tilestep::app {

/// How the window's own frame is drawn: what a saved picture is like.
struct WindowLook {
  int width = 1440, height = 900;  ///< real pixels
  float scale = 1;                 ///< real pixels a design pixel
};

/// Saves into documents_folder(), or copies to ImGui's clipboard. No OpenGL context may be current: a picture
/// gets one of its own.
void keep(Shell& shell, const KeepRequest& request, const WindowLook& look);
/// Opens a file that was dropped on the window.
void open_capsule(Shell& shell, const std::string& path);

}  // namespace tilestep::app
