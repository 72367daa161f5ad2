// Reduction with warp shuffles. A functor selects the operation.
#include <algorithm>
#include <climits>
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

struct Sum {
  __host__ __device__ int operator()(int a, int b) const { return a + b; }
};

struct Max {
  __host__ __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};

template <typename T, typename Op>
__device__ T warp_reduce(T value, Op op) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = op(value, __shfl_down_sync(0xffffffff, value, offset));
  }
  return value;
}

template <typename T, typename Op>
__global__ void reduce(const T* in, T* out, int n, T identity, Op op) {
  __shared__ T warp_results[32];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int warps = blockDim.x / 32;

  T value = identity;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    value = op(value, in[i]);
  }
  value = warp_reduce(value, op);
  if (lane == 0) warp_results[warp] = value;
  __syncthreads();

  if (warp == 0) {
    value = lane < warps ? warp_results[lane] : identity;
    value = warp_reduce(value, op);
    if (lane == 0) out[blockIdx.x] = value;
  }
}

int main() {
  const int n = 1000, grid = 2, block = 160;
  std::vector<int> in(n), sums(grid), maxima(grid);
  for (int i = 0; i < n; ++i) in[i] = (i * 37) % 211 - 100;

  int *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_out, grid * sizeof(int)));
  CHECK(cudaMemcpy(d_in, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));

  reduce<<<grid, block>>>(d_in, d_out, n, 0, Sum{});
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(sums.data(), d_out, grid * sizeof(int), cudaMemcpyDeviceToHost));
  reduce<<<grid, block>>>(d_in, d_out, n, INT_MIN, Max{});
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(maxima.data(), d_out, grid * sizeof(int), cudaMemcpyDeviceToHost));

  printf("sum %d\n", sums[0] + sums[1]);
  printf("max %d\n", std::max(maxima[0], maxima[1]));
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
}
