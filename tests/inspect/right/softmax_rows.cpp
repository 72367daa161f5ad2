// Softmax of each row.
#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  const int rows = 12, cols = 100;
  for (int r = 0; r < rows; r += 5) {
    std::vector<double> y(cols);
    double total = 0, sum = 0;
    for (int c = 0; c < cols; ++c) {
      y[c] = std::exp(0.5 * ((r * 7 + c * 3) % 11) - 5.0);  // 5 is the largest value of a row
      total += y[c];
    }
    for (int c = 0; c < cols; ++c) {
      y[c] /= total;
      sum += y[c];
    }
    printf("row %d: %.4f %.4f, sum %.3f\n", r, y[6], y[7], sum);
  }
}
