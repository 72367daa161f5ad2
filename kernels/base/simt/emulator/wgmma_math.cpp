#include "kernels/base/simt/emulator/wgmma_math.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

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

OperandLayout::OperandLayout(std::uint64_t descriptor, int rows, bool turned)
    : rows_(rows), turned_(turned) {
  const auto field = [&](int bit) {
    return static_cast<unsigned>(descriptor >> bit & 0x3FFF) * 16;
  };
  constexpr std::array<int, 4> kSwizzles{0, 128, 64, 32};
  start_ = field(0);
  leading_ = field(16);
  stride_ = field(32);
  swizzle_ = kSwizzles[descriptor >> 62];
}

unsigned OperandLayout::address(int piece) const {
  const auto row_bytes = static_cast<unsigned>(swizzle_);
  if (!turned_) {
    const auto row = static_cast<unsigned>(piece / 2);
    const auto chunk = static_cast<unsigned>(piece % 2);
    const unsigned block = start_ + row / 8 * stride_;
    if (swizzle_ == 0) return block + chunk * leading_ + row % 8 * 16;
    return hopper::swizzled_address(block + row % 8 * row_bytes + chunk * 16, swizzle_);
  }
  const auto k = static_cast<unsigned>(piece / (rows_ / 8));
  const auto chunk = static_cast<unsigned>(piece % (rows_ / 8));
  if (swizzle_ == 0) return start_ + chunk * stride_ + k / 8 * leading_ + k % 8 * 16;
  const unsigned chunks = row_bytes / 16;
  return hopper::swizzled_address(start_ + chunk / chunks * leading_ + k / 8 * stride_ +
                                      k % 8 * row_bytes + chunk % chunks * 16,
                                  swizzle_);
}

void put_fragment(Format format, int thread, const unsigned* registers, float* a) {
  const bool bytes = format == Format::e4m3 || format == Format::s8;
  const int depth = bytes ? 32 : 16;
  const int side = depth / 8;  // numbers of a register
  for (int i = 0; i < 4; ++i) {
    std::array<unsigned char, 16> raw{};
    std::array<float, 16> numbers{};
    std::memcpy(raw.data(), registers + i, 4);
    decode_numbers(format, raw.data(), 16, numbers.data());
    const int row = thread / 32 * 16 + thread % 32 / 4 + i % 2 * 8;
    const int k = thread % 4 * side + i / 2 * (depth / 2);
    std::memcpy(a + row * depth + k, numbers.data(), static_cast<std::size_t>(side) * 4);
  }
}

void decode_numbers(Format format, const unsigned char* from, int bytes, float* to) {
  if (format == Format::e4m3) {
    const std::array<float, 256>& numbers = e4m3_numbers();
    for (int i = 0; i < bytes; ++i) to[i] = numbers[from[i]];
    return;
  }
  if (format == Format::s8) {
    for (int i = 0; i < bytes; ++i) to[i] = static_cast<signed char>(from[i]);
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

void add_whole_products(const float* a, const float* b, int depth, int n, float* sums) {
  std::vector<float> these(static_cast<std::size_t>(hopper::kWgmmaRows * n));
  add_products(a, b, depth, n, these.data());  // below 2^24, and so exact
  for (std::size_t i = 0; i < these.size(); ++i) {
    const std::uint32_t sum = std::bit_cast<std::uint32_t>(sums[i]) +
                              static_cast<std::uint32_t>(static_cast<std::int32_t>(these[i]));
    sums[i] = std::bit_cast<float>(sum);
  }
}

}  // namespace tilestep::simt::emulated
