// Matrix product.
#include <cstdio>
#include <vector>

int main() {
  const int M = 40, N = 37, K = 45;
  std::vector<float> C(M * N);
  for (int r = 0; r < M; r++) {
    for (int c = 0; c < N; c++) {
      for (int p = 0; p < K; p++) {
        C[r * N + c] += static_cast<float>(((r * K + p) % 6) * ((p * N + c) % 11 - 5));
      }
    }
  }

  double checksum = 0;
  for (int i = 0; i < M * N; i++) checksum += C[i] * (i % 4 + 1);
  printf("C[0][0] %.0f, C[17][16] %.0f, C[39][36] %.0f\n", C[0], C[17 * N + 16], C[M * N - 1]);
  printf("checksum %.0f\n", checksum);
}
