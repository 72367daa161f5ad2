// Doubles an array on the device and adds the results up on the host.
#include <cstdio>
#include <vector>

__global__ void twice(int* data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] *= 2;
}

int main() {
  const int n = 1000;
  std::vector<int> data(n);
  for (int i = 0; i < n; ++i) data[i] = i % 10;

  int* d_data;
  cudaMalloc(&d_data, n * sizeof(int));
  cudaMemcpy(d_data, data.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  twice<<<(n + 255) / 256, 256>>>(d_data, n);
  cudaDeviceSynchronize();

  int sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += d_data[i];  // expect: device_pointer
  }
  printf("sum = %d\n", sum);

  cudaFree(d_data);
  return 0;
}
