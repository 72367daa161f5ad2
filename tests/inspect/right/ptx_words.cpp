#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

int number(int i) {
  return i * 7 % 11 - 5;
}
int tile(int row, int column) {
  return number(row * 16 + column);
}

/// To nearest, ties to even; of normal numbers.
std::uint32_t fp16(double x) {
  if (x == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(x), &exponent);  // 0.5 … 1
  const auto whole = static_cast<std::uint32_t>(std::nearbyint(fraction * 2048));
  return (x < 0 ? 0x8000u : 0u) + (static_cast<std::uint32_t>(exponent + 14) << 10) + whole - 1024;
}
std::uint32_t pair(double low, double high) {
  return fp16(low) | fp16(high) << 16;
}

void print(const char* name, const std::vector<std::uint32_t>& words) {
  std::uint64_t sum = 0;
  for (const std::uint32_t word : words) sum = sum * 31 + word;
  std::printf("%s %08x %08x %016llx\n", name, words[1], words.back(),
              static_cast<unsigned long long>(sum));
}

int main() {
  std::vector<std::uint32_t> words;
  for (std::uint32_t i = 0; i < 64; ++i) words.push_back(i % 32 | ((1u << i % 32) - 1) << 8);
  print("registers", words);

  std::vector<double> rows(256);
  for (int i = 0; i < 256; ++i) rows[i] = i % 8 < 6 ? i / 8 * 6 + i % 8 + 1 : 0;
  double sum = 0;
  for (int i = 0; i < 256; ++i) sum += rows[i] * (i + 1);
  std::printf("copies %.0f, a row: %.0f %.0f %.0f %.0f\n", sum, rows[8], rows[9], rows[13],
              rows[14]);

  words.clear();
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane / 4, at = lane % 4 * 2;
    const auto along = [&](int top) {
      return pair(tile(top + group, at), tile(top + group, at + 1));
    };
    const auto across = [&](int top, int left) {
      return pair(tile(top + at, left + group), tile(top + at + 1, left + group));
    };
    for (const std::uint32_t word :
         {along(0), across(0, 0), along(0), along(8), across(0, 0), across(8, 0), across(0, 8),
          across(8, 8), pair(1.0f / static_cast<float>(lane + 1), lane + 0.5), 0u})
      words.push_back(word);
  }
  print("matrices", words);

  words.clear();
  for (int lane = 0; lane < 32; ++lane) {
    for (int half = 0; half < 2; ++half) {
      int sums[2] = {1, 1};
      for (int i = 0; i < 2; ++i) {
        for (int k = 0; k < 16; ++k)
          sums[i] += tile(lane / 4 + half * 8, k) * tile(k, lane % 4 * 2 + i);
      }
      words.push_back(pair(sums[0], sums[1]));
    }
  }
  print("product", words);
}
