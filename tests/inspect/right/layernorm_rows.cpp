// Layer normalization of each row.
#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  const int cols = 70;
  for (int row : {0, 6, 12}) {
    std::vector<double> x(cols), y(cols);
    double mean = 0, variance = 0;
    for (int c = 0; c < cols; ++c) {
      x[c] = ((row * cols + c) * 5) % 23 - 8;
      mean += x[c] / cols;
    }
    for (int c = 0; c < cols; ++c) variance += (x[c] - mean) * (x[c] - mean) / cols;
    for (int c = 0; c < cols; ++c) {
      y[c] = (x[c] - mean) / std::sqrt(variance + 1e-5) * (1 + c % 3) + c % 4;
    }
    printf("row %d: %.3f %.3f %.3f\n", row, y[0], y[1], y[69]);
  }
}
