#include "app/window/window.hpp"

#include <GLFW/glfw3.h>
#include <fmt/format.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_opengl3.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <optional>

#include "app/file.hpp"
#include "app/shell/profiling.hpp"
#include "app/window/canvas.hpp"
#include "app/window/end_signals.hpp"
#include "app/window/frame_pace.hpp"
#include "app/window/keeper.hpp"
#include "app/window/lost_display.hpp"
#include "app/window/watch.hpp"
#include "app/window/window_keys.hpp"
#include "app/worker/lab_set.hpp"

namespace tilestep::app {
namespace {

constexpr int kMinWidth = 1024, kMinHeight = 640;

std::string glfw_reason() {
  const char* description = nullptr;
  glfwGetError(&description);
  return description == nullptr ? "GLFW cannot open one" : description;
}

class GlfwScope {
 public:
  GlfwScope() {
    if (glfwInit() == GLFW_FALSE) {
      throw Error(fmt::format("no display: {}. Without one, use `tilestep site --out DIR` for "
                              "the course in a browser",
                              glfw_reason()),
                  ExitCode::unavailable);
    }
  }
  ~GlfwScope() { glfwTerminate(); }
  GlfwScope(const GlfwScope&) = delete;
  GlfwScope& operator=(const GlfwScope&) = delete;
};

/// The GLFW window, with the shell that its events go to.
class Window {
 public:
  explicit Window(const WindowOptions& options);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  void attach(Shell& shell) { shell_ = &shell; }
  /// The settings are kept when it loses the focus, and at the end.
  void keep_settings(SettingsFile* file) { settings_ = file; }
  /// Until it is closed, or a signal ends it.
  void run(const EndSignals& signals);

 private:
  static Window& of(GLFWwindow* window) {
    return *static_cast<Window*>(glfwGetWindowUserPointer(window));
  }
  void set_callbacks();
  Motion motion() const;
  void wait();
  void draw();
  void write_map();
  void toggle_full_screen();
  float content_scale() const;
  void save_settings();
  void keep_what_was_asked();
  bool let_watch_go_on();

