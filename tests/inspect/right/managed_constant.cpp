// x^3 - 7 x + 5 for each element.
#include <cstdio>
#include <vector>

int main() {
  const int n = 1000;
  std::vector<int> values(n);
  unsigned int negative = 0;
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    const int x = i % 21 - 10;
    values[i] = x * x * x - 7 * x + 5;
    negative += values[i] < 0;
    sum += values[i];
  }
  printf("values %d %d %d\n", values[0], values[10], values[999]);
  printf("negative %u, sum %d\n", negative, sum);
  return 0;
}
