#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/shell/shell.hpp"

namespace tilestep::app {

struct WindowOptions {
  ShellOptions shell;
  int width = 1440, height = 900;
  std::string program;               ///< path of tilestep itself, for the worker
  SettingsFile* settings = nullptr;  ///< where the window keeps what it keeps; nullptr: nowhere
};

/// Opens the window and runs until it is closed. Throws Error (unavailable) without a display, with
/// a sentence that suggests `tilestep site`. Returns the exit code.
/// With the environment variable TILESTEP_UI_MAP=FILE the map of what is on screen is written there
/// after each frame that changes it (atomically), so that a test can press "Next tile" by name.
int run_window(const WindowOptions& options);

struct ShotOptions {
  ShellOptions shell;
  int width = 1440, height = 900;
  std::string out;             ///< PNG file, or SVG: of the picture alone
  std::string ui_map;          ///< JSON file; empty: none
  float scale = 0;             ///< real pixels a design pixel; 0: as `width` and `height` want it
  bool force = false;          ///< as for write_output
  bool picture_alone = false;  ///< the picture's panel, cut out of the window
};

/// A film of a lesson: the moving picture alone, from step to step.
struct FilmOptions {
  ShellOptions shell;
  int width = 1280, height = 720;  ///< of the film
  int from = 0, to = 1;            ///< steps; beyond the last: the last
  int rate = 30;                   ///< frames a second
};

/// 8-bit RGB, top row first.
struct Pixels {
  int width = 0, height = 0;
  std::vector<unsigned char> rgb;
};

/// Draws pictures without a display. The EGL context is made once, so that many pictures are quick.
class Offscreen {
 public:
  /// Throws Error (unavailable) if EGL cannot make an OpenGL 3.3 context, saying what to install.
  Offscreen();
  ~Offscreen();
  Offscreen(const Offscreen&) = delete;
  Offscreen& operator=(const Offscreen&) = delete;
  /// As take_shot.
  void shoot(const ShotOptions& options);
  /// The same picture, not written.
  Pixels draw(const ShotOptions& options);
  /// Plays the steps by a clock that goes on by a frame at a time, and gives each frame to `take`, until
  /// the film is over or `take` answers false.
  void film(const FilmOptions& options, const std::function<bool(const Pixels&)>& take);
  /// The name of the OpenGL renderer.
  std::string renderer() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Draws one picture without a display (EGL) and writes it. Runs the lesson in this process.
/// Throws Error (unavailable) if EGL cannot make a context, saying what to install.
void take_shot(const ShotOptions& options);

/// Writes the picture alone as SVG; needs no OpenGL.
void take_svg(const ShotOptions& options);

/// Pictures alone, one after another, as SVG; needs no OpenGL. ImGui's context is its own while it lives.
class SvgPress {
 public:
  SvgPress(int width, int height);
  ~SvgPress();
  SvgPress(const SvgPress&) = delete;
  SvgPress& operator=(const SvgPress&) = delete;
  /// The picture of a capsule: what `subject` names and its like, or all of it. Throws Error as Scene::load does.
  std::string draw(const Capsule& capsule, ui::ThemeKind theme,
                   const std::vector<std::string>& subject = {});
  /// A picture by itself, in the window's type.
  std::string draw(const picture::Picture& picture, ui::ThemeKind theme) const;
  /// Does `work` with the window's type and the colours of `theme` current, where pictures can be laid out.
  void with_type(ui::ThemeKind theme, const std::function<void()>& work) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What goes on while frames are built: nothing, one step after the other, the pointer over the picture, or
/// over one of two.
enum class Action { still, moving, hovering, comparing };
/// Of all frames, the middle and what all but a hundredth stay below.
struct FrameCosts {
  double p50_ms = 0, p99_ms = 0;
};

/// What frames of a shell cost the processor, without a GPU and without a window. For `tilestep bench ui`.
class FrameBench {
 public:
  FrameBench(const ShellOptions& options, int width, int height);
  ~FrameBench();
  FrameBench(const FrameBench&) = delete;
  FrameBench& operator=(const FrameBench&) = delete;
  /// To bring something to the front.
  Shell& shell();
  /// Builds so many frames.
  FrameCosts measure(int frames, Action action);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The median of `frames` that stand still.
double frame_cost_ms(const ShellOptions& options, int width, int height, int frames);

/// What `tilestep doctor` says of displays: one line each for the window and the offscreen target.
struct DisplayStatus {
  bool window = false;
  std::string window_reason;
  bool offscreen = false;
  std::string offscreen_reason;  ///< or the renderer's name
};
DisplayStatus display_status();

}  // namespace tilestep::app
