// Attention of one head.
#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  const int seq = 50, dim = 8, n = seq * dim;
  std::vector<double> out(n);
  for (int row = 0; row < seq; ++row) {
    double total = 0;
    for (int key = 0; key < seq; ++key) {
      int dot = 0;
      for (int d = 0; d < dim; ++d) {
        dot += ((row * dim + d) % 5 - 2) * ((key * dim + d) % 7 - 3);
      }
      const double weight = std::exp(0.25 * dot);
      total += weight;
      for (int d = 0; d < dim; ++d) out[row * dim + d] += weight * ((key * dim + d) * 3 % 11);
    }
    for (int d = 0; d < dim; ++d) out[row * dim + d] /= total;
  }
  for (int i : {1, 123, 256, 399}) printf("out[%d] = %.3f\n", i, out[i]);
}
