#include "app/window/gl_target.hpp"

#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/gl.h>
#include <GL/glext.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <string_view>

#include "kernels/base/simt/error.hpp"

#ifndef EGL_PLATFORM_SURFACELESS_MESA
#define EGL_PLATFORM_SURFACELESS_MESA 0x31DD
#endif
#ifndef EGL_PLATFORM_DEVICE_EXT
#define EGL_PLATFORM_DEVICE_EXT 0x313F
#endif

namespace tilestep::app {
namespace {

template <class Function>
Function egl_function(const char* name) {
  return reinterpret_cast<Function>(eglGetProcAddress(name));
}

/// The functions of OpenGL 3 that are used here: libGL need not export them.
struct Gl {
  PFNGLGENFRAMEBUFFERSPROC gen_framebuffers;
  PFNGLBINDFRAMEBUFFERPROC bind_framebuffer;
  PFNGLGENRENDERBUFFERSPROC gen_renderbuffers;
  PFNGLBINDRENDERBUFFERPROC bind_renderbuffer;
  PFNGLRENDERBUFFERSTORAGEPROC renderbuffer_storage;
  PFNGLFRAMEBUFFERRENDERBUFFERPROC framebuffer_renderbuffer;
  PFNGLCHECKFRAMEBUFFERSTATUSPROC check_framebuffer_status;
};

Gl load_gl() {
  return {egl_function<PFNGLGENFRAMEBUFFERSPROC>("glGenFramebuffers"),
          egl_function<PFNGLBINDFRAMEBUFFERPROC>("glBindFramebuffer"),
          egl_function<PFNGLGENRENDERBUFFERSPROC>("glGenRenderbuffers"),
          egl_function<PFNGLBINDRENDERBUFFERPROC>("glBindRenderbuffer"),
          egl_function<PFNGLRENDERBUFFERSTORAGEPROC>("glRenderbufferStorage"),
          egl_function<PFNGLFRAMEBUFFERRENDERBUFFERPROC>("glFramebufferRenderbuffer"),
          egl_function<PFNGLCHECKFRAMEBUFFERSTATUSPROC>("glCheckFramebufferStatus")};
}

/// One attempt to get a context.
struct Attempt {
  EGLDisplay display = EGL_NO_DISPLAY;
  EGLContext context = EGL_NO_CONTEXT;
  EGLSurface surface = EGL_NO_SURFACE;
};

bool has_word(const char* list, std::string_view word) {
  if (list == nullptr) return false;
  const std::string_view all(list);
  for (std::size_t at = all.find(word); at != all.npos; at = all.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || all[at - 1] == ' ') && (end == all.size() || all[end] == ' ')) return true;
  }
  return false;
}

void give_up(Attempt& attempt) {
  if (attempt.display == EGL_NO_DISPLAY) return;
  eglMakeCurrent(attempt.display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
  if (attempt.surface != EGL_NO_SURFACE) eglDestroySurface(attempt.display, attempt.surface);
  if (attempt.context != EGL_NO_CONTEXT) eglDestroyContext(attempt.display, attempt.context);
  eglTerminate(attempt.display);
  attempt = {};
}

/// Makes a context on `display` current; an empty sentence means that it worked.
std::string make_current(EGLDisplay display, Attempt& made) {
  made.display = display;
  EGLint major = 0, minor = 0;
  if (display == EGL_NO_DISPLAY || eglInitialize(display, &major, &minor) == EGL_FALSE) {
    made.display = EGL_NO_DISPLAY;
    return "no EGL display";
  }
  if (eglBindAPI(EGL_OPENGL_API) == EGL_FALSE) return "EGL knows no desktop OpenGL";
  const bool surfaceless =
      has_word(eglQueryString(display, EGL_EXTENSIONS), "EGL_KHR_surfaceless_context");
  const EGLint wanted[] = {EGL_SURFACE_TYPE, surfaceless ? EGL_DONT_CARE : EGL_PBUFFER_BIT,
                           EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT, EGL_NONE};
  EGLConfig config = nullptr;
  EGLint count = 0;
  if (eglChooseConfig(display, wanted, &config, 1, &count) == EGL_FALSE || count == 0) {
    return "EGL has no suitable configuration";
  }
  const EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION,
                            3,
                            EGL_CONTEXT_MINOR_VERSION,
                            3,
                            EGL_CONTEXT_OPENGL_PROFILE_MASK,
                            EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT,
                            EGL_NONE};
  made.context = eglCreateContext(display, config, EGL_NO_CONTEXT, version);
  if (made.context == EGL_NO_CONTEXT) return "the OpenGL driver has no version 3.3";
  if (!surfaceless) {
    const EGLint one_pixel[] = {EGL_WIDTH, 1, EGL_HEIGHT, 1, EGL_NONE};
    made.surface = eglCreatePbufferSurface(display, config, one_pixel);
  }
  if (eglMakeCurrent(display, made.surface, made.surface, made.context) == EGL_FALSE) {
    return "the OpenGL context cannot be used without a display";
  }
  return {};
}

