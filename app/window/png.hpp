#pragma once

#include <span>
#include <string>

namespace tilestep::app {

/// 8-bit RGB pixels, top row first, as the bytes of a PNG file.
std::string png_bytes(int width, int height, std::span<const unsigned char> rgb);

}  // namespace tilestep::app
