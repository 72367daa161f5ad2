#include "app/window/png.hpp"

#include <fmt/format.h>

#include <cassert>

#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb_image_write.h>

#include "kernels/base/simt/error.hpp"

namespace tilestep::app {

void write_png(const std::string& path, int width, int height, std::span<const unsigned char> rgb) {
  assert(rgb.size() == static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
  stbi_write_png_compression_level = 12;
  if (stbi_write_png(path.c_str(), width, height, 3, rgb.data(), width * 3) == 0) {
    throw Error(fmt::format("cannot write the picture {}", path), ExitCode::unavailable);
  }
}

}  // namespace tilestep::app
