// Histogram of bytes. Each block counts in shared memory and adds its bins to the global ones.
#include <cuda_runtime.h>

#include <algorithm>
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

constexpr int kBins = 50;

__global__ void histogram(const unsigned char* data, int n, unsigned int* bins) {
  __shared__ unsigned int local[kBins];
  for (int b = threadIdx.x; b < kBins; b += blockDim.x) local[b] = 0;
  __syncthreads();

  const int stride = blockDim.x * gridDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    atomicAdd(&local[data[i]], 1u);
  }
  __syncthreads();

  for (int b = threadIdx.x; b < kBins; b += blockDim.x) {
    if (local[b] > 0) atomicAdd(&bins[b], local[b]);
  }
}

int main() {
  const int n = 5000;
  std::vector<unsigned char> data(n);
  for (int i = 0; i < n; ++i) data[i] = static_cast<unsigned char>((i * i + 3 * i) % kBins);

  unsigned char* d_data;
  unsigned int* d_bins;
  CUDA_CHECK(cudaMalloc(&d_data, n));
  CUDA_CHECK(cudaMalloc(&d_bins, kBins * sizeof(unsigned int)));
  CUDA_CHECK(cudaMemcpy(d_data, data.data(), n, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(d_bins, 0, kBins * sizeof(unsigned int)));

  int min_grid = 0, block = 0;
  CUDA_CHECK(cudaOccupancyMaxPotentialBlockSize(&min_grid, &block, histogram, 0, 0));
  block = std::min(block, 256);
  histogram<<<4, block>>>(d_data, n, d_bins);
  CUDA_CHECK(cudaPeekAtLastError());

  unsigned int bins[kBins];
  CUDA_CHECK(cudaMemcpy(bins, d_bins, sizeof(bins), cudaMemcpyDeviceToHost));
  unsigned int total = 0, weighted = 0;
  for (int b = 0; b < kBins; ++b) {
    total += bins[b];
    weighted += b * bins[b];
  }
  printf("bins: %u %u %u %u\n", bins[0], bins[4], bins[10], bins[49]);
  printf("total %u, weighted %u\n", total, weighted);
  CUDA_CHECK(cudaFree(d_data));
  CUDA_CHECK(cudaFree(d_bins));
}
