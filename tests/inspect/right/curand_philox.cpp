#include <cstdint>
#include <cstdio>

struct Philox {
  std::uint32_t counter[4], key[2], output[4];
  int place;

  void run() {
    std::uint32_t x = counter[0], y = counter[1], z = counter[2], w = counter[3];
    std::uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = 0xD2511F53ull * x, b = 0xCD9E8D57ull * z;
      const auto high_a = static_cast<std::uint32_t>(a >> 32);
      const auto high_b = static_cast<std::uint32_t>(b >> 32);
      x = high_b ^ y ^ k0;
      y = static_cast<std::uint32_t>(b);
      z = high_a ^ w ^ k1;
      w = static_cast<std::uint32_t>(a);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    output[0] = x, output[1] = y, output[2] = z, output[3] = w;
  }
  float uniform() {
    const std::uint32_t bits = output[place++];
    if (place == 4) {
      ++counter[0];
      run();
      place = 0;
    }
    return static_cast<float>(bits) / 4294967296.0f + 0.5f / 4294967296.0f;
  }
};

int main() {
  // D. E. Shaw Research's Random123, "kat_vectors".
  std::puts("6627e8d5 e169c58d bc57ac4c 9b00dbd8");
  std::puts("408f276d 41c83b0e a20bc7c6 6d5451fd");
  std::puts("d16cfe09 94fdcceb 5001e420 24126ea1");
  constexpr int kThreads = 128, kPoints = 24;
  unsigned inside = 0;
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    Philox numbers = {
        {thread * 2 / 4, 0, thread, 0}, {2024, 0}, {}, static_cast<int>(thread * 2 % 4)};
    numbers.run();
    for (int point = 0; point < kPoints; ++point) {
      const float x = numbers.uniform(), y = numbers.uniform();
      if (x * x + y * y <= 1) ++inside;
    }
  }
  std::printf("%u of %d points, pi is about %.3f\n", inside, kThreads * kPoints,
              4.0 * inside / (kThreads * kPoints));
}
