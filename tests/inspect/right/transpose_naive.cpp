// Matrix transpose.
#include <cstdio>
#include <vector>

int main() {
  const int rows = 45, cols = 70;
  std::vector<float> out(rows * cols);
  for (int r = 0; r < rows; r++) {
    for (int c = 0; c < cols; c++) out[c * rows + r] = 100.0f * r + c;
  }

  double checksum = 0;
  for (int i = 0; i < rows * cols; i++) checksum += out[i] * (i % 7);
  printf("out[1] = %.0f, out[%d] = %.0f\n", out[1], rows, out[rows]);
  printf("checksum = %.0f\n", checksum);
  return 0;
}
