// Moving sum of three; the input is padded by one element on either side.
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

__global__ void moving_sum(const int* padded, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = padded[i] + padded[i + 1] + padded[i + 2];  // expect: uninitialized
}

int main() {
  const int n = 1000;
  std::vector<int> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = i % 4;

  int *d_padded, *d_out;
  CUDA_CHECK(cudaMalloc(&d_padded, (n + 2) * sizeof(int)));
  CUDA_CHECK(cudaMalloc(&d_out, n * sizeof(int)));
  CUDA_CHECK(cudaMemcpy(d_padded + 1, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  moving_sum<<<(n + 255) / 256, 256>>>(d_padded, d_out, n);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d %d\n", out[0], out[1], out[n - 1]);
  CUDA_CHECK(cudaFree(d_padded));
  CUDA_CHECK(cudaFree(d_out));
}
