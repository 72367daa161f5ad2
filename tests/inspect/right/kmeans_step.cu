// Three steps of k-means: assign each point to the nearest centroid, then move the centroids.
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

#define LAUNCH(kernel, grid, block, ...)      \
  do {                                        \
    kernel<<<(grid), (block)>>>(__VA_ARGS__); \
    CUDA_CHECK(cudaGetLastError());           \
  } while (0)

constexpr int kClusters = 4;

struct Sums {
  float x, y;
  int count;
};

__global__ void assign(const float2* points, int n, const float2* centroids, Sums* sums) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float2 p = points[i];
  int nearest = 0;
  float nearest_distance = 0.0f;
  for (int c = 0; c < kClusters; ++c) {
    const float dx = p.x - centroids[c].x, dy = p.y - centroids[c].y;
    const float distance = dx * dx + dy * dy;
    if (c == 0 || distance < nearest_distance) {
      nearest = c;
      nearest_distance = distance;
    }
  }
  atomicAdd(&sums[nearest].x, p.x);
  atomicAdd(&sums[nearest].y, p.y);
  atomicAdd(&sums[nearest].count, 1);
}

__global__ void update(float2* centroids, const Sums* sums) {
  const int c = threadIdx.x;
  const Sums s = sums[c];
  if (s.count > 0) centroids[c] = make_float2(s.x / s.count, s.y / s.count);
}

int main() {
  const int n = 300, steps = 3;
  std::vector<float2> points(n), centroids(kClusters);
  for (int i = 0; i < n; ++i) points[i] = make_float2(i * 37 % 101, i * 53 % 89);
  for (int c = 0; c < kClusters; ++c) centroids[c] = points[c * 70 + 1];

  float2 *d_points, *d_centroids;
  Sums* d_sums;
  CUDA_CHECK(cudaMalloc(&d_points, n * sizeof(float2)));
  CUDA_CHECK(cudaMalloc(&d_centroids, kClusters * sizeof(float2)));
  CUDA_CHECK(cudaMalloc(&d_sums, kClusters * sizeof(Sums)));
  CUDA_CHECK(cudaMemcpy(d_points, points.data(), n * sizeof(float2), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(d_centroids, centroids.data(), kClusters * sizeof(float2),
                        cudaMemcpyHostToDevice));
  for (int step = 0; step < steps; ++step) {
    CUDA_CHECK(cudaMemset(d_sums, 0, kClusters * sizeof(Sums)));
    LAUNCH(assign, (n + 63) / 64, 64, d_points, n, d_centroids, d_sums);
    LAUNCH(update, 1, kClusters, d_centroids, d_sums);
  }

  Sums sums[kClusters];
  CUDA_CHECK(cudaMemcpy(sums, d_sums, sizeof(sums), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(centroids.data(), d_centroids, kClusters * sizeof(float2),
                        cudaMemcpyDeviceToHost));
  for (int c = 0; c < kClusters; ++c) {
    printf("cluster %d: %d points, (%.3f, %.3f)\n", c, sums[c].count, centroids[c].x,
           centroids[c].y);
  }
  CUDA_CHECK(cudaFree(d_points));
  CUDA_CHECK(cudaFree(d_centroids));
  CUDA_CHECK(cudaFree(d_sums));
}
