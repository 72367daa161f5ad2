// Adds two vectors, element by element.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void add(const float* a, const float* b, float* sum, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = a[i] + b[i];
}

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  printf("CUDA reports: %s\n", cudaGetErrorString(error));
  exit(1);
}

int main() {
  const int n = 500;
  const size_t bytes = n * sizeof(float);
  std::vector<float> a(n), b(n), sum(n);
  for (int i = 0; i < n; ++i) {
    a[i] = i;
    b[i] = 0.5f;
  }

  float *d_a, *d_b, *d_sum;
  check(cudaMalloc(&d_a, bytes));
  check(cudaMalloc(&d_b, bytes));
  check(cudaMalloc(&d_sum, bytes));

  check(cudaMemcpy(d_a, a.data(), bytes, cudaMemcpyHostToDevice));
  check(cudaMemcpy(d_b, b.data(), bytes, cudaMemcpyHostToDevice));
  add<<<(n + 127) / 128, 128>>>(d_a, d_b, d_sum, n);
  check(cudaGetLastError());
  check(cudaMemcpy(sum.data(), d_sum, bytes, cudaMemcpyDeviceToHost));

  printf("first %.1f, last %.1f\n", sum[0], sum[n - 1]);
  check(cudaFree(d_a));
  check(cudaFree(d_b));
  check(cudaFree(d_sum));
  return 0;
}
