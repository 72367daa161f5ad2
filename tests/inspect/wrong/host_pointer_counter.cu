// Counts the multiples of seven in an array.
#include <cstdio>
#include <vector>

__global__ void count_multiples(const int* values, int n, int* count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && values[i] % 7 == 0) {
    atomicAdd(count, 1);  // expect: host_pointer
  }
}

int main() {
  const int n = 1000;
  std::vector<int> values(n);
  for (int i = 0; i < n; ++i) values[i] = 3 * i + 1;

  int* d_values;
  cudaMalloc(&d_values, n * sizeof(int));
  cudaMemcpy(d_values, values.data(), n * sizeof(int), cudaMemcpyHostToDevice);

  int count = 0;
  const int block = 128;
  count_multiples<<<(n + block - 1) / block, block>>>(d_values, n, &count);
  cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) printf("error: %s\n", cudaGetErrorString(error));
  printf("multiples of seven: %d\n", count);
  cudaFree(d_values);
}
