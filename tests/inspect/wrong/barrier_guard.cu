// Differences of neighbors inside each block, staged in shared memory.
#include <cstdio>
#include <vector>

constexpr int kBlock = 128;

__global__ void differences(const int* in, int* out, int n) {
  __shared__ int tile[kBlock];
  const int t = threadIdx.x;
  const int i = blockIdx.x * kBlock + t;
  if (i < n) {
    tile[t] = in[i];
    __syncthreads();  // expect: barrier
    out[i] = t > 0 ? tile[t] - tile[t - 1] : 0;
  }
}

int main() {
  const int n = 1000;
  std::vector<int> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = i * i;

  int *d_in, *d_out;
  cudaMalloc(&d_in, n * sizeof(int));
  cudaMalloc(&d_out, n * sizeof(int));
  cudaMemcpy(d_in, in.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  differences<<<(n + kBlock - 1) / kBlock, kBlock>>>(d_in, d_out, n);
  cudaDeviceSynchronize();
  cudaMemcpy(out.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost);
  printf("%d %d %d\n", out[1], out[127], out[n - 1]);
  cudaFree(d_in);
  cudaFree(d_out);
}
