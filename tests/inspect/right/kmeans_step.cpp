// Three steps of k-means.
#include <cstdio>

int main() {
  const int n = 300, clusters = 4;
  double x[clusters], y[clusters];
  int counts[clusters];
  for (int c = 0; c < clusters; ++c) {
    x[c] = (c * 70 + 1) * 37 % 101;
    y[c] = (c * 70 + 1) * 53 % 89;
  }
  for (int step = 0; step < 3; ++step) {
    double sum_x[clusters] = {}, sum_y[clusters] = {};
    for (int c = 0; c < clusters; ++c) counts[c] = 0;
    for (int i = 0; i < n; ++i) {
      const double px = i * 37 % 101, py = i * 53 % 89;
      int nearest = 0;
      for (int c = 1; c < clusters; ++c) {
        const double d = (px - x[c]) * (px - x[c]) + (py - y[c]) * (py - y[c]);
        const double best =
            (px - x[nearest]) * (px - x[nearest]) + (py - y[nearest]) * (py - y[nearest]);
        if (d < best) nearest = c;
      }
      sum_x[nearest] += px;
      sum_y[nearest] += py;
      ++counts[nearest];
    }
    for (int c = 0; c < clusters; ++c) {
      if (counts[c] == 0) continue;
      x[c] = sum_x[c] / counts[c];
      y[c] = sum_y[c] / counts[c];
    }
  }
  for (int c = 0; c < clusters; ++c) {
    printf("cluster %d: %d points, (%.3f, %.3f)\n", c, counts[c], x[c], y[c]);
  }
}
