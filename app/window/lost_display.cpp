#include "app/window/lost_display.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "kernels/base/simt/error.hpp"

namespace tilestep::app {
namespace {

std::function<void()>& last_act() {
  static std::function<void()> act;
  return act;
}

/// Xlib ends the program when this returns.
int end(void*) {
  if (const auto act = std::exchange(last_act(), nullptr)) act();
  std::fputs("tilestep: the display is gone, and the window with it\n", stderr);
  std::_Exit(static_cast<int>(ExitCode::unavailable));
}

}  // namespace

void expect_lost_display(std::function<void()> last) {
  last_act() = std::move(last);
  // GLFW loads Xlib itself, where it uses X11 at all: nothing of it is linked.
  void* xlib = ::dlopen("libX11.so.6", RTLD_NOW | RTLD_NOLOAD);
  if (xlib == nullptr) return;
  using Handler = int (*)(void*);
  using SetHandler = Handler (*)(Handler);
  if (const auto set = reinterpret_cast<SetHandler>(::dlsym(xlib, "XSetIOErrorHandler"))) set(end);
}

}  // namespace tilestep::app
