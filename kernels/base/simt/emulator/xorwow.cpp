#include "kernels/base/simt/emulator/xorwow.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <vector>

namespace tilestep::simt::emulated {
namespace {

constexpr int kWords = 5, kBits = 160;
constexpr int kSequence = 67;  ///< a sequence has 2^67 numbers

using Vector = std::array<std::uint32_t, kWords>;
/// Row i is the image of the vector whose bit i alone is set.
using Matrix = std::array<Vector, kBits>;

Vector step(const Vector& v) {
  const std::uint32_t t = v[0] ^ v[0] >> 2;
  return {v[1], v[2], v[3], v[4], v[4] ^ v[4] << 4 ^ t ^ t << 1};
}

Vector image(const Vector& v, const Matrix& matrix) {
  Vector sum{};
  for (int word = 0; word < kWords; ++word) {
    for (std::uint32_t left = v[static_cast<std::size_t>(word)]; left != 0; left &= left - 1) {
      const Vector& row = matrix[static_cast<std::size_t>(word * 32 + std::countr_zero(left))];
      for (std::size_t i = 0; i < kWords; ++i) sum[i] ^= row[i];
    }
  }
  return sum;
}

/// Entry k advances by 2^k steps.
std::vector<Matrix> powers_of_step() {
  std::vector<Matrix> powers(kSequence + 64);
  for (std::size_t bit = 0; bit < kBits; ++bit) {
    Vector unit{};
    unit[bit / 32] = 1u << bit % 32;
    powers[0][bit] = step(unit);
  }
  for (std::size_t k = 1; k < powers.size(); ++k) {
    std::transform(powers[k - 1].begin(), powers[k - 1].end(), powers[k].begin(),
                   [&](const Vector& row) { return image(row, powers[k - 1]); });
  }
  return powers;
}

}  // namespace

void xorwow_skip(std::uint32_t (&words)[kWords], std::uint64_t steps, std::uint64_t sequences) {
  static const std::vector<Matrix> powers = powers_of_step();
  Vector v;
  std::copy_n(words, kWords, v.begin());
  for (std::size_t k = 0; k < 64; ++k) {
    if ((steps >> k & 1) != 0) v = image(v, powers[k]);
    if ((sequences >> k & 1) != 0) v = image(v, powers[kSequence + k]);
  }
  std::copy(v.begin(), v.end(), words);
}

}  // namespace tilestep::simt::emulated
