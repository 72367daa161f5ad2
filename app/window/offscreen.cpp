#include <fmt/format.h>
#include <imgui_impl_opengl3.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "app/file.hpp"
#include "app/keep/capsule.hpp"
#include "app/window/canvas.hpp"
#include "app/window/gl_target.hpp"
#include "app/window/png.hpp"
#include "app/window/window.hpp"
#include "app/worker/lab_set.hpp"
#include "app/worker/sandbox.hpp"
#include "kernels/base/simt/backends.hpp"
#include "scenes/picture/svg.hpp"
#include "scenes/ui/context.hpp"
#include "scenes/ui/picture_view.hpp"

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
  Ticket submit_to(std::size_t lab, const lab::Request& request) override {
    return lab_.submit_to(lab, request);
  }
  Ticket submit_assembly(std::size_t lab, const workbench::AssemblyRequest& request) override {
    return lab_.submit_assembly(lab, request);
  }
  std::optional<LabUpdate> poll() override {
    auto update = lab_.poll();
    if (update) {
      if (const auto* failed = std::get_if<LabFailure>(&update->what)) failure = *failed;
    }
    return update;
  }
  /// A picture runs no kernel of others, and says what the window would.
  std::string why_no_sandbox() const override { return sandbox_status().reason; }
  void cancel(Ticket ticket) override { lab_.cancel(ticket); }
  bool busy() const override { return lab_.busy(); }
  bool beside() const override { return false; }

  std::optional<LabFailure> failure;

 private:
  LabClient& lab_;
};

/// Where a picture's run is made: in this process, unless it comes from elsewhere or uses the GPU. What draws on an
/// NVIDIA GPU has been seen to draw nothing once CUDA ran in the same process.
std::unique_ptr<LabClient> lab_of(const ShellOptions& options) {
  const bool may_use_gpu = options.backend == "auto" || options.backend == "cuda";
  const bool apart = may_use_gpu && !options.program.empty() && simt::cuda_status().available;
  if (options.labs.empty() && !apart) return make_inline_lab();
  ProcessLabOptions lab;
  lab.program = options.program;
  return make_labs(lab, options.labs);
}

/// A shell whose lesson has run.
struct Rehearsal {
  explicit Rehearsal(const ShellOptions& options, bool still = true)
      : own_lab(lab_of(options)), lab(*own_lab) {
    ShellOptions own = options;
    own.still = still;
    shell = std::make_unique<Shell>(lab, own);
    wait();
  }