/// The displays to try, in order.
std::vector<EGLDisplay> displays() {
  std::vector<EGLDisplay> all;
  const char* client = eglQueryString(EGL_NO_DISPLAY, EGL_EXTENSIONS);
  const auto platform_display =
      egl_function<PFNEGLGETPLATFORMDISPLAYEXTPROC>("eglGetPlatformDisplayEXT");
  if (platform_display != nullptr && has_word(client, "EGL_MESA_platform_surfaceless")) {
    all.push_back(platform_display(EGL_PLATFORM_SURFACELESS_MESA, nullptr, nullptr));
  }
  const auto query_devices = egl_function<PFNEGLQUERYDEVICESEXTPROC>("eglQueryDevicesEXT");
  if (platform_display != nullptr && query_devices != nullptr &&
      has_word(client, "EGL_EXT_platform_device")) {
    std::array<EGLDeviceEXT, 16> devices{};
    EGLint count = 0;
    query_devices(static_cast<EGLint>(devices.size()), devices.data(), &count);
    for (int i = 0; i < count; ++i) {
      all.push_back(
          platform_display(EGL_PLATFORM_DEVICE_EXT, devices[static_cast<std::size_t>(i)], nullptr));
    }
  }
  all.push_back(eglGetDisplay(EGL_DEFAULT_DISPLAY));
  return all;
}

}  // namespace

struct GlTarget::State {
  Attempt egl;
  Gl gl{};
  GLuint framebuffer = 0, colors = 0;
  int width = 0, height = 0;
  std::string renderer;
};

GlTarget::GlTarget() : state_(std::make_unique<State>()) {
  std::string reason = "no EGL display";
  for (EGLDisplay display : displays()) {
    reason = make_current(display, state_->egl);
    if (reason.empty()) break;
    give_up(state_->egl);
  }
  if (!reason.empty()) {
    throw Error(
        fmt::format("pictures cannot be drawn here: {}. Install a software renderer (Debian "
                    "and Ubuntu: libegl1 libgl1 libgl1-mesa-dri) or the GPU driver's EGL "
                    "library",
                    reason),
        ExitCode::unavailable);
  }
  state_->gl = load_gl();
  state_->renderer = reinterpret_cast<const char*>(glGetString(GL_RENDERER));
  state_->gl.gen_framebuffers(1, &state_->framebuffer);
  state_->gl.gen_renderbuffers(1, &state_->colors);
}

GlTarget::~GlTarget() {
  give_up(state_->egl);
}

const std::string& GlTarget::renderer() const {
  return state_->renderer;
}

void GlTarget::begin(int width, int height) {
  State& state = *state_;
  eglMakeCurrent(state.egl.display, state.egl.surface, state.egl.surface, state.egl.context);
  GLint most = 0;
  glGetIntegerv(GL_MAX_RENDERBUFFER_SIZE, &most);
  if (width < 1 || height < 1 || width > most || height > most) {
    throw Error(fmt::format("the picture size {}x{} is outside 1–{}", width, height, most));
  }
  const Gl& gl = state.gl;
  gl.bind_framebuffer(GL_FRAMEBUFFER, state.framebuffer);
  if (width != state.width || height != state.height) {
    gl.bind_renderbuffer(GL_RENDERBUFFER, state.colors);
    gl.renderbuffer_storage(GL_RENDERBUFFER, GL_RGBA8, width, height);
    gl.framebuffer_renderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER,
                                state.colors);
    if (gl.check_framebuffer_status(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE) {
      throw Error(fmt::format("{} cannot draw a picture of {}x{}", state.renderer, width, height),
                  ExitCode::unavailable);
    }
    state.width = width;
    state.height = height;
  }
  glViewport(0, 0, width, height);
  glDisable(GL_SCISSOR_TEST);
  glClearColor(0, 0, 0, 1);
  glClear(GL_COLOR_BUFFER_BIT);
}

std::vector<unsigned char> GlTarget::pixels() const {
  assert(state_->width > 0);
  const auto row = static_cast<std::size_t>(state_->width) * 3;
  const auto height = static_cast<std::size_t>(state_->height);
  std::vector<unsigned char> rgb(row * height);
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glReadPixels(0, 0, state_->width, state_->height, GL_RGB, GL_UNSIGNED_BYTE, rgb.data());
  // OpenGL's first row is the lowest.
  for (std::size_t y = 0; y < height / 2; ++y) {
    std::swap_ranges(rgb.begin() + static_cast<std::ptrdiff_t>(y * row),
                     rgb.begin() + static_cast<std::ptrdiff_t>((y + 1) * row),
                     rgb.begin() + static_cast<std::ptrdiff_t>((height - 1 - y) * row));
  }
  return rgb;
}

}  // namespace tilestep::app
