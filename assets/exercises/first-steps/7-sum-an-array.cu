// Sums an array: each block sums 256 elements in shared memory, the host sums the results.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int kThreads = 256;  // per block

__global__ void sum_blocks(const int* in, int* sums, int n) {
  __shared__ int partial[kThreads];
  const int t = threadIdx.x, i = blockIdx.x * kThreads + t;
  partial[t] = i < n ? in[i] : 0;
  // The upper half is added to the lower one, until one element is left.
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) partial[t] += partial[t + half];
  }
  if (t == 0) sums[blockIdx.x] = partial[0];
}

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  printf("CUDA reports: %s\n", cudaGetErrorString(error));
  exit(1);
}

int main() {
  const int n = 1000, blocks = (n + kThreads - 1) / kThreads;
  std::vector<int> in(n), sums(blocks);
  for (int i = 0; i < n; ++i) in[i] = i;

  int *d_in, *d_sums;
  check(cudaMalloc(&d_in, n * sizeof(int)));
  check(cudaMalloc(&d_sums, blocks * sizeof(int)));
  check(cudaMemcpy(d_in, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  sum_blocks<<<blocks, kThreads>>>(d_in, d_sums, n);
  check(cudaGetLastError());
  check(cudaMemcpy(sums.data(), d_sums, blocks * sizeof(int), cudaMemcpyDeviceToHost));

  int total = 0;
  for (int b = 0; b < blocks; ++b) total += sums[b];
  printf("the sum is %d\n", total);
  check(cudaFree(d_in));
  check(cudaFree(d_sums));
  return 0;
}
