#include <cstdio>
#include <initializer_list>

constexpr int kM = 64, kN = 32, kK = 48;

int number(int i) {
  return i * 7 % 11 - 5;
}

int main() {
  double sum[2] = {}, weighted[2] = {};
  for (int row = 0; row < kM; ++row) {
    for (int column = 0; column < kN; ++column) {
      const int at = row * kN + column;
      float by_row = 0, by_column = 0;
      for (int k = 0; k < kK; ++k) {
        by_row += static_cast<float>(number(row * kK + k) * number(3 * (column * kK + k)));
        by_column += static_cast<float>(number(k * kM + row) * number(3 * (k * kN + column)));
      }
      const float both[2] = {0.5f * by_row + static_cast<float>(number(at)) / 2.0f, by_column};
      for (int i = 0; i < 2; ++i) {
        sum[i] += both[i];
        weighted[i] += both[i] * (at % 101);
      }
    }
  }
  for (const char* name : {"16x16x16", "32x8x16", "8x32x16", "half"})
    std::printf("%s %.1f %.1f\n", name, sum[0], weighted[0]);
  std::printf("shared %.1f %.1f\n", sum[1], weighted[1]);
}
