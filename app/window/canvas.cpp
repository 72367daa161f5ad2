#include "app/window/canvas.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <exception>
#include <new>
#include <vector>

#include "app/window/window.hpp"
#include "scenes/ui/context.hpp"

namespace tilestep::app {
namespace {

/// Dear ImGui takes what it is given without a look, and survives no exception: where there is no memory the
/// program ends, with the sentence of the handler for that.
void* allocate_or_end(std::size_t bytes, void*) {
  try {
    return ::operator new(bytes);
  } catch (const std::bad_alloc&) {
    std::terminate();
  }
}

}  // namespace

ImGuiScope::ImGuiScope() : own_(nullptr), before_(ImGui::GetCurrentContext()) {
  IMGUI_CHECKVERSION();
  ImGui::SetAllocatorFunctions(allocate_or_end,
                               [](void* memory, void*) { ::operator delete(memory); });
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

double processor_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

void settle(Shell& shell, ImVec2 size, int frames, float frame_seconds) {
  for (int frame = 0; frame < frames; ++frame) {
    ImGui::GetIO().DisplaySize = size;
    ImGui::GetIO().DeltaTime = frame_seconds;
    ImGui::NewFrame();
    shell.draw(size);
    ImGui::Render();
  }
}

namespace {

/// Something happens before each frame.
class Actor {
 public:
  Actor(Shell& shell, Action action) : shell_(shell), action_(action) {
    for (const ui::MapEntry& part : shell.context().map()) {
      if (part.id == "picture" || part.id == "profile_timeline") picture_ = part;
    }
  }
  /// `comparing`: beside the run itself, and the pointer is on the one or the other.
  void act(int frame) {
    if (action_ == Action::comparing && frame == 0) shell_.key(Key::b, false);
    if (action_ == Action::moving && !shell_.animating()) {
      shell_.key(back_ ? Key::left : Key::right, false);
      back_ = !back_;
    }
    if (action_ != Action::hovering && action_ != Action::comparing) return;
    const auto along = [&](float low, float high, double pace) {
      const double share = std::fmod(frame * pace, 1.0);  // everywhere, and never twice
      return low + (high - low) * static_cast<float>(share);
    };
    ImGui::GetIO().MousePos = {along(picture_.min.x, picture_.max.x, 0.6180339887),
                               along(picture_.min.y, picture_.max.y, 0.7548776662)};
  }

 private:
  Shell& shell_;
  Action action_;
  ui::MapEntry picture_;
  bool back_ = false;
};

}  // namespace

struct FrameBench::State {
  State(const ShellOptions& options, int width, int height)
      : size(static_cast<float>(width), static_cast<float>(height)),
        scale(design_scale(width, height, 1)),
        lab(make_inline_lab()),
        shell(*lab, options) {
    while (shell.update()) {
    }
    ImGui::GetIO().BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;  // as OpenGL's has
  }

  const ImGuiScope imgui;
  const ImVec2 size;
  const float scale;
  std::unique_ptr<LabClient> lab;
  Shell shell;
};

FrameBench::FrameBench(const ShellOptions& options, int width, int height)
    : state_(std::make_unique<State>(options, width, height)) {}
FrameBench::~FrameBench() = default;
Shell& FrameBench::shell() {
  return state_->shell;
}

FrameCosts FrameBench::measure(int frames, Action action) {
  Shell& shell = state_->shell;
  shell.context().look().still = action != Action::moving;
  if (shell.prepare_fonts(state_->scale, state_->size)) {
    unsigned char* pixels = nullptr;
    int width = 0, height = 0;
    ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
  }
  ImGui::GetIO().MousePos = {-1e6f, -1e6f};
  settle(shell, state_->size, 4);
  Actor actor(shell, action);
  std::vector<double> costs_ms;
  for (int frame = 0; frame < std::max(frames, 1); ++frame) {
    actor.act(frame);
    const double start_ms = processor_ms();
    settle(shell, state_->size, 1);
    costs_ms.push_back(processor_ms() - start_ms);
  }
  std::sort(costs_ms.begin(), costs_ms.end());
  return {costs_ms[costs_ms.size() / 2], costs_ms[costs_ms.size() * 99 / 100]};
}

double frame_cost_ms(const ShellOptions& options, int width, int height, int frames) {
  return FrameBench(options, width, height).measure(frames, Action::still).p50_ms;
}

}  // namespace tilestep::app
