// Sum, maximum and minimum with one atomic per block: atomicAdd, atomicMax and a CAS loop.
#include <cfloat>
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

constexpr int kBlock = 64;

struct Result {
  float sum;
  int max_index;
  float min;
};

// *address must be FLT_MAX before the launch.
__device__ void atomic_min(float* address, float value) {
  int* bits = reinterpret_cast<int*>(address);
  int old = __float_as_int(FLT_MAX);
  while (value < __int_as_float(old)) {
    const int assumed = old;
    old = atomicCAS(bits, assumed, __float_as_int(value));
    if (old == assumed) break;
  }
}

// max_index is the largest index that holds a value above the threshold.
__global__ void reduce(const float* in, int n, float threshold, Result* result) {
  __shared__ float block_sum, block_min;
  __shared__ int block_max;
  if (threadIdx.x == 0) {
    block_sum = 0.0f;
    block_min = FLT_MAX;
    block_max = -1;
  }
  __syncthreads();
  for (int i = blockIdx.x * kBlock + threadIdx.x; i < n; i += gridDim.x * kBlock) {
    atomicAdd(&block_sum, in[i]);
    atomic_min(&block_min, in[i]);
    if (in[i] > threshold) atomicMax(&block_max, i);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&result->sum, block_sum);
    atomic_min(&result->min, block_min);
    atomicMax(&result->max_index, block_max);
  }
}

int main() {
  const int n = 777;
  std::vector<float> in(n);
  for (int i = 0; i < n; ++i) in[i] = static_cast<float>((i * 29 + 11) % 97 - 20);

  float* d_in;
  Result* d_result;
  Result result = {0.0f, -1, FLT_MAX};
  CUDA_CHECK(cudaMalloc(&d_in, n * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&d_result, sizeof(Result)));
  CUDA_CHECK(cudaMemcpy(d_in, in.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(d_result, &result, sizeof(Result), cudaMemcpyHostToDevice));
  reduce<<<4, kBlock>>>(d_in, n, 70.0f, d_result);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(&result, d_result, sizeof(Result), cudaMemcpyDeviceToHost));
  printf("sum %.0f, min %.0f, last index above 70: %d\n", result.sum, result.min, result.max_index);
  CUDA_CHECK(cudaFree(d_in));
  CUDA_CHECK(cudaFree(d_result));
}
