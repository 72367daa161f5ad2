// Sums of 128 elements each and their total.
#include <stdio.h>

int main(void) {
  int n = 1000, total = 0;
  for (int b = 0; b * 128 < n; b++) {
    int sum = 0;
    for (int i = b * 128; i < (b + 1) * 128 && i < n; i++) sum += i % 9 - 2;
    printf("block %d: %d\n", b, sum);
    total += sum;
  }
  printf("total: %d\n", total);
  return 0;
}
