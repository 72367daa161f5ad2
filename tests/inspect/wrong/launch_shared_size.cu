// Reverses an array in place. One block holds all of it in dynamic shared memory.
#include <cstdio>
#include <vector>

__global__ void reverse(float* data, int n) {
  extern __shared__ float copy[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) copy[i] = data[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] = copy[n - 1 - i];
}

int main() {
  const int n = 15000;
  const size_t bytes = n * sizeof(float);
  std::vector<float> data(n);
  for (int i = 0; i < n; ++i) data[i] = static_cast<float>(i);

  float* d_data;
  cudaMalloc(&d_data, bytes);
  cudaMemcpy(d_data, data.data(), bytes, cudaMemcpyHostToDevice);
  reverse<<<1, 256, bytes>>>(d_data, n);  // expect: launch
  cudaDeviceSynchronize();
  cudaMemcpy(data.data(), d_data, bytes, cudaMemcpyDeviceToHost);

  printf("first %.0f, last %.0f\n", data[0], data[n - 1]);
  cudaFree(d_data);
}
