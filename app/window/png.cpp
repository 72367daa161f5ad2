#include "app/window/png.hpp"

#include <cassert>
#include <cstdlib>
#include <new>

namespace {

/// The writer takes what it is given without a look.
void* there(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

#define STBIW_MALLOC(bytes) there(std::malloc(bytes))
#define STBIW_REALLOC(memory, bytes) there(std::realloc(memory, bytes))
#define STBIW_FREE(memory) std::free(memory)
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb_image_write.h>

namespace tilestep::app {

std::string png_bytes(int width, int height, std::span<const unsigned char> rgb) {
  assert(rgb.size() == static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
  stbi_write_png_compression_level = 12;
  stbi_write_force_png_filter = 0;  // flat areas and letters repeat as they are
  std::string bytes;
  const auto append = [](void* to, void* data, int size) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(data),
                                          static_cast<std::size_t>(size));
  };
  if (stbi_write_png_to_func(append, &bytes, width, height, 3, rgb.data(), width * 3) == 0) {
    throw std::bad_alloc();  // the only thing that can fail in memory
  }
  return bytes;
}

}  // namespace tilestep::app
