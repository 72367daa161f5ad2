// Counts how often each face of a die was thrown.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void count(const int* throws, int n, int* counts) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int bin = throws[i] - 1;
  atomicAdd(&counts[bin], 1);
}

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  printf("CUDA reports: %s\n", cudaGetErrorString(error));
  exit(1);
}

int main() {
  const int n = 2000, faces = 6;
  std::vector<int> throws(n), counts(faces);
  unsigned state = 1;
  for (int i = 0; i < n; ++i) {
    state = 1664525u * state + 1013904223u;  // a simple random number generator
    throws[i] = 1 + (state >> 16) % faces;
  }

  int *d_throws, *d_counts;
  check(cudaMalloc(&d_throws, n * sizeof(int)));
  check(cudaMalloc(&d_counts, faces * sizeof(int)));
  check(cudaMemcpy(d_throws, throws.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  check(cudaMemset(d_counts, 0, faces * sizeof(int)));
  count<<<(n + 255) / 256, 256>>>(d_throws, n, d_counts);
  check(cudaGetLastError());
  check(cudaMemcpy(counts.data(), d_counts, faces * sizeof(int), cudaMemcpyDeviceToHost));

  int sum = 0;
  for (int face = 1; face <= faces; ++face) {
    printf("%d: %d times\n", face, counts[face - 1]);
    sum += counts[face - 1];
  }
  printf("%d throws in all\n", sum);
  check(cudaFree(d_throws));
  check(cudaFree(d_counts));
  return 0;
}
