// Gravity of n bodies.
#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  const int n = 100;
  const double dt = 0.125;
  std::vector<double> p(3 * n), v(3 * n);
  for (int i = 0; i < n; ++i) {
    p[3 * i] = i * 7 % 19;
    p[3 * i + 1] = i * 5 % 23;
    p[3 * i + 2] = i * 3 % 17;
  }
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        double d[3], squared = 1.0;
        for (int k = 0; k < 3; ++k) {
          d[k] = p[3 * j + k] - p[3 * i + k];
          squared += d[k] * d[k];
        }
        for (int k = 0; k < 3; ++k)
          v[3 * i + k] += d[k] * (1 + j % 3) * std::pow(squared, -1.5) * dt;
      }
    }
    for (int k = 0; k < 3 * n; ++k) p[k] += v[k] * dt;
  }
  for (int i : {0, 33, 99}) {
    printf("body %d: %.3f %.3f %.3f\n", i, p[3 * i], p[3 * i + 1], p[3 * i + 2]);
  }
}
