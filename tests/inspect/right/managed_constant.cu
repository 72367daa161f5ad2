// Managed memory, coefficients in constant memory and a global device counter.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#define CUDA_CHECK(expr)                                                     \
  do {                                                                       \
    cudaError_t status = (expr);                                             \
    if (status != cudaSuccess) {                                             \
      fprintf(stderr, "%s failed: %s\n", #expr, cudaGetErrorString(status)); \
      exit(1);                                                               \
    }                                                                        \
  } while (0)

__constant__ int coefficients[4];
__device__ unsigned int negative_count;

__global__ void evaluate(int* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int x = values[i];
  int result = 0;
  for (int c = 3; c >= 0; --c) result = result * x + coefficients[c];
  values[i] = result;
  if (result < 0) atomicAdd(&negative_count, 1u);
}

int main() {
  const int n = 1000, block = 96;
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  if (properties.maxThreadsPerBlock < block || properties.warpSize != 32) {
    fprintf(stderr, "this device does not fit\n");
    return 1;
  }

  int* values = nullptr;
  CUDA_CHECK(cudaMallocManaged(&values, n * sizeof(int)));
  for (int i = 0; i < n; ++i) values[i] = i % 21 - 10;

  const int host_coefficients[4] = {5, -7, 0, 1};  // x^3 - 7 x + 5
  const unsigned int zero = 0;
  CUDA_CHECK(cudaMemcpyToSymbol(coefficients, host_coefficients, sizeof(host_coefficients)));
  CUDA_CHECK(cudaMemcpyToSymbol(negative_count, &zero, sizeof(zero)));

  evaluate<<<(n + block - 1) / block, block>>>(values, n);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  unsigned int negative = 0;
  CUDA_CHECK(cudaMemcpyFromSymbol(&negative, negative_count, sizeof(negative)));
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += values[i];
  printf("values %d %d %d\n", values[0], values[10], values[999]);
  printf("negative %u, sum %d\n", negative, sum);
  CUDA_CHECK(cudaFree(values));
  return 0;
}
