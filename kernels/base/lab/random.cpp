#include "kernels/base/lab/random.hpp"

#include <cmath>
#include <numbers>

#include "kernels/base/numeric/float_format.hpp"

namespace tilestep::lab {

std::vector<float> uniform_floats(std::mt19937& generator, std::size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(2 * uniform(generator) - 1);
  return values;
}

std::vector<float> normal_floats(std::mt19937& generator, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; i += 2) {
    const double radius = std::sqrt(-2 * std::log(uniform(generator)));
    const double angle = 2 * std::numbers::pi * uniform(generator);
    values[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < count) values[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
  return values;
}

std::vector<std::uint16_t> uniform_bf16(std::mt19937& generator, std::size_t count) {
  std::vector<std::uint16_t> bits(count);
  for (std::uint16_t& one : bits) {
    one = numeric::Bf16::bits(static_cast<float>(2 * uniform(generator) - 1));
  }
  return bits;
}

std::vector<unsigned char> random_bytes(std::size_t count, std::int64_t seed) {
  std::vector<unsigned char> bytes(count);
  std::uint64_t state = static_cast<std::uint64_t>(seed) * 2 + 0x9E3779B97F4A7C15u;
  for (std::size_t i = 0; i < count; i += 8) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    const std::uint64_t word = state * 0x2545F4914F6CDD1Du;
    for (std::size_t b = 0; b < 8 && i + b < count; ++b) {
      bytes[i + b] = static_cast<unsigned char>(word >> (8 * b));
    }
  }
  return bytes;
}

}  // namespace tilestep::lab
