#pragma once

#include <functional>

namespace tilestep::app {

/// Under X11 a display that goes away ends the program inside of Xlib, with exit code 1, as if a check had
/// failed. From now on `last` is called then, which must not ask the display for anything, a sentence is said,
/// and the program ends with ExitCode::unavailable. To be called after glfwInit.
void expect_lost_display(std::function<void()> last);

}  // namespace tilestep::app
