// For each point, sums the distances to all points; the points pass through a shared tile.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(expr)                     \
  do {                                       \
    cudaError_t status = (expr);             \
    if (status != cudaSuccess) {             \
      fprintf(stderr, "%s failed\n", #expr); \
      exit(1);                               \
    }                                        \
  } while (0)

constexpr int kBlock = 64;

__global__ void sum_distances(const int* points, int* sums, int n) {
  __shared__ int tile[kBlock];
  const int i = blockIdx.x * kBlock + threadIdx.x;
  const int mine = i < n ? points[i] : 0;
  int sum = 0;
  for (int base = 0; base < n; base += kBlock) {
    const int j = base + threadIdx.x;
    tile[threadIdx.x] = j < n ? points[j] : 0;  // expect: shared_race
    __syncthreads();
    const int count = min(kBlock, n - base);
    for (int t = 0; t < count; ++t) {
      sum += abs(tile[t] - mine);  // expect: shared_race
    }
  }
  if (i < n) sums[i] = sum;
}

int main() {
  const int n = 300;
  std::vector<int> points(n), sums(n);
  for (int i = 0; i < n; ++i) points[i] = (i * 71) % 307;

  int *d_points, *d_sums;
  CUDA_CHECK(cudaMalloc(&d_points, n * sizeof(int)));
  CUDA_CHECK(cudaMalloc(&d_sums, n * sizeof(int)));
  CUDA_CHECK(cudaMemcpy(d_points, points.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  sum_distances<<<(n + kBlock - 1) / kBlock, kBlock>>>(d_points, d_sums, n);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(sums.data(), d_sums, n * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", sums[0], sums[n - 1]);
  CUDA_CHECK(cudaFree(d_points));
  CUDA_CHECK(cudaFree(d_sums));
}
