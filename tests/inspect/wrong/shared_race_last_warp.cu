// Sums an array per block; the last 64 values are summed by one warp.
#include <stdio.h>
#include <stdlib.h>

#define BLOCK 128

__global__ void block_sums(const int* in, int* out, int n) {
  __shared__ int sums[BLOCK];
  int t = threadIdx.x;
  int i = blockIdx.x * BLOCK + t;
  sums[t] = i < n ? in[i] : 0;
  __syncthreads();
  if (t < 64) sums[t] += sums[t + 64];
  __syncthreads();
  if (t < 32) {
    for (int s = 32; s > 0; s /= 2) {
      sums[t] += sums[t + s];  // expect: shared_race
    }
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}

int main(void) {
  const int n = 1000;
  const int blocks = (n + BLOCK - 1) / BLOCK;
  int* h_in = (int*)malloc(n * sizeof(int));
  int* h_out = (int*)malloc(blocks * sizeof(int));
  for (int i = 0; i < n; i++) h_in[i] = i % 8;

  int *d_in, *d_out;
  cudaMalloc((void**)&d_in, n * sizeof(int));
  cudaMalloc((void**)&d_out, blocks * sizeof(int));
  cudaMemcpy(d_in, h_in, n * sizeof(int), cudaMemcpyHostToDevice);
  block_sums<<<blocks, BLOCK>>>(d_in, d_out, n);
  cudaMemcpy(h_out, d_out, blocks * sizeof(int), cudaMemcpyDeviceToHost);

  for (int b = 0; b < blocks; b++) printf("block %d: %d\n", b, h_out[b]);
  cudaFree(d_in);
  cudaFree(d_out);
  free(h_in);
  free(h_out);
  return 0;
}
