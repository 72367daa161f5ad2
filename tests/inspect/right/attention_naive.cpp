// Attention of three heads.
#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  const int heads = 3, seq = 20, dim = 8, n = heads * seq * dim;
  std::vector<double> out(n);
  for (int head = 0; head < heads; ++head) {
    for (int query = 0; query < seq; ++query) {
      double total = 0;
      std::vector<double> sum(dim);
      for (int key = 0; key < seq; ++key) {
        double dot = 0;
        for (int d = 0; d < dim; ++d) {
          const int i = (head * seq + query) * dim + d, j = (head * seq + key) * dim + d;
          dot += (i % 3 - 1) * (j % 5 - 2);
        }
        const double weight = std::exp(dot / std::sqrt(dim));
        total += weight;
        for (int d = 0; d < dim; ++d) sum[d] += weight * (((head * seq + key) * dim + d) % 7);
      }
      for (int d = 0; d < dim; ++d) out[(head * seq + query) * dim + d] = sum[d] / total;
    }
  }
  for (int i : {0, 100, 237, n - 1}) printf("out[%d] = %.3f\n", i, out[i]);
}
