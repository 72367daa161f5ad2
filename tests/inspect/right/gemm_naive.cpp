// C = 2 * A * B + 0.5 * C.
#include <cstdio>
#include <vector>

int main() {
  const int m = 33, n = 47, k = 20;
  std::vector<double> c(m * n);
  double sum = 0;
  for (int row = 0; row < m; ++row) {
    for (int col = 0; col < n; ++col) {
      double dot = 0;
      for (int p = 0; p < k; ++p) dot += ((row * k + p) % 7 - 3) * ((p * n + col) % 5 - 1);
      c[row * n + col] = 2 * dot + 0.5 * ((row * n + col) % 3);
      sum += c[row * n + col];
    }
  }
  printf("c[0][0] = %.1f, c[1][2] = %.1f, c[32][46] = %.1f\n", c[0], c[n + 2], c[m * n - 1]);
  printf("sum = %.1f\n", sum);
  return 0;
}
