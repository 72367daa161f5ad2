// Sum of 3000 floats, with the sums of the first and the last 256-element block.
#include <algorithm>
#include <cstdio>
#include <vector>

int main() {
  const int n = 3000, block = 256;
  std::vector<float> block_sums;
  float total = 0.0f;
  for (int first = 0; first < n; first += block) {
    float sum = 0.0f;
    for (int i = first; i < std::min(first + block, n); ++i) sum += static_cast<float>(i % 10);
    block_sums.push_back(sum);
    total += sum;
  }
  printf("first block %.0f, last block %.0f\n", block_sums.front(), block_sums.back());
  printf("total %.0f\n", total);
  return 0;
}
