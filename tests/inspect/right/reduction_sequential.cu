// Sum with sequential addressing in two passes: first per block, then over the block sums.
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

template <int kBlock>
__global__ void reduce(const float* __restrict__ in, float* __restrict__ out, int n) {
  __shared__ float partial[kBlock];
  const int t = threadIdx.x;
  const int i = blockIdx.x * kBlock + t;
  partial[t] = i < n ? in[i] : 0.0f;
  __syncthreads();
#pragma unroll
  for (int s = kBlock / 2; s > 0; s >>= 1) {
    if (t < s) partial[t] += partial[t + s];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = partial[0];
}

int main() {
  constexpr int n = 3000;
  constexpr int block = 256;
  constexpr int grid = (n + block - 1) / block;
  static_assert(grid <= 32, "the second pass has one block of 32 threads");

  std::vector<float> values(n), block_sums(grid);
  for (int i = 0; i < n; ++i) values[i] = static_cast<float>(i % 10);

  float *d_values, *d_block_sums, *d_total;
  CUDA_CHECK(cudaMalloc(&d_values, n * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&d_block_sums, grid * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&d_total, sizeof(float)));
  CUDA_CHECK(cudaMemcpy(d_values, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));

  reduce<block><<<grid, block>>>(d_values, d_block_sums, n);
  CUDA_CHECK(cudaGetLastError());
  reduce<32><<<1, 32>>>(d_block_sums, d_total, grid);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  float total = 0.0f;
  CUDA_CHECK(cudaMemcpy(&total, d_total, sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(
      cudaMemcpy(block_sums.data(), d_block_sums, grid * sizeof(float), cudaMemcpyDeviceToHost));
  printf("first block %.0f, last block %.0f\n", block_sums.front(), block_sums.back());
  printf("total %.0f\n", total);

  CUDA_CHECK(cudaFree(d_values));
  CUDA_CHECK(cudaFree(d_block_sums));
  CUDA_CHECK(cudaFree(d_total));
  return 0;
}
