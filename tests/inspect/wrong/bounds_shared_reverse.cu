// Reverses each block of 256 elements in shared memory.
#include <cstdio>
#include <vector>

constexpr int kBlock = 256;

__global__ void reverse_blocks(int* data) {
  __shared__ int tile[kBlock];
  const int t = threadIdx.x;
  const int i = blockIdx.x * kBlock + t;
  tile[t] = data[i];
  __syncthreads();
  data[i] = tile[kBlock - t];  // expect: bounds
}

int main() {
  const int blocks = 3;
  const int n = blocks * kBlock;
  std::vector<int> data(n);
  for (int i = 0; i < n; ++i) data[i] = i;

  int* d_data;
  cudaMalloc(&d_data, n * sizeof(int));
  cudaMemcpy(d_data, data.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  reverse_blocks<<<blocks, kBlock>>>(d_data);
  if (cudaGetLastError() != cudaSuccess) printf("launch failed\n");
  cudaMemcpy(data.data(), d_data, n * sizeof(int), cudaMemcpyDeviceToHost);
  printf("%d %d %d\n", data[1], data[2], data[n - 1]);
  cudaFree(d_data);
  return 0;
}
