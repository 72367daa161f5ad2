#include <fmt/format.h>
#include <imgui_impl_opengl3.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "app/file.hpp"
#include "app/window/canvas.hpp"
#include "app/window/gl_target.hpp"
#include "app/window/png.hpp"
#include "app/window/window.hpp"
#include "scenes/ui/context.hpp"

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
    if (const std::string why = shell->complaint(); !why.empty()) throw Error(why);
  }

  std::unique_ptr<LabClient> inline_lab;
  Listener lab;
  std::unique_ptr<Shell> shell;
};

float scale_of(const ShotOptions& options) {
  return options.scale > 0 ? options.scale : design_scale(options.width, options.height, 1);
}

ui::MapEntry part_named(Shell& shell, std::string_view id) {
  for (const ui::MapEntry& part : shell.context().map()) {
    if (part.id == id) return part;
  }
  throw Error(fmt::format("there is no '{}' on screen", id), ExitCode::unavailable);
}

/// RGB, top row first.
struct Pixels {
  int width = 0, height = 0;
  std::vector<unsigned char> rgb;
};

Pixels cut_out(const Pixels& from, const ui::MapEntry& part) {
  const auto within = [](float at, int most) {
    return std::clamp(static_cast<int>(std::lround(at)), 0, most);
  };
  const int left = within(part.min.x, from.width), top = within(part.min.y, from.height);
  Pixels cut{within(part.max.x, from.width) - left, within(part.max.y, from.height) - top, {}};
  for (int y = 0; y < cut.height; ++y) {
    const auto begin =
        from.rgb.begin() + (static_cast<std::ptrdiff_t>(top + y) * from.width + left) * 3;
    cut.rgb.insert(cut.rgb.end(), begin, begin + static_cast<std::ptrdiff_t>(cut.width) * 3);
  }
  return cut;
}

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
  shell.prepare_fonts(scale_of(options));
  const RendererScope renderer;
  ImGui_ImplOpenGL3_NewFrame();
  const ImVec2 size(static_cast<float>(options.width), static_cast<float>(options.height));
  // A cursor outside the picture: nothing is hovered.
  ImGui::GetIO().MousePos = {-1e6f, -1e6f};
  settle(shell, size, 5);
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  const Pixels all{options.width, options.height, state_->target.pixels()};
  const Pixels shown = options.picture_alone ? cut_out(all, part_named(shell, "picture")) : all;
  write_file(options.out, png_bytes(shown.width, shown.height, shown.rgb));
  if (!options.ui_map.empty()) write_file(options.ui_map, shell.ui_map_json());
}

void take_shot(const ShotOptions& options) {
  Offscreen().shoot(options);
}

void take_svg(const ShotOptions& options) {
  const ImGuiScope imgui;
  const Rehearsal rehearsal(options.shell);
  Shell& shell = *rehearsal.shell;
  shell.prepare_fonts(scale_of(options));
  unsigned char* pixels = nullptr;
  int width = 0, height = 0;
  ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
  ImGui::GetIO().MousePos = {-1e6f, -1e6f};
  settle(shell, {static_cast<float>(options.width), static_cast<float>(options.height)}, 5);
  write_file(options.out, shell.picture_svg());
  if (!options.ui_map.empty()) write_file(options.ui_map, shell.ui_map_json());
}

}  // namespace tilestep::app
