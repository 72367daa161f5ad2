// Sum of i * i % 31, with the sums of the first and the last 256 elements.
#include <cstdio>
#include <vector>

int main() {
  const unsigned n = 1500, per_block = 256;
  std::vector<int> out((n + per_block - 1) / per_block);
  int total = 0;
  for (unsigned i = 0; i < n; ++i) {
    out[i / per_block] += i * i % 31;
    total += i * i % 31;
  }
  printf("%u blocks, first %d, last %d\n", static_cast<unsigned>(out.size()), out.front(),
         out.back());
  printf("total %d\n", total);
}
