#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

using Words = std::uint32_t[5];

void step(Words& v) {
  const std::uint32_t t = v[0] ^ (v[0] >> 2);
  for (int i = 0; i < 4; ++i) v[i] = v[i + 1];
  v[4] = v[3] ^ (v[3] << 4) ^ t ^ (t << 1);
}

/// The images of the 160 vectors with one bit.
struct Matrix {
  Words rows[160];

  void apply(Words& v) const {
    Words sum = {};
    for (int bit = 0; bit < 160; ++bit) {
      if ((v[bit / 32] >> bit % 32 & 1) == 0) continue;
      for (int i = 0; i < 5; ++i) sum[i] ^= rows[bit][i];
    }
    std::memcpy(v, sum, sizeof sum);
  }
};

struct Xorwow {
  std::uint32_t d;
  Words v;

  std::uint32_t next() {
    step(v);
    d += 362437;
    return v[4] + d;
  }
  float uniform() { return static_cast<float>(next()) / 4294967296.0f + 0.5f / 4294967296.0f; }
};

int main() {
  // A sequence is 2^67 steps long.
  std::vector<Matrix> square(2);
  for (int bit = 0; bit < 160; ++bit) {
    std::memset(square[0].rows[bit], 0, sizeof(Words));
    square[0].rows[bit][bit / 32] = 1u << bit % 32;
    step(square[0].rows[bit]);
  }
  for (int i = 0; i < 67; ++i) {
    square[1] = square[0];
    for (Words& row : square[1].rows) square[0].apply(row);
    square[0] = square[1];
  }
  constexpr int kThreads = 128;
  constexpr std::uint64_t kSeed = 1234567890123ull;
  const std::uint32_t low = 1099087573u * (static_cast<std::uint32_t>(kSeed) ^ 0xAAD26B49u);
  const std::uint32_t high = 2591861531u * (static_cast<std::uint32_t>(kSeed >> 32) ^ 0xF7DCEFDDu);
  unsigned buckets[8] = {}, last[kThreads];
  double sum = 0;
  for (int thread = 0; thread < kThreads; ++thread) {
    Xorwow numbers = {
        6615241u + high + low,
        {123456789u + low, 362436069u ^ low, 521288629u + high, 88675123u ^ high, 5783321u + low}};
    for (int i = 0; i < thread; ++i) square[0].apply(numbers.v);
    for (int i = 0; i < 10 * thread; ++i) numbers.next();
    for (int draw = 0; draw < 16; ++draw) {
      const int bucket = static_cast<int>(numbers.uniform() * 8);
      ++buckets[bucket < 8 ? bucket : 7];
    }
    last[thread] = numbers.next();
    for (int pair = 0; pair < 4; ++pair) {
      const double length = std::sqrt(-2 * std::log(static_cast<double>(numbers.uniform())));
      const double angle = 6.283185307179586 * static_cast<double>(numbers.uniform());
      sum += length * (std::sin(angle) + std::cos(angle));
    }
  }
  for (const unsigned count : buckets) std::printf("%u ", count);
  std::printf("\n%08x %08x %08x\n", last[0], last[1], last[kThreads - 1]);
  std::printf("mean %.3f\n", sum / (kThreads * 8));
}