  void wait() {
    while (shell->update() || lab.busy()) {
      if (lab.busy()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (lab.failure) throw Error(lab.failure->sentence, lab.failure->code);
    if (const std::string why = shell->complaint(); !why.empty()) throw Error(why);
  }
  /// Draws frames until all is at rest. Where the picture outlines what the stop before moved, one comes from there.
  void settle_all(const ShotOptions& options) {
    const ImVec2 size(static_cast<float>(options.width), static_cast<float>(options.height));
    ImGui::GetIO().MousePos = {-1e6f, -1e6f};  // nothing is hovered
    settle(*shell, size, 5);
    if (options.shell.overlay || !shell->follows_stop()) return;
    for (const Key key : {Key::bracket_left, Key::bracket_right}) {
      shell->key(key, false);
      wait();
      settle(*shell, size, 5);
    }
  }

  std::unique_ptr<LabClient> own_lab;
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
  const Pixels shown = draw(options);
  write_output(options.out, png_bytes(shown.width, shown.height, shown.rgb), options.force);
}

Pixels Offscreen::draw(const ShotOptions& options) {
  const ImGuiScope imgui;
  Rehearsal rehearsal(options.shell);
  Shell& shell = *rehearsal.shell;
  state_->target.begin(options.width, options.height);
  shell.prepare_fonts(scale_of(options),
                      {static_cast<float>(options.width), static_cast<float>(options.height)});
  const RendererScope renderer;
  ImGui_ImplOpenGL3_NewFrame();
  rehearsal.settle_all(options);
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  const Pixels all{options.width, options.height, state_->target.pixels()};
  if (!options.ui_map.empty()) write_output(options.ui_map, shell.ui_map_json(), options.force);
  return options.picture_alone ? cut_out(all, part_named(shell, "picture")) : all;
}

// ---- films ---------------------------------------------------------------------------------------

namespace {

constexpr double kRestSeconds = 0.8;        ///< at each step
constexpr double kMostStepSeconds = 20;     ///< of motion
constexpr float kMostFrameSeconds = 0.04f;  ///< the window's own pictures cut what is longer

/// The picture fills the film as it does the window of the design size, so that a slide reads as well.
float film_scale(const FilmOptions& options) {
  const float room =
      std::min(static_cast<float>(options.width) / 880, static_cast<float>(options.height) / 495);
  return std::clamp(std::round(room * 4) / 4, 0.75f, 4.0f);
}

/// Sets a camera on the picture of a shell: a window that is so large that its picture has the size asked for.
class Camera {
 public:
  Camera(Shell& shell, GlTarget& target, const FilmOptions& options)
      : shell_(shell), target_(target), options_(options) {
    ImGui::GetIO().MousePos = {-1e6f, -1e6f};
    window_ = {static_cast<float>(options.width), static_cast<float>(options.height)};
    for (int round = 0; round < 4; ++round) {
      settle(shell_, window_, 3);
      const ui::MapEntry picture = part_named(shell_, "picture");
      window_.x += std::round(static_cast<float>(options.width) - (picture.max.x - picture.min.x));
      window_.y += std::round(static_cast<float>(options.height) - (picture.max.y - picture.min.y));
    }
    settle(shell_, window_, 5);
  }

  /// Lets a frame's time pass, and takes it.
  Pixels take() {
    const float seconds = 1 / static_cast<float>(options_.rate);
    const int parts = static_cast<int>(std::ceil(seconds / kMostFrameSeconds));
    for (int part = 0; part < parts; ++part) {
      settle(shell_, window_, 1, seconds / static_cast<float>(parts));
    }
    const int width = static_cast<int>(window_.x), height = static_cast<int>(window_.y);
    target_.begin(width, height);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    ui::MapEntry picture = part_named(shell_, "picture");
    picture.max = {picture.min.x + static_cast<float>(options_.width),
                   picture.min.y + static_cast<float>(options_.height)};
    return cut_out({width, height, target_.pixels()}, picture);
  }

 private:
  Shell& shell_;
  GlTarget& target_;
  const FilmOptions& options_;
  ImVec2 window_;
};

}  // namespace

void Offscreen::film(const FilmOptions& options, const std::function<bool(const Pixels&)>& take) {
  const ImGuiScope imgui;
  ShellOptions own = options.shell;
  own.step = options.from;
  own.predict = false;  // a film asks nothing
  const Rehearsal rehearsal(own, false);
  Shell& shell = *rehearsal.shell;
  state_->target.begin(options.width, options.height);
  shell.prepare_fonts(film_scale(options),
                      {static_cast<float>(options.width), static_cast<float>(options.height)});
  const RendererScope renderer;
  ImGui_ImplOpenGL3_NewFrame();
  Camera camera(shell, state_->target, options);
  const auto rest = static_cast<int>(std::lround(kRestSeconds * options.rate));
  const auto most = static_cast<int>(kMostStepSeconds * options.rate);
  const auto take_rest = [&] {
    const Pixels still = camera.take();  // nothing moves meanwhile
    for (int frame = 0; frame < rest; ++frame) {
      if (!take(still)) return false;
    }
    return true;
  };
  if (!take_rest()) return;
  for (int step = shell.step(); step < options.to; ++step) {
    shell.key(Key::right, false);
    int frame = 0;
    do {
      if (!take(camera.take())) return;
    } while (shell.animating() && ++frame < most);
    if (!take_rest() || shell.step() <= step) return;  // the last one is through
  }
}

void take_shot(const ShotOptions& options) {
  Offscreen().shoot(options);
}

namespace {

/// A frame without OpenGL: the fonts are laid out, and nobody asks for their pixels.
void settle_unseen(Shell& shell, const ShotOptions& options) {
  shell.prepare_fonts(scale_of(options),
                      {static_cast<float>(options.width), static_cast<float>(options.height)});
  unsigned char* pixels = nullptr;
  int width = 0, height = 0;
  ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
  ImGui::GetIO().MousePos = {-1e6f, -1e6f};
  settle(shell, {static_cast<float>(options.width), static_cast<float>(options.height)}, 5);
}

}  // namespace

void take_svg(const ShotOptions& options) {
  const ImGuiScope imgui;
  const Rehearsal rehearsal(options.shell);
  Shell& shell = *rehearsal.shell;
  settle_unseen(shell, options);
  write_output(options.out, shell.picture_svg(), options.force);
  if (!options.ui_map.empty()) write_output(options.ui_map, shell.ui_map_json(), options.force);
}

struct SvgPress::State {
  ImGuiScope imgui;
  std::unique_ptr<LabClient> lab = make_inline_lab();
  ShotOptions options;
  std::unique_ptr<Shell> shell;  ///< made with the first picture
};

SvgPress::SvgPress(int width, int height) : state_(std::make_unique<State>()) {
  state_->options.width = width;
  state_->options.height = height;
  state_->options.shell.still = true;
}
SvgPress::~SvgPress() = default;

std::string SvgPress::draw(const Capsule& capsule, ui::ThemeKind theme,
                           const std::vector<std::string>& subject) {
  State& state = *state_;
  if (state.shell) {
    state.shell->open(capsule);
  } else {
    state.options.shell.capsule = std::make_shared<const Capsule>(capsule);
    state.shell = std::make_unique<Shell>(*state.lab, state.options.shell);
  }
  state.shell->context().look().theme = theme;
  state.shell->shoot(subject);
  settle_unseen(*state.shell, state.options);
  return state.shell->picture_svg();
}

void SvgPress::with_type(ui::ThemeKind theme, const std::function<void()>& work) const {
  if (!state_->shell) {
    state_->options.shell.home = true;
    state_->shell = std::make_unique<Shell>(*state_->lab, state_->options.shell);
    settle_unseen(*state_->shell, state_->options);
  }
  ui::Context& context = state_->shell->context();
  const ui::Context::Current current(context);
  context.look().theme = theme;
  work();
}

std::string SvgPress::draw(const picture::Picture& picture, ui::ThemeKind theme) const {
  std::string svg;
  with_type(theme, [&] {
    const ui::PictureMetrics metrics;
    const picture::Placed placed = picture::place(picture, {0, 0, 900, 480}, metrics);
    svg = picture::svg(placed, picture::marks_of(picture), ui::picture_palette(), metrics,
                       [](const picture::Key&) { return std::string(); });
  });
  return svg;
}

}  // namespace tilestep::app
