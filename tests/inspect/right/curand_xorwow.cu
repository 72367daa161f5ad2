// XORWOW: states are made by one kernel and used by the next two. Numbers in buckets, and the mean
// of normal ones.
#include <cuda_runtime.h>
#include <curand_kernel.h>

#include <cmath>
#include <cstdio>

__global__ void make_states(curandState* states, unsigned long long seed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  curand_init(seed, i, 10 * i, &states[i]);
}

__global__ void fill_buckets(curandState* states, unsigned* buckets, unsigned* last, int draws) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  curandState state = states[i];
  for (int draw = 0; draw < draws; ++draw) {
    const int bucket = static_cast<int>(curand_uniform(&state) * 8);
    atomicAdd(&buckets[bucket < 8 ? bucket : 7], 1u);
  }
  last[i] = curand(&state);
  states[i] = state;
}

__global__ void normals(curandState* states, float* sums, int pairs) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  curandState state = states[i];
  float sum = 0;
  for (int pair = 0; pair < pairs; ++pair) {
    const float2 both = curand_normal2(&state);
    sum += both.x + both.y;
  }
  sums[i] = sum + curand_normal(&state) + curand_normal(&state);
  states[i] = state;
}

int main() {
  constexpr int kThreads = 128, kBlock = 64;
  curandState* states;
  unsigned *d_buckets, *d_last, buckets[8], last[kThreads];
  float *d_sums, sums[kThreads];
  cudaMalloc(&states, kThreads * sizeof(curandState));
  cudaMalloc(&d_buckets, sizeof buckets);
  cudaMalloc(&d_last, sizeof last);
  cudaMalloc(&d_sums, sizeof sums);
  cudaMemset(d_buckets, 0, sizeof buckets);
  make_states<<<kThreads / kBlock, kBlock>>>(states, 1234567890123ull);
  fill_buckets<<<kThreads / kBlock, kBlock>>>(states, d_buckets, d_last, 16);
  normals<<<kThreads / kBlock, kBlock>>>(states, d_sums, 3);
  cudaMemcpy(buckets, d_buckets, sizeof buckets, cudaMemcpyDeviceToHost);
  cudaMemcpy(last, d_last, sizeof last, cudaMemcpyDeviceToHost);
  cudaMemcpy(sums, d_sums, sizeof sums, cudaMemcpyDeviceToHost);
  for (const unsigned count : buckets) printf("%u ", count);
  printf("\n%08x %08x %08x\n", last[0], last[1], last[kThreads - 1]);
  double sum = 0;
  for (const float each : sums) sum += each;
  printf("mean %.3f\n", sum / (kThreads * 8));
  cudaFree(states);
  cudaFree(d_buckets);
  cudaFree(d_last);
  cudaFree(d_sums);
}
