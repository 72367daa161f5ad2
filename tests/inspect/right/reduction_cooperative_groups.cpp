// Sums of 192 elements each and their total.
#include <cstdio>

int main() {
  const int n = 1000, block = 192;
  int total = 0;
  for (int b = 0; b * block < n; ++b) {
    int sum = 0;
    for (int i = b * block; i < (b + 1) * block && i < n; ++i) sum += i % 2 ? -i : 3 * i;
    printf("block %d: %d\n", b, sum);
    total += sum;
  }
  printf("total: %d\n", total);
  return 0;
}
