// Matrix transpose.
#include <cstdio>
#include <vector>

int main() {
  const int width = 75, height = 50;
  const int n = width * height;
  std::vector<float> out(n);
  for (int i = 0; i < n; ++i) {
    out[i % width * height + i / width] = static_cast<float>(i % 1009);
  }

  double checksum = 0;
  for (int i = 0; i < n; ++i) checksum += static_cast<double>(out[i]) * (i % 13);
  printf("%.0f %.0f %.0f\n", out[1], out[height], out[n - 1]);
  printf("checksum %.0f\n", checksum);
}
