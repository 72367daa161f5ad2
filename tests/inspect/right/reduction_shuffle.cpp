// Sum and maximum of 1000 integers.
#include <algorithm>
#include <climits>
#include <cstdio>

int main() {
  int sum = 0, maximum = INT_MIN;
  for (int i = 0; i < 1000; ++i) {
    const int value = (i * 37) % 211 - 100;
    sum += value;
    maximum = std::max(maximum, value);
  }
  printf("sum %d\n", sum);
  printf("max %d\n", maximum);
}
