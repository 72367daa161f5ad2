#include <imgui_impl_opengl3.h>

#include <memory>
#include <optional>
#include <utility>

#include "app/file.hpp"
#include "app/window/canvas.hpp"
#include "app/window/gl_target.hpp"
#include "app/window/png.hpp"
#include "app/window/window.hpp"

namespace tilestep::app {
namespace {

/// ImGui's OpenGL renderer for the current context.
class RendererScope {
 public:
  RendererScope() { ImGui_ImplOpenGL3_Init("#version 330 core"); }
  ~RendererScope() { ImGui_ImplOpenGL3_Shutdown(); }
  RendererScope(const RendererScope&) = delete;
  RendererScope& operator=(const RendererScope&) = delete;
};

/// Keeps what the lab says of a failure: a picture of a failed run would look like a result.
class Listener final : public LabClient {
 public:
  explicit Listener(LabClient& lab) : lab_(lab) {}
  Ticket submit(const lab::Request& request) override { return lab_.submit(request); }
  std::optional<LabUpdate> poll() override {
    auto update = lab_.poll();
    if (update) {
      if (const auto* failed = std::get_if<LabFailure>(&update->what)) failure = *failed;
    }
    return update;
  }
  void cancel(Ticket ticket) override { lab_.cancel(ticket); }
  bool busy() const override { return lab_.busy(); }

  std::optional<LabFailure> failure;

 private:
  LabClient& lab_;
};

/// A shell whose lesson has run.
struct Rehearsal {
  explicit Rehearsal(ShellOptions options) : inline_lab(make_inline_lab()), lab(*inline_lab) {
    options.still = true;
    shell = std::make_unique<Shell>(lab, options);
    while (shell->update() || lab.busy()) {
    }
    if (lab.failure) throw Error(lab.failure->sentence, lab.failure->code);
  }

  std::unique_ptr<LabClient> inline_lab;
  Listener lab;
  std::unique_ptr<Shell> shell;
};

}  // namespace

struct Offscreen::State {
  GlTarget target;
};

Offscreen::Offscreen() : state_(std::make_unique<State>()) {}
Offscreen::~Offscreen() = default;
std::string Offscreen::renderer() const {
  return state_->target.renderer();
}

void Offscreen::shoot(const ShotOptions& options) {
  const ImGuiScope imgui;
  const Rehearsal rehearsal(options.shell);
  Shell& shell = *rehearsal.shell;
  state_->target.begin(options.width, options.height);
  shell.prepare_fonts(design_scale(options.width, options.height, 1));
  const RendererScope renderer;
  ImGui_ImplOpenGL3_NewFrame();
  const ImVec2 size(static_cast<float>(options.width), static_cast<float>(options.height));
  // A cursor outside the picture: nothing is hovered.
  ImGui::GetIO().MousePos = {-1e6f, -1e6f};
  settle(shell, size, 5);
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  write_file(options.out, png_bytes(options.width, options.height, state_->target.pixels()));
  if (!options.ui_map.empty()) write_file(options.ui_map, shell.ui_map_json());
}

void take_shot(const ShotOptions& options) {
  Offscreen().shoot(options);
}

void take_svg(const ShotOptions& options) {
  const ImGuiScope imgui;
  const Rehearsal rehearsal(options.shell);
  Shell& shell = *rehearsal.shell;
  shell.prepare_fonts(design_scale(options.width, options.height, 1));
  unsigned char* pixels = nullptr;
  int width = 0, height = 0;
  ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
  ImGui::GetIO().MousePos = {-1e6f, -1e6f};
  settle(shell, {static_cast<float>(options.width), static_cast<float>(options.height)}, 5);
  write_file(options.out, shell.picture_svg());
  if (!options.ui_map.empty()) write_file(options.ui_map, shell.ui_map_json());
}

}  // namespace tilestep::app
