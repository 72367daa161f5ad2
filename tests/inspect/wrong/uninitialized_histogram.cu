// Histogram of dice throws with global atomics.
#include <cstdio>
#include <vector>

__global__ void count_throws(const int* throws, int n, int* counts) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    atomicAdd(&counts[throws[i] - 1], 1);  // expect: uninitialized
  }
}

int main() {
  const int n = 700;
  std::vector<int> throws(n);
  for (int i = 0; i < n; ++i) throws[i] = (i * i + i / 3) % 6 + 1;

  int *d_throws, *d_counts;
  cudaMalloc(&d_throws, n * sizeof(int));
  cudaMalloc(&d_counts, 6 * sizeof(int));
  cudaMemcpy(d_throws, throws.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  const int block = 128;
  const int grid = (n + block - 1) / block;
  count_throws<<<grid, block>>>(d_throws, n, d_counts);

  int counts[6];
  cudaMemcpy(counts, d_counts, sizeof(counts), cudaMemcpyDeviceToHost);
  for (int face = 0; face < 6; ++face) printf("%d: %d\n", face + 1, counts[face]);
  cudaFree(d_throws);
  cudaFree(d_counts);
}
