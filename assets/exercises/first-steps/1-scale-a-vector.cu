// Doubles every element of a vector.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void scale(const float* in, float* out, int n, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = factor * in[i];
}

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  printf("CUDA reports: %s\n", cudaGetErrorString(error));
  exit(1);
}

int main() {
  const int n = 1000;
  const size_t bytes = n * sizeof(float);
  std::vector<float> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = 0.25f * i;

  float *d_in, *d_out;
  check(cudaMalloc(&d_in, bytes));
  check(cudaMalloc(&d_out, bytes));
  check(cudaMemcpy(d_in, in.data(), bytes, cudaMemcpyHostToDevice));

  const int threads = 256;                         // per block
  const int blocks = (n + threads - 1) / threads;  // 4 blocks: 1024 threads in all
  scale<<<blocks, threads>>>(d_in, d_out, n, 2.0f);
  check(cudaGetLastError());

  check(cudaMemcpy(out.data(), d_out, bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 333) printf("out[%d] = %.1f\n", i, out[i]);
  check(cudaFree(d_in));
  check(cudaFree(d_out));
  return 0;
}
