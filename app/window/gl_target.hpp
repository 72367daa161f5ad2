#pragma once

#include <memory>
#include <string>
#include <vector>

namespace tilestep::app {

/// An OpenGL 3.3 core context without a window, with a colour buffer to draw into.
class GlTarget {
 public:
  /// Tries what EGL offers in turn: no surface at all, a device, the default display.
  /// Throws Error (unavailable) with what to install.
  GlTarget();
  ~GlTarget();
  GlTarget(const GlTarget&) = delete;
  GlTarget& operator=(const GlTarget&) = delete;

  /// Makes the context current, with a colour buffer of this size bound and cleared.
  /// Throws Error (bad_input) if the size is beyond what the renderer can do.
  void begin(int width, int height);
  /// The pixels: RGB, top row first.
  std::vector<unsigned char> pixels() const;
  const std::string& renderer() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilestep::app
