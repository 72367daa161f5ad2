// C = alpha * A * B + beta * C with one thread per element of C.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                  \
  do {                                                                               \
    cudaError_t error = (call);                                                      \
    if (error != cudaSuccess) {                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      exit(EXIT_FAILURE);                                                            \
    }                                                                                \
  } while (0)

template <typename T>
__global__ void gemm(const T* a, const T* b, T* c, int m, int n, int k, T alpha, T beta) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n) return;
  T sum = 0;
  for (int p = 0; p < k; ++p) sum += a[row * k + p] * b[p * n + col];
  c[row * n + col] = alpha * sum + beta * c[row * n + col];
}

int main() {
  const int m = 33, n = 47, k = 20;
  std::vector<double> a(m * k), b(k * n), c(m * n);
  for (int i = 0; i < m * k; ++i) a[i] = i % 7 - 3;
  for (int i = 0; i < k * n; ++i) b[i] = i % 5 - 1;
  for (int i = 0; i < m * n; ++i) c[i] = i % 3;

  double *d_a, *d_b, *d_c;
  CHECK(cudaMalloc(&d_a, a.size() * sizeof(double)));
  CHECK(cudaMalloc(&d_b, b.size() * sizeof(double)));
  CHECK(cudaMalloc(&d_c, c.size() * sizeof(double)));
  CHECK(cudaMemcpy(d_a, a.data(), a.size() * sizeof(double), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_b, b.data(), b.size() * sizeof(double), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_c, c.data(), c.size() * sizeof(double), cudaMemcpyHostToDevice));

  gemm<<<dim3((n + 15) / 16, (m + 7) / 8),  // grid
         dim3(16, 8)                        // block
         >>>(d_a, d_b, d_c, m, n, k, 2.0, 0.5);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(c.data(), d_c, c.size() * sizeof(double), cudaMemcpyDeviceToHost));

  double sum = 0;
  for (double value : c) sum += value;
  printf("c[0][0] = %.1f, c[1][2] = %.1f, c[32][46] = %.1f\n", c[0], c[n + 2], c[m * n - 1]);
  printf("sum = %.1f\n", sum);

  CHECK(cudaFree(d_a));
  CHECK(cudaFree(d_b));
  CHECK(cudaFree(d_c));
  return 0;
}
