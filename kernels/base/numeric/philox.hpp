#pragma once

#include <cstdint>

namespace tilestep::numeric {

/// 64 random bits, equally likely: the first two words of Philox 4×32 with 10 rounds for the counter (`counter`, 0, 0, 0)
/// and the key `seed`. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
constexpr std::uint64_t philox(std::uint64_t seed, std::uint32_t counter) {
  std::uint32_t c[4] = {counter, 0, 0, 0};
  auto low = static_cast<std::uint32_t>(seed), high = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * c[0],
                        b = std::uint64_t{0xCD9E8D57u} * c[2];
    c[0] = static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ low;
    c[1] = static_cast<std::uint32_t>(b);
    c[2] = static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ high;
    c[3] = static_cast<std::uint32_t>(a);
    low += 0x9E3779B9u;
    high += 0xBB67AE85u;
  }
  return c[0] | std::uint64_t{c[1]} << 32;
}

/// a · b / 2^64, rounded down: of random bits a, a whole number below b.
constexpr std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t a0 = a & 0xFFFFFFFFu, a1 = a >> 32, b0 = b & 0xFFFFFFFFu, b1 = b >> 32;
  const std::uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (middle & 0xFFFFFFFFu);
  return a1 * b1 + (middle >> 32) + (other >> 32);
}

}  // namespace tilestep::numeric
