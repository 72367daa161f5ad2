// x * x - 2 * x + 1 for each element.
#include <cstdio>
#include <vector>

int main() {
  const int n = 1999;
  std::vector<int> out(n);
  long long sum = 0;
  for (int i = 0; i < n; ++i) {
    const int x = i % 40;
    out[i] = x * x - 2 * x + 1;
    sum += out[i];
  }
  printf("out[0] %d, out[999] %d, out[1000] %d, out[1998] %d\n", out[0], out[999], out[1000],
         out[1998]);
  printf("sum %lld\n", sum);
  return 0;
}
