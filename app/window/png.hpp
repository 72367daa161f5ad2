#pragma once

#include <span>
#include <string>

namespace tilestep::app {

/// Writes 8-bit RGB pixels, top row first, as a PNG file. Throws Error (unavailable).
void write_png(const std::string& path, int width, int height, std::span<const unsigned char> rgb);

}  // namespace tilestep::app
