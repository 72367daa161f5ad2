// Replaces each element except the first by its difference to the left neighbor.
#include <cstdio>
#include <vector>

__global__ void differences(int* data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool active = i > 0 && i < n;
  int left = active ? data[i - 1] : 0;  // expect: global_race
  __syncthreads();
  if (active) data[i] -= left;  // expect: global_race
}

int main() {
  const int n = 1000;
  std::vector<int> data(n);
  for (int i = 0; i < n; ++i) data[i] = i % 5;

  int* d_data;
  cudaMalloc(&d_data, n * sizeof(int));
  cudaMemcpy(d_data, data.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  const int block = 128;
  const int grid = (n + block - 1) / block;
  differences<<<grid, block>>>(d_data, n);
  if (cudaGetLastError() != cudaSuccess) printf("launch failed\n");
  cudaMemcpy(data.data(), d_data, n * sizeof(int), cudaMemcpyDeviceToHost);
  printf("%d %d %d\n", data[0], data[128], data[n - 1]);
  cudaFree(d_data);
  return 0;
}
