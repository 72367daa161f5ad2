// Squares the elements into a scratch array and subtracts the square of the left neighbor.
#include <cstdio>
#include <cstdlib>

__global__ void square(const int* in, int* scratch, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) scratch[i] = in[i] * in[i];  // expect: bounds
}

__global__ void difference(const int* scratch, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n) out[i] = scratch[i] - scratch[i - 1];  // expect: bounds
  if (i == 0) out[i] = 0;
}

int main() {
  const int n = 500;
  const size_t bytes = n * sizeof(int);
  int* h_data = (int*)malloc(bytes);
  for (int i = 0; i < n; i++) h_data[i] = i % 50;

  int *d_in, *d_scratch, *d_out;
  cudaMalloc((void**)&d_in, bytes);
  cudaMalloc((void**)&d_scratch, n);
  cudaMalloc((void**)&d_out, bytes);
  cudaMemcpy(d_in, h_data, bytes, cudaMemcpyHostToDevice);

  int threads = 128;
  int blocks = (n + threads - 1) / threads;
  square<<<blocks, threads>>>(d_in, d_scratch, n);
  difference<<<blocks, threads>>>(d_scratch, d_out, n);
  cudaDeviceSynchronize();
  cudaMemcpy(h_data, d_out, bytes, cudaMemcpyDeviceToHost);

  printf("%d %d %d\n", h_data[1], h_data[2], h_data[3]);
  cudaFree(d_in);
  cudaFree(d_scratch);
  cudaFree(d_out);
  free(h_data);
  return 0;
}