  GLFWwindow* window_ = nullptr;
  Shell* shell_ = nullptr;
  SettingsFile* settings_ = nullptr;
  FramePace pace_;
  std::optional<Watch> watch_ = Watch::asked_for();
  int restore_[4] = {0, 0, 0, 0};  ///< x, y, width, height before full screen
  int width_, height_;             ///< as it was drawn last; before, as the settings had it
  std::string map_path_;
  int frames_ = 0;
  std::string title_;
};

Window::Window(const WindowOptions& options) : width_(options.width), height_(options.height) {
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  glfwWindowHint(GLFW_OPENGL_FORWARD_COMPAT, GLFW_TRUE);
  glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_TRUE);
  int width = std::max(options.width, kMinWidth), height = std::max(options.height, kMinHeight);
  if (GLFWmonitor* monitor = glfwGetPrimaryMonitor()) {
    int x = 0, y = 0, most_width = 0, most_height = 0;
    glfwGetMonitorWorkarea(monitor, &x, &y, &most_width, &most_height);
    if (most_width > 0 && most_height > 0) {
      width = std::min(width, most_width);
      height = std::min(height, most_height);
    }
  }
  window_ = glfwCreateWindow(width, height, "tilestep", nullptr, nullptr);
  if (window_ == nullptr) {
    throw Error(fmt::format("no display: {}. The window needs OpenGL 3.3; without it, use "
                            "`tilestep site --out DIR` for the course in a browser",
                            glfw_reason()),
                ExitCode::unavailable);
  }
  glfwSetWindowSizeLimits(window_, std::min(kMinWidth, width), std::min(kMinHeight, height),
                          GLFW_DONT_CARE, GLFW_DONT_CARE);
  glfwSetWindowUserPointer(window_, this);
  glfwMakeContextCurrent(window_);
  glfwSwapInterval(1);
  set_callbacks();  // ImGui's own callbacks, installed next, call these
  ImGui_ImplGlfw_InitForOpenGL(window_, true);
  ImGui_ImplOpenGL3_Init("#version 330 core");
  if (const char* path = std::getenv("TILESTEP_UI_MAP")) map_path_ = path;
}

Window::~Window() {
  if (window_ == nullptr) return;
  ImGui_ImplOpenGL3_Shutdown();
  ImGui_ImplGlfw_Shutdown();
  glfwDestroyWindow(window_);
}

void Window::set_callbacks() {
  glfwSetKeyCallback(window_, [](GLFWwindow* window, int key, int, int action, int modifiers) {
    of(window).pace_.input();
    if (action == GLFW_RELEASE) return;
    if (action == GLFW_REPEAT && (key == GLFW_KEY_F11 || key == GLFW_KEY_ESCAPE)) return;
    if ((modifiers & GLFW_MOD_ALT) == 0) {
      const auto press = editor_press_of(key, modifiers);
      if (press && of(window).shell_->press(*press)) return;
    }
    if ((modifiers & (GLFW_MOD_CONTROL | GLFW_MOD_SUPER)) != 0) {
      const auto command = command_of(key);
      if (command && action == GLFW_PRESS) {
        of(window).shell_->key(*command, (modifiers & GLFW_MOD_SHIFT) != 0);
      }
      return;
    }
    if ((modifiers & GLFW_MOD_ALT) != 0 && key == GLFW_KEY_TAB) return;  // the desktop's
    if (const auto known = key_of(key)) {
      of(window).shell_->key(*known, (modifiers & GLFW_MOD_SHIFT) != 0);
    }
  });
  glfwSetCharCallback(window_, [](GLFWwindow* window, unsigned character) {
    of(window).pace_.input();
    if (of(window).shell_->type(character)) return;
    if (const auto known = key_of_character(character))
      of(window).shell_->key(*known, character >= 'A' && character <= 'Z');
  });
  glfwSetCursorPosCallback(window_,
                           [](GLFWwindow* window, double, double) { of(window).pace_.input(); });
  glfwSetCursorEnterCallback(window_, [](GLFWwindow* window, int) { of(window).pace_.input(); });
  glfwSetMouseButtonCallback(window_,
                             [](GLFWwindow* window, int, int, int) { of(window).pace_.input(); });
  glfwSetScrollCallback(window_,
                        [](GLFWwindow* window, double, double) { of(window).pace_.input(); });
  glfwSetWindowFocusCallback(window_, [](GLFWwindow* window, int focused) {
    of(window).pace_.input();
    if (focused == GLFW_FALSE) of(window).save_settings();
  });
  glfwSetDropCallback(window_, [](GLFWwindow* window, int count, const char** paths) {
    of(window).pace_.input();
    if (count == 0) return;
    if (std::filesystem::path(paths[0]).extension() == ".cu")
      return of(window).shell_->inspect(paths[0]);
    if (holds_trace(paths[0])) return of(window).shell_->profile(paths[0]);
    open_capsule(*of(window).shell_, paths[0]);
  });
  glfwSetWindowRefreshCallback(window_, [](GLFWwindow* window) { of(window).pace_.input(); });
  glfwSetFramebufferSizeCallback(window_,
                                 [](GLFWwindow* window, int, int) { of(window).pace_.input(); });
  glfwSetWindowContentScaleCallback(
      window_, [](GLFWwindow* window, float, float) { of(window).pace_.input(); });
}

Motion Window::motion() const {
  return {shell_->animating(), ImGui::GetIO().WantTextInput, shell_->working(), shell_->timing()};
}

/// Sleeps until something happens or is due; an idle window draws nothing.
void Window::wait() {
  std::optional<double> until_s = pace_.next_in_s(glfwGetTime(), motion());
  if (const auto due_s = shell_->update_due_s()) {
    until_s = std::min(until_s.value_or(*due_s), *due_s);
  }
  if (watch_) {
    const double watch_s = watch_->due_in_s(glfwGetTime());
    until_s = std::min(until_s.value_or(watch_s), watch_s);
  }
  if (!until_s) {
    glfwWaitEvents();
  } else if (*until_s > 0) {
    glfwWaitEventsTimeout(*until_s);
  } else {
    glfwPollEvents();
  }
}

float Window::content_scale() const {
  float scale = 1, unused = 1;
  glfwGetWindowContentScale(window_, &scale, &unused);
  // Where the window counts in points of its own (macOS, Wayland), ImGui scales the picture itself.
  int points = 0, pixels = 0, height = 0;
  glfwGetWindowSize(window_, &points, &height);
  glfwGetFramebufferSize(window_, &pixels, &height);
  const float density = points > 0 ? static_cast<float>(pixels) / static_cast<float>(points) : 1.0f;
  return scale / std::max(density, 0.1f);
}

void Window::draw() {
  int width = 0, height = 0;
  glfwGetWindowSize(window_, &width, &height);
  int pixels_wide = 0, pixels_high = 0;
  glfwGetFramebufferSize(window_, &pixels_wide, &pixels_high);
  if (width < 1 || height < 1 || pixels_wide < 1) return;  // minimised
  width_ = width;
  height_ = height;
  if (shell_->prepare_fonts(design_scale(width, height, content_scale()),
                            ImVec2(static_cast<float>(width), static_cast<float>(height)))) {
#if IMGUI_VERSION_NUM < 19200
    ImGui_ImplOpenGL3_DestroyFontsTexture();
    ImGui_ImplOpenGL3_CreateFontsTexture();
#endif
  }
  ImGui_ImplOpenGL3_NewFrame();
  ImGui_ImplGlfw_NewFrame();
  ImGui::NewFrame();
  shell_->draw(ImGui::GetIO().DisplaySize);
  ImGui::Render();
  glViewport(0, 0, pixels_wide, pixels_high);
  glClearColor(0, 0, 0, 1);
  glClear(GL_COLOR_BUFFER_BIT);
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  glfwSwapBuffers(window_);
  if (watch_) {
    glFinish();
    watch_->shown(*shell_, glfwGetTime());
  }
  if (title_ != shell_->window_title()) {
    title_ = shell_->window_title();
    glfwSetWindowTitle(window_, title_.c_str());
  }
  write_map();
}

void Window::write_map() {
  if (map_path_.empty()) return;
  // A reader on a loaded machine cannot tell by the clock whether what it sees moves on.
  constexpr double kIdle_s = 0.1;
  const std::optional<double> next_s = pace_.next_in_s(glfwGetTime(), motion());
  const bool idle = !shell_->animating() && next_s.value_or(kIdle_s) >= kIdle_s;
  write_file(map_path_, shell_->ui_map_json(++frames_, idle));
}

void Window::toggle_full_screen() {
  if (glfwGetWindowMonitor(window_) != nullptr) {
    glfwSetWindowMonitor(window_, nullptr, restore_[0], restore_[1], restore_[2], restore_[3], 0);
    return;
  }
  GLFWmonitor* monitor = glfwGetPrimaryMonitor();
  const GLFWvidmode* mode = monitor == nullptr ? nullptr : glfwGetVideoMode(monitor);
  if (mode == nullptr) return;
  glfwGetWindowPos(window_, &restore_[0], &restore_[1]);
  glfwGetWindowSize(window_, &restore_[2], &restore_[3]);
  glfwSetWindowMonitor(window_, monitor, 0, 0, mode->width, mode->height, mode->refreshRate);
}

void Window::save_settings() {
  if (shell_ != nullptr) shell_->keep_drafts();
  if (settings_ == nullptr || shell_ == nullptr) return;
  KeptSettings settings = shell_->settings();
  if (glfwGetWindowMonitor(window_) != nullptr) {
    settings.width = restore_[2];
    settings.height = restore_[3];
  } else {
    // A display that is gone cannot be asked.
    settings.width = width_;
    settings.height = height_;
  }
  settings_->save(settings);
  if (const std::string remark = settings_->take_remark(); !remark.empty()) shell_->say(remark);
}

void Window::keep_what_was_asked() {
  const auto request = shell_->take_keep();
  if (!request) return;
  WindowLook look;
  glfwGetFramebufferSize(window_, &look.width, &look.height);
  look.scale = design_scale(look.width, look.height, content_scale());
  glfwMakeContextCurrent(nullptr);  // pictures are drawn in a context of their own
  keep(*shell_, *request, look);
  glfwMakeContextCurrent(window_);
  pace_.news();
}

/// Its keys are as good as a user's. Returns false when it has seen all.
bool Window::let_watch_go_on() {
  const Watch::Did did = watch_->go_on(*shell_, glfwGetTime());
  if (did == Watch::Did::pressed) pace_.input();
  return did != Watch::Did::ended;
}

void Window::run(const EndSignals& signals) {
  assert(shell_ != nullptr);
  expect_lost_display([this] { save_settings(); });
  const auto ends = [&] {
    return signals.got() != 0 || glfwWindowShouldClose(window_) != GLFW_FALSE;
  };
  while (!ends()) {
    wait();
    if (ends()) break;
    if (shell_->update()) pace_.news();
    if (watch_ && !let_watch_go_on()) break;
    if (shell_->take_full_screen_toggle()) toggle_full_screen();
    keep_what_was_asked();
    const double now_s = glfwGetTime();
    const auto next_s = pace_.next_in_s(now_s, motion());
    if (!next_s || *next_s > 0) continue;
    pace_.drawn(now_s);
    draw();
  }
  expect_lost_display(nullptr);
  save_settings();
}

}  // namespace

