// 1D stencil of radius 3 with zeros outside the array.
#include <cstdio>
#include <vector>

int main() {
  const int n = 1000;
  std::vector<int> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = (i * 7) % 13;
  for (int i = 0; i < n; ++i) {
    for (int j = i - 3; j <= i + 3; ++j) {
      if (j >= 0 && j < n) out[i] += in[j];
    }
  }

  long long checksum = 0;
  for (int i = 0; i < n; ++i) checksum += static_cast<long long>(out[i]) * (i % 10 + 1);
  printf("first %d, block edge %d %d, last %d\n", out[0], out[127], out[128], out[n - 1]);
  printf("checksum %lld\n", checksum);
}
