// Computes the squared length of each 2D vector of an array.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                              \
  do {                                                           \
    cudaError_t error = (call);                                  \
    if (error != cudaSuccess) {                                  \
      fprintf(stderr, "error: %s\n", cudaGetErrorString(error)); \
      exit(1);                                                   \
    }                                                            \
  } while (0)

__global__ void squared_length(const float2* vectors, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float2 v = vectors[i];
  out[i] = v.x * v.x + v.y * v.y;
}

int main() {
  const int n = 400;
  std::vector<float2> vectors(n);
  std::vector<float> lengths(n);
  for (int i = 0; i < n; ++i) vectors[i] = make_float2(i, 1.0f);

  float2* d_vectors;
  float* d_lengths;
  CHECK(cudaMalloc(&d_vectors, n * sizeof(float2)));
  CHECK(cudaMalloc(&d_lengths, n * sizeof(float)));
  CHECK(cudaMemcpy(d_vectors, vectors.data(), n, cudaMemcpyHostToDevice));  // expect: copy_bytes
  squared_length<<<(n + 127) / 128, 128>>>(d_vectors, d_lengths, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(lengths.data(), d_lengths, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f %.0f\n", lengths[0], lengths[1], lengths[n - 1]);
  CHECK(cudaFree(d_vectors));
  CHECK(cudaFree(d_lengths));
}
