// Makes each pixel of a gray picture brighter.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void brighten(const int* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int brighter = in[i] + 40;
  out[i] = brighter > 255 ? 255 : brighter;
}

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  printf("CUDA reports: %s\n", cudaGetErrorString(error));
  exit(1);
}

int main() {
  const int width = 60, height = 15, n = width * height;
  const size_t bytes = n * sizeof(int);
  std::vector<int> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = i % 256;

  int *d_in, *d_out;
  check(cudaMalloc(&d_in, bytes));
  check(cudaMalloc(&d_out, bytes));
  check(cudaMemcpy(d_in, in.data(), bytes, cudaMemcpyHostToDevice));

  const int threads = 256;  // per block
  const int blocks = (n + threads - 1) / threads;
  brighten<<<blocks, threads>>>(d_in, d_out, n);
  check(cudaGetLastError());

  check(cudaMemcpy(out.data(), d_out, bytes, cudaMemcpyDeviceToHost));
  printf("first %d, last %d\n", out[0], out[n - 1]);
  check(cudaFree(d_in));
  check(cudaFree(d_out));
  return 0;
}
