#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

constexpr int kM = 32, kN = 16, kK = 64;

int number(int i) {
  return i * 7 % 11 - 5;
}

std::uint32_t bf16(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

int main() {
  double sum = 0, weighted = 0, power = 0;
  for (int row = 0; row < kM; ++row) {
    for (int column = 0; column < kN; ++column) {
      int each = 0;
      for (int k = 0; k < kK; ++k) each += number(row * kK + k) * number(3 * (k * kN + column));
      sum += each;
      weighted += each * ((row * kN + column) % 101);
      power += std::exp2(each / 64.0);
    }
  }
  std::printf("%.1f %.1f %.2f\n", sum, weighted, power);
  for (int i = 0; i < 32; i += 2) {
    const float high = static_cast<float>(number(i)) + 0.001f * static_cast<float>(i);
    const float low = static_cast<float>(number(i + 1)) + 0.001f * static_cast<float>(i + 1);
    std::printf("%08x ", bf16(high) << 16 | bf16(low));
  }
  std::printf("\n");
}
