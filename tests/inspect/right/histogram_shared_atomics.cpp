// Histogram with 50 bins.
#include <cstdio>

int main() {
  const int n = 5000, bin_count = 50;
  unsigned int bins[bin_count] = {};
  for (int i = 0; i < n; ++i) ++bins[(i * i + 3 * i) % bin_count];

  unsigned int total = 0, weighted = 0;
  for (int b = 0; b < bin_count; ++b) {
    total += bins[b];
    weighted += b * bins[b];
  }
  printf("bins: %u %u %u %u\n", bins[0], bins[4], bins[10], bins[49]);
  printf("total %u, weighted %u\n", total, weighted);
}