int run_window(const WindowOptions& options) {
  const EndSignals signals(glfwPostEmptyEvent);  // before GLFW, whose drivers start threads
  const GlfwScope glfw;
  const ImGuiScope imgui;
  Window window(options);
  ProcessLabOptions lab_options;
  lab_options.program = options.program;
  lab_options.wake = [] { glfwPostEmptyEvent(); };
  const auto lab = make_labs(lab_options, options.shell.labs);
  Shell shell(*lab, options.shell);
  window.attach(shell);
  window.keep_settings(options.settings);
  if (!options.shell.greeting.empty()) shell.say(options.shell.greeting);
  window.run(signals);
  return signals.got() == 0 ? 0 : 128 + signals.got();
}

DisplayStatus display_status() {
  DisplayStatus status;
  if (glfwInit() == GLFW_FALSE) {
    status.window_reason = fmt::format("no display: {}", glfw_reason());
  } else {
    glfwWindowHint(GLFW_VISIBLE, GLFW_FALSE);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
    glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
    GLFWwindow* window = glfwCreateWindow(64, 64, "tilestep", nullptr, nullptr);
    status.window = window != nullptr;
    if (!status.window) status.window_reason = glfw_reason();
    if (status.window) glfwDestroyWindow(window);
    glfwTerminate();
  }
  try {
    status.offscreen_reason = Offscreen().renderer();
    status.offscreen = true;
  } catch (const Error& error) {
    status.offscreen_reason = error.what();
  }
  return status;
}

}  // namespace tilestep::app
