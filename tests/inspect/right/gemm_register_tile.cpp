// Matrix product.
#include <cstdio>
#include <vector>

int main() {
  const int m = 50, n = 45, k = 21;
  std::vector<float> c(m * n);
  for (int row = 0; row < m; ++row) {
    for (int col = 0; col < n; ++col) {
      int sum = 0;
      for (int p = 0; p < k; ++p) sum += ((row * k + p) % 9 - 4) * ((p * n + col) % 7);
      c[row * n + col] = static_cast<float>(sum);
    }
  }

  double checksum = 0;
  for (int i = 0; i < m * n; ++i) checksum += c[i] * (i % 5 - 1);
  printf("%.0f %.0f %.0f\n", c[0], c[33 * n + 32], c[m * n - 1]);
  printf("checksum %.0f\n", checksum);
}
