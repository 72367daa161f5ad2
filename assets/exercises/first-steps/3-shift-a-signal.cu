// Subtracts the mean of a signal from each of its samples.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void shift(float* samples, int n, float mean) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) samples[i] -= mean;
}

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  printf("CUDA reports: %s\n", cudaGetErrorString(error));
  exit(1);
}

int main() {
  const int n = 600;
  std::vector<float> samples(n);
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    samples[i] = i % 4;
    sum += samples[i];
  }

  float* d_samples;
  check(cudaMalloc(&d_samples, n * sizeof(float)));
  check(cudaMemcpy(d_samples, samples.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  shift<<<(n + 127) / 128, 128>>>(d_samples, n, sum / n);
  check(cudaGetLastError());
  check(cudaMemcpy(samples.data(), d_samples, n * sizeof(float), cudaMemcpyDeviceToHost));

  float left = 0;
  for (int i = 0; i < n; ++i) left += samples[i];
  printf("mean %.2f, then %.2f\n", sum / n, left / n);
  printf("first %.1f, last %.1f\n", samples[0], samples[n - 1]);
  check(cudaFree(d_samples));
  return 0;
}
