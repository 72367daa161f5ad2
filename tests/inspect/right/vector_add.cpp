// Adds two vectors.
#include <cstdio>
#include <vector>

int main() {
  const int n = 1000;
  std::vector<float> c(n);
  for (int i = 0; i < n; ++i) c[i] = static_cast<float>(i + 2 * (i % 100));

  double sum = 0;
  for (int i = 0; i < n; ++i) sum += c[i];
  printf("c[0] = %.1f, c[1] = %.1f, c[999] = %.1f\n", c[0], c[1], c[999]);
  printf("sum = %.0f\n", sum);
  return 0;
}
