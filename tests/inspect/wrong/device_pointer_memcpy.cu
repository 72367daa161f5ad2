// Fills an array with a ramp on the device and fetches it.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CUDA_CHECK(expr)                     \
  do {                                       \
    cudaError_t status = (expr);             \
    if (status != cudaSuccess) {             \
      fprintf(stderr, "%s failed\n", #expr); \
      exit(1);                               \
    }                                        \
  } while (0)

__global__ void ramp(float* out, int n, float step) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i * step;
}

int main() {
  const int n = 300;
  float* result = (float*)malloc(n * sizeof(float));
  float* d_out = nullptr;
  CUDA_CHECK(cudaMalloc(&d_out, n * sizeof(float)));
  ramp<<<(n + 63) / 64, 64>>>(d_out, n, 0.25f);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  memcpy(result, d_out, n * sizeof(float));  // expect: device_pointer

  printf("%.2f %.2f\n", result[1], result[n - 1]);
  CUDA_CHECK(cudaFree(d_out));
  free(result);
  return 0;
}
