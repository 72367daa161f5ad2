// Maps byte values through a lookup table.
#include <stdio.h>
#include <stdlib.h>

__global__ void apply_table(const unsigned char* in, unsigned char* out, const int* table, int n) {
  int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    int value = table[in[i]];  // expect: host_pointer
    out[i] = (unsigned char)value;
  }
}

int main(void) {
  const int n = 900;
  unsigned char* pixels = (unsigned char*)malloc(n);
  int* table = (int*)malloc(256 * sizeof(int));
  for (int i = 0; i < n; i++) pixels[i] = (unsigned char)(i % 256);
  for (int i = 0; i < 256; i++) table[i] = 255 - i;

  unsigned char *d_in, *d_out;
  cudaMalloc((void**)&d_in, n);
  cudaMalloc((void**)&d_out, n);
  cudaMemcpy(d_in, pixels, n, cudaMemcpyHostToDevice);

  apply_table<<<2, 128>>>(d_in, d_out, table, n);
  cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) printf("kernel: %s\n", cudaGetErrorString(error));
  cudaMemcpy(pixels, d_out, n, cudaMemcpyDeviceToHost);

  printf("%d %d\n", pixels[0], pixels[255]);
  cudaFree(d_in);
  cudaFree(d_out);
  free(table);
  free(pixels);
  return 0;
}
