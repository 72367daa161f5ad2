#include "app/window/apng.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <string_view>

#include "app/window/png.hpp"

namespace tilestep::app {
namespace {

constexpr std::size_t kSignature = 8, kHeader = 25;  ///< bytes; the header is a whole chunk

void put(std::string& bytes, std::uint32_t value, int count) {
  for (int i = count - 1; i >= 0; --i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
}

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

/// CRC-32 as the PNG specification has it in its annex D.
std::uint32_t checksum(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t n = 0; n < table.size(); ++n) {
      std::uint32_t c = n;
      for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xedb88320U ^ (c >> 1) : c >> 1;
      table[n] = c;
    }
    return table;
  }();
  std::uint32_t c = 0xffffffffU;
  for (const char byte : bytes) {
    c = kTable[(c ^ static_cast<unsigned char>(byte)) & 0xff] ^ (c >> 8);
  }
  return c ^ 0xffffffffU;
}

void add_chunk(std::string& file, std::string_view type, std::string_view data) {
  put(file, static_cast<std::uint32_t>(data.size()), 4);
  std::string body(type);
  body += data;
  file += body;
  put(file, checksum(body), 4);
}

/// The deflated pixels of a PNG file.
std::string image_data(std::string_view png) {
  std::string data;
  for (std::size_t at = kSignature; at + 12 <= png.size();) {
    const std::size_t size = number_at(png, at);
    if (png.substr(at + 4, 4) == "IDAT") data += png.substr(at + 8, size);
    at += 12 + size;
  }
  return data;
}

struct Span {
  int begin = 0, end = 0;
};

}  // namespace

Apng::Apng(int width, int height, int frames_a_second)
    : width_(width), height_(height), rate_(frames_a_second) {}

void Apng::add(std::span<const unsigned char> rgb) {
  assert(rgb.size() == static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_) * 3);
  Span x{0, width_}, y{0, height_};
  if (!frames_.empty()) {  // the rectangle of what changed
    x = {width_, 0};
    y = {height_, 0};
    for (int row = 0; row < height_; ++row) {
      const auto begin = static_cast<std::ptrdiff_t>(row) * width_ * 3;
      const auto length = static_cast<std::ptrdiff_t>(width_) * 3;
      const auto now = rgb.begin() + begin;
      const auto before = last_.begin() + begin;
      const auto first = std::mismatch(now, now + length, before).first - now;
      if (first == length) continue;
      const auto last =
          std::mismatch(std::reverse_iterator(now + length), std::reverse_iterator(now),
                        std::reverse_iterator(before + length))
              .first;
      x = {std::min(x.begin, static_cast<int>(first / 3)),
           std::max(x.end, static_cast<int>((last.base() - now - 1) / 3) + 1)};
      y = {std::min(y.begin, row), row + 1};
    }
    if (x.begin >= x.end) {
      ++frames_.back().shown;
      return;
    }
  }
  Frame frame{x.begin, y.begin, x.end - x.begin, y.end - y.begin, 1, {}};
  std::vector<unsigned char> part;
  for (int row = y.begin; row < y.end; ++row) {
    const auto begin = rgb.begin() + (static_cast<std::ptrdiff_t>(row) * width_ + x.begin) * 3;
    part.insert(part.end(), begin, begin + static_cast<std::ptrdiff_t>(frame.width) * 3);
  }
  frame.data = image_data(png_bytes(frame.width, frame.height, part));
  frames_.push_back(std::move(frame));
  last_.assign(rgb.begin(), rgb.end());
}

std::string Apng::bytes() const {
  assert(!frames_.empty());
  // Signature and header are those of any PNG of this size.
  const std::vector<unsigned char> blank(static_cast<std::size_t>(width_ * height_) * 3);
  std::string file = png_bytes(width_, height_, blank).substr(0, kSignature + kHeader);
  std::string control;
  put(control, static_cast<std::uint32_t>(frames_.size()), 4);
  put(control, 0, 4);  // again and again
  add_chunk(file, "acTL", control);
  std::uint32_t sequence = 0;
  for (const Frame& frame : frames_) {
    std::string place;
    put(place, sequence++, 4);
    for (const int number : {frame.width, frame.height, frame.x, frame.y}) {
      put(place, static_cast<std::uint32_t>(number), 4);
    }
    put(place, static_cast<std::uint32_t>(frame.shown), 2);
    put(place, static_cast<std::uint32_t>(rate_), 2);
    put(place, 0, 2);  // drawn over what was there, which stays
    add_chunk(file, "fcTL", place);
    if (&frame == &frames_.front()) {
      add_chunk(file, "IDAT", frame.data);
    } else {
      std::string data;
      put(data, sequence++, 4);
      add_chunk(file, "fdAT", data + frame.data);
    }
  }
  add_chunk(file, "IEND", {});
  return file;
}

}  // namespace tilestep::app
