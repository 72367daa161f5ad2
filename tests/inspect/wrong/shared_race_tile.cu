// Reverses an array. Each block loads a tile and writes it back in reverse order.
#include <cstdio>
#include <vector>

constexpr int kBlock = 128;

__global__ void reverse(const int* in, int* out, int n) {
  __shared__ int tile[kBlock];
  const int t = threadIdx.x;
  tile[t] = in[blockIdx.x * kBlock + t];  // expect: shared_race
  const int first = n - (blockIdx.x + 1) * kBlock;
  out[first + t] = tile[kBlock - 1 - t];  // expect: shared_race
}

int main() {
  const int n = 6 * kBlock;
  std::vector<int> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = i;

  int *d_in, *d_out;
  cudaMalloc(&d_in, n * sizeof(int));
  cudaMalloc(&d_out, n * sizeof(int));
  cudaMemcpy(d_in, in.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  reverse<<<n / kBlock, kBlock>>>(d_in, d_out, n);
  cudaMemcpy(out.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost);

  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += out[i] != n - 1 - i;
  printf("wrong elements: %d\n", wrong);
  cudaFree(d_in);
  cudaFree(d_out);
}
