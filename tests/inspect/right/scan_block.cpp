// Inclusive scan.
#include <cstdio>
#include <vector>

int main() {
  const int n = 1000;
  std::vector<int> out(n);
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += i % 11 - 3;
    out[i] = sum;
  }
  printf("total %d\n", sum);
  printf("out[0] %d, out[255] %d, out[256] %d, out[999] %d\n", out[0], out[255], out[256],
         out[999]);
}
