#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

/// Random data, identical for a seed on every machine and with every standard library: made from the
/// generators' bits, never with the distributions of <random>.
namespace tilestep::lab {

inline std::mt19937 generator_of(std::int64_t seed) {
  return std::mt19937(static_cast<std::mt19937::result_type>(seed));
}

/// In (0, 1): one of 2^24 numbers, at least half a step from both ends.
inline double uniform(std::mt19937& generator) {
  return (static_cast<double>(generator() >> 8) + 0.5) * 0x1p-24;
}

/// `count` numbers in (−1, 1).
std::vector<float> uniform_floats(std::mt19937& generator, std::size_t count);

/// `count` numbers of mean 0 and deviation 1: Box and Muller, "A note on the generation of random normal deviates", 1958.
std::vector<float> normal_floats(std::mt19937& generator, std::size_t count);

/// Uniform ones in (−1, 1), rounded to BF16, as bit patterns.
std::vector<std::uint16_t> uniform_bf16(std::mt19937& generator, std::size_t count);

/// `count` bytes: xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift
/// generators, scrambled", 2016), eight at a time.
std::vector<unsigned char> random_bytes(std::size_t count, std::int64_t seed);

}  // namespace tilestep::lab
