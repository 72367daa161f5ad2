// Repeats a diffusion step with two buffers and prints the middle of the result.
#include <cstdio>
#include <utility>
#include <vector>

__global__ void diffuse(const float* now, float* next, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float left = now[i > 0 ? i - 1 : 0];
  float right = now[i < n - 1 ? i + 1 : n - 1];
  next[i] = 0.5f * now[i] + 0.25f * (left + right);
}

int main() {
  const int n = 101;
  std::vector<float> data(n, 0.0f);
  data[50] = 64.0f;

  float *d_now, *d_next;
  cudaMalloc(&d_now, n * sizeof(float));
  cudaMalloc(&d_next, n * sizeof(float));
  cudaMemcpy(d_now, data.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  for (int step = 0; step < 6; ++step) {
    diffuse<<<(n + 31) / 32, 32>>>(d_now, d_next, n);
    std::swap(d_now, d_next);
  }
  float* d_result = d_now;
  cudaMemcpy(data.data(), d_result, n * sizeof(float), cudaMemcpyDeviceToHost);
  printf("%.4f %.4f\n", data[50], data[51]);

  cudaFree(d_now);
  cudaFree(d_next);
  cudaFree(d_result);  // expect: free
  return 0;
}
