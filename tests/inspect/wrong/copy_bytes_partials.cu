// Sums an array: one partial sum per block on the device, the rest on the host.
#include <cstdio>
#include <vector>

constexpr int kBlock = 128;

__global__ void partial_sums(const float* in, float* partials, int n) {
  __shared__ float sums[kBlock];
  int i = blockIdx.x * kBlock + threadIdx.x;
  sums[threadIdx.x] = i < n ? in[i] : 0.0f;
  __syncthreads();
  for (int s = kBlock / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) sums[threadIdx.x] += sums[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) partials[blockIdx.x] = sums[0];
}

int main() {
  const int n = 1000;
  const int blocks = (n + kBlock - 1) / kBlock;
  const size_t bytes = n * sizeof(float);
  std::vector<float> data(n, 1.0f);

  float *d_in, *d_partials;
  cudaMalloc(&d_in, bytes);
  cudaMalloc(&d_partials, blocks * sizeof(float));
  cudaMemcpy(d_in, data.data(), bytes, cudaMemcpyHostToDevice);
  partial_sums<<<blocks, kBlock>>>(d_in, d_partials, n);
  cudaMemcpy(data.data(), d_partials, bytes, cudaMemcpyDeviceToHost);  // expect: copy_bytes

  float total = 0.0f;
  for (int b = 0; b < blocks; ++b) total += data[b];
  printf("total %.0f\n", total);
  cudaFree(d_in);
  cudaFree(d_partials);
}
