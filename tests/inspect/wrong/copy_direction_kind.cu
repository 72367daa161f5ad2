// Iterates a relaxation and keeps the previous state to measure the last change.
#include <cmath>
#include <cstdio>
#include <vector>

__global__ void relax(const float* previous, float* state, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float left = i > 0 ? previous[i - 1] : 0.0f;
  float right = i < n - 1 ? previous[i + 1] : 1.0f;
  state[i] = 0.5f * (left + right);
}

int main() {
  const int n = 200;
  const size_t bytes = n * sizeof(float);
  std::vector<float> before(n, 0.0f), after(n);

  float *d_previous, *d_state;
  cudaMalloc(&d_previous, bytes);
  cudaMalloc(&d_state, bytes);
  cudaMemcpy(d_previous, before.data(), bytes, cudaMemcpyHostToDevice);
  for (int step = 0; step < 4; ++step) {
    relax<<<(n + 63) / 64, 64>>>(d_previous, d_state, n);
    if (step < 3) {
      cudaMemcpy(d_previous, d_state, bytes, cudaMemcpyHostToDevice);  // expect: copy_direction
    }
  }
  cudaMemcpy(before.data(), d_previous, bytes, cudaMemcpyDeviceToHost);
  cudaMemcpy(after.data(), d_state, bytes, cudaMemcpyDeviceToHost);

  float change = 0.0f;
  for (int i = 0; i < n; ++i) change = fmaxf(change, fabsf(after[i] - before[i]));
  printf("after[n - 1] = %.4f, largest change %.4f\n", after[n - 1], change);
  cudaFree(d_previous);
  cudaFree(d_state);
}
