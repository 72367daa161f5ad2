#include "kernels/base/simt/wgmma_math.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/base/numeric/small_float.hpp"

namespace tilestep::simt::emulated {
namespace {

using hopper::Format;

float decode_fp16(std::uint32_t bits) {
  // Moves exponent and mantissa where FP32 has them and scales, which is right for subnormals too.
  const float scaled = std::bit_cast<float>((bits & 0x7FFF) << 13) * 0x1p112f;
  const std::uint32_t not_finite = (bits & 0x7C00) == 0x7C00 ? 0x7F800000u : 0u;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | not_finite |
                              (bits & 0x8000) << 16);
}

const std::array<float, 256>& e4m3_numbers() {
  static const std::array<float, 256> numbers = [] {
    std::array<float, 256> all{};
    for (std::uint32_t bits = 0; bits < 256; ++bits) {
      all[bits] = static_cast<float>(numeric::decode(numeric::kE4m3, bits));
    }
    return all;
  }();
  return numbers;
}

}  // namespace

void decode_numbers(Format format, const unsigned char* from, int bytes, float* to) {
  if (format == Format::e4m3) {
    const std::array<float, 256>& numbers = e4m3_numbers();
    for (int i = 0; i < bytes; ++i) to[i] = numbers[from[i]];
    return;
  }
  for (int i = 0; i < bytes / 2; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, from + 2 * i, 2);
    to[i] = format == Format::bf16 ? std::bit_cast<float>(std::uint32_t{bits} << 16)
                                   : decode_fp16(bits);
  }
}

void transpose(const float* from, int rows, int columns, float* to) {
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      to[column * rows + row] = from[row * columns + column];
    }
  }
}

// Four numbers side by side, which GCC and Clang compute at once on every x86-64 and ARM; neither makes them
// of plain loops here.
using Four [[gnu::vector_size(16)]] = float;

static Four four_at(const float* from) {
  Four four;
  std::memcpy(&four, from, sizeof four);
  return four;
}

// Blocks of 4 × 8 sums stay in registers.
void add_products(const float* a, const float* b, int depth, int n, float* sums) {
  for (int row = 0; row < hopper::kWgmmaRows; row += 4) {
    for (int column = 0; column < n; column += 8) {
      float* corner = sums + row * n + column;
      Four left[4];
      Four right[4];
      for (int i = 0; i < 4; ++i) {
        left[i] = four_at(corner + i * n);
        right[i] = four_at(corner + i * n + 4);
      }
      for (int k = 0; k < depth; ++k) {
        const Four b_left = four_at(b + k * n + column);
        const Four b_right = four_at(b + k * n + column + 4);
        for (int i = 0; i < 4; ++i) {
          const float factor = a[(row + i) * depth + k];
          left[i] += factor * b_left;
          right[i] += factor * b_right;
        }
      }
      for (int i = 0; i < 4; ++i) {
        std::memcpy(corner + i * n, &left[i], sizeof left[i]);
        std::memcpy(corner + i * n + 4, &right[i], sizeof right[i]);
      }
    }
  }
}

}  // namespace tilestep::simt::emulated
