// Matrix product in which each thread keeps a 4 x 4 tile of accumulators in registers.
#include <cstdio>
#include <vector>

constexpr int kBlockM = 32, kBlockN = 32, kBlockK = 8;
constexpr int kThreadM = 4, kThreadN = 4;
constexpr int kThreads = (kBlockM / kThreadM) * (kBlockN / kThreadN);

__global__ void __launch_bounds__(kThreads)
    gemm(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m,
         int n, int k) {
  __shared__ float a_tile[kBlockK][kBlockM];
  __shared__ float b_tile[kBlockK][kBlockN];
  const int row0 = blockIdx.y * kBlockM, col0 = blockIdx.x * kBlockN;
  const int thread_row = threadIdx.x / (kBlockN / kThreadN) * kThreadM;
  const int thread_col = threadIdx.x % (kBlockN / kThreadN) * kThreadN;
  float acc[kThreadM][kThreadN] = {};

  for (int k0 = 0; k0 < k; k0 += kBlockK) {
    for (int e = threadIdx.x; e < kBlockM * kBlockK; e += kThreads) {
      const int i = e / kBlockK, p = e % kBlockK;
      const bool inside = row0 + i < m && k0 + p < k;
      a_tile[p][i] = inside ? a[(row0 + i) * k + k0 + p] : 0.0f;
    }
    for (int e = threadIdx.x; e < kBlockK * kBlockN; e += kThreads) {
      const int p = e / kBlockN, j = e % kBlockN;
      const bool inside = k0 + p < k && col0 + j < n;
      b_tile[p][j] = inside ? b[(k0 + p) * n + col0 + j] : 0.0f;
    }
    __syncthreads();
    for (int p = 0; p < kBlockK; ++p) {
      for (int i = 0; i < kThreadM; ++i) {
        for (int j = 0; j < kThreadN; ++j) {
          acc[i][j] += a_tile[p][thread_row + i] * b_tile[p][thread_col + j];
        }
      }
    }
    __syncthreads();
  }

  for (int i = 0; i < kThreadM; ++i) {
    for (int j = 0; j < kThreadN; ++j) {
      const int row = row0 + thread_row + i, col = col0 + thread_col + j;
      if (row < m && col < n) c[row * n + col] = acc[i][j];
    }
  }
}

int main() {
  const int m = 50, n = 45, k = 21;
  std::vector<float> a(m * k), b(k * n), c(m * n);
  for (int i = 0; i < m * k; ++i) a[i] = static_cast<float>(i % 9 - 4);
  for (int i = 0; i < k * n; ++i) b[i] = static_cast<float>(i % 7);

  float *d_a, *d_b, *d_c;
  cudaMalloc(&d_a, a.size() * sizeof(float));
  cudaMalloc(&d_b, b.size() * sizeof(float));
  cudaMalloc(&d_c, c.size() * sizeof(float));
  cudaMemcpy(d_a, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(d_b, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice);
  const dim3 grid((n + kBlockN - 1) / kBlockN, (m + kBlockM - 1) / kBlockM);
  gemm<<<grid, kThreads>>>(d_a, d_b, d_c, m, n, k);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) {
    printf("launch failed: %s\n", cudaGetErrorString(error));
    return 1;
  }
  cudaMemcpy(c.data(), d_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost);

  double checksum = 0;
  for (int i = 0; i < m * n; ++i) checksum += c[i] * (i % 5 - 1);
  printf("%.0f %.0f %.0f\n", c[0], c[33 * n + 32], c[m * n - 1]);
  printf("checksum %.0f\n", checksum);
  cudaFree(d_a);
  cudaFree(d_b);
  cudaFree(d_c);
}
