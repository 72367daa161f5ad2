#pragma once

#include <span>
#include <string>
#include <vector>

namespace tilestep::app {

/// An animated PNG (PNG specification, third edition, 2025), frame by frame: each holds what changed.
class Apng {
 public:
  Apng(int width, int height, int frames_a_second);
  /// 8-bit RGB pixels, top row first. What is as before is shown longer.
  void add(std::span<const unsigned char> rgb);
  /// The bytes of the file. At least one frame was added.
  std::string bytes() const;

 private:
  struct Frame {
    int x = 0, y = 0, width = 0, height = 0;
    int shown = 1;     ///< for so many frames
    std::string data;  ///< deflated
  };

  int width_, height_, rate_;
  std::vector<unsigned char> last_;
  std::vector<Frame> frames_;
};

}  // namespace tilestep::app
