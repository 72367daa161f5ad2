// Sum with interleaved addressing: the stride doubles, and ever fewer threads add.
#include <stdio.h>
#include <stdlib.h>

#define BLOCK 128

static void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}

__global__ void reduce_interleaved(const int* in, int* block_sums, int n) {
  __shared__ int sdata[BLOCK];
  unsigned int tid = threadIdx.x;
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  sdata[tid] = (i < n) ? in[i] : 0;
  __syncthreads();

  for (unsigned int s = 1; s < blockDim.x; s *= 2) {
    if (tid % (2 * s) == 0) {
      sdata[tid] += sdata[tid + s];
    }
    __syncthreads();
  }
  if (tid == 0) block_sums[blockIdx.x] = sdata[0];
}

int main(void) {
  int n = 1000;
  int blocks = (n + BLOCK - 1) / BLOCK;
  int* h_in = (int*)malloc(n * sizeof(int));
  int* h_sums = (int*)malloc(blocks * sizeof(int));
  for (int i = 0; i < n; i++) h_in[i] = i % 9 - 2;

  int *d_in, *d_sums;
  check(cudaMalloc((void**)&d_in, n * sizeof(int)), "cudaMalloc d_in");
  check(cudaMalloc((void**)&d_sums, blocks * sizeof(int)), "cudaMalloc d_sums");
  check(cudaMemcpy(d_in, h_in, n * sizeof(int), cudaMemcpyHostToDevice), "copy to device");

  reduce_interleaved<<<blocks, BLOCK>>>(d_in, d_sums, n);
  check(cudaGetLastError(), "launch");
  check(cudaMemcpy(h_sums, d_sums, blocks * sizeof(int), cudaMemcpyDeviceToHost), "copy back");

  int total = 0;
  for (int b = 0; b < blocks; b++) {
    printf("block %d: %d\n", b, h_sums[b]);
    total += h_sums[b];
  }
  printf("total: %d\n", total);

  cudaFree(d_in);
  cudaFree(d_sums);
  free(h_in);
  free(h_sums);
  return 0;
}
