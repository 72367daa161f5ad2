// SAXPY with float4 loads in a grid-stride loop, timed with CUDA events.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(expr)                                                     \
  do {                                                                       \
    cudaError_t status = (expr);                                             \
    if (status != cudaSuccess) {                                             \
      fprintf(stderr, "%s failed: %s\n", #expr, cudaGetErrorString(status)); \
      exit(1);                                                               \
    }                                                                        \
  } while (0)

__global__ void saxpy(float a, const float* __restrict__ x, float* __restrict__ y, int n) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int stride = gridDim.x * blockDim.x;
  const float4* x4 = reinterpret_cast<const float4*>(x);
  float4* y4 = reinterpret_cast<float4*>(y);
  for (int i = thread; i < n / 4; i += stride) {
    const float4 u = x4[i];
    float4 v = y4[i];
    v.x += a * u.x;
    v.y += a * u.y;
    v.z += a * u.z;
    v.w += a * u.w;
    y4[i] = v;
  }
  // The last n % 4 elements do not fill a float4.
  for (int i = n / 4 * 4 + thread; i < n; i += stride) y[i] += a * x[i];
}

int main() {
  const int n = 5003;
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; ++i) {
    x[i] = static_cast<float>(i % 17);
    y[i] = static_cast<float>(i % 5);
  }

  float *d_x, *d_y;
  CUDA_CHECK(cudaMalloc((void**)&d_x, n * sizeof(float)));
  CUDA_CHECK(cudaMalloc((void**)&d_y, n * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(d_y, y.data(), n * sizeof(float), cudaMemcpyHostToDevice));

  cudaEvent_t start, stop;
  CUDA_CHECK(cudaEventCreate(&start));
  CUDA_CHECK(cudaEventCreate(&stop));
  CUDA_CHECK(cudaEventRecord(start));
  saxpy<<<2, 256>>>(3.0f, d_x, d_y, n);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaEventRecord(stop));
  CUDA_CHECK(cudaEventSynchronize(stop));
  float milliseconds = -1.0f;
  CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
  CUDA_CHECK(cudaMemcpy(y.data(), d_y, n * sizeof(float), cudaMemcpyDeviceToHost));

  double sum = 0;
  for (float value : y) sum += value;
  printf("y[7] = %.0f, y[%d] = %.0f, sum = %.0f\n", y[7], n - 1, y[n - 1], sum);
  printf("timed: %s\n", milliseconds >= 0.0f ? "yes" : "no");

  CUDA_CHECK(cudaEventDestroy(start));
  CUDA_CHECK(cudaEventDestroy(stop));
  CUDA_CHECK(cudaFree(d_x));
  CUDA_CHECK(cudaFree(d_y));
}
