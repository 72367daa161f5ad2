// Philox4x32-10: its known answers, then points in a square, of which those in a circle give pi.
#include <cuda_runtime.h>
#include <curand_kernel.h>

#include <cstdio>

__global__ void known_answers(const uint4* counters, const uint2* keys, uint4* results, int n) {
  const int i = threadIdx.x;
  if (i < n) results[i] = curand_Philox4x32_10(counters[i], keys[i]);
}

__global__ void count_inside(unsigned long long seed, int rounds, unsigned* inside) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  curandStatePhilox4_32_10_t state;
  curand_init(seed, i, 2 * i, &state);  // some begin in the middle of four numbers
  unsigned count = 0;
  for (int round = 0; round < rounds; ++round) {
    const float4 p = curand_uniform4(&state);
    if (p.x * p.x + p.y * p.y <= 1) ++count;
    if (p.z * p.z + p.w * p.w <= 1) ++count;
    const float x = curand_uniform(&state), y = curand_uniform(&state);
    if (x * x + y * y <= 1) ++count;
  }
  atomicAdd(inside, count);
}

int main() {
  constexpr int kAnswers = 3;
  const uint4 counters[kAnswers] = {{0, 0, 0, 0},
                                    {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF},
                                    {0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}};
  const uint2 keys[kAnswers] = {{0, 0}, {0xFFFFFFFF, 0xFFFFFFFF}, {0xA4093822, 0x299F31D0}};
  uint4* d_counters;
  uint2* d_keys;
  uint4* d_results;
  cudaMalloc(&d_counters, sizeof counters);
  cudaMalloc(&d_keys, sizeof keys);
  cudaMalloc(&d_results, sizeof counters);
  cudaMemcpy(d_counters, counters, sizeof counters, cudaMemcpyHostToDevice);
  cudaMemcpy(d_keys, keys, sizeof keys, cudaMemcpyHostToDevice);
  known_answers<<<1, 32>>>(d_counters, d_keys, d_results, kAnswers);
  uint4 results[kAnswers];
  cudaMemcpy(results, d_results, sizeof results, cudaMemcpyDeviceToHost);
  for (const uint4& r : results) printf("%08x %08x %08x %08x\n", r.x, r.y, r.z, r.w);

  unsigned *d_inside, inside = 0;
  cudaMalloc(&d_inside, sizeof inside);
  cudaMemset(d_inside, 0, sizeof inside);
  constexpr int kBlocks = 2, kThreads = 64, kRounds = 8;
  count_inside<<<kBlocks, kThreads>>>(2024, kRounds, d_inside);
  cudaMemcpy(&inside, d_inside, sizeof inside, cudaMemcpyDeviceToHost);
  printf("%u of %d points, pi is about %.3f\n", inside, kBlocks * kThreads * kRounds * 3,
         4.0 * inside / (kBlocks * kThreads * kRounds * 3));
  cudaFree(d_counters);
  cudaFree(d_keys);
  cudaFree(d_results);
  cudaFree(d_inside);
}
