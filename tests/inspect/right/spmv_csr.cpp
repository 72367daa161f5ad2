// Sparse matrix-vector product.
#include <cstdio>
#include <vector>

int main() {
  const int rows = 90, cols = 70;
  std::vector<int> y(rows);
  int elements = 0, checksum = 0;
  for (int r = 0; r < rows; ++r) {
    for (int c = r % 4; c < cols && r % 10 != 9; c += 1 + r % 6) {
      y[r] += ((r + c) % 5 - 1) * (c % 6);
      ++elements;
    }
    checksum += y[r] * (r % 8 + 1);
  }
  printf("%d elements, y[0] = %d, y[9] = %d, y[89] = %d, y[88] = %d\n", elements, y[0], y[9], y[89],
         y[88]);
  printf("checksum = %d\n", checksum);
}
