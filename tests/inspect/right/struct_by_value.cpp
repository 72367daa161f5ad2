// Moves points.
#include <cstdio>

int main() {
  const int n = 500;
  float sum = 0, last = 0;
  for (int i = 0; i < n; ++i) {
    const float x = i + 1, y = 2 * i - 2, z = 2;
    sum += x + y + z + 1;
    last = x;
  }
  printf("first %.1f %.1f %.1f, last %.1f, sum %.0f\n", 1.0, -2.0, 2.0, last, sum);
}
