// Computes the squares of a vector.
#include <cstdio>
#include <vector>

__global__ void square(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * x[i];  // expect: host_pointer
}

int main() {
  const int n = 600;
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; ++i) x[i] = static_cast<float>(i);

  float* d_y;
  cudaMalloc(&d_y, n * sizeof(float));
  square<<<(n + 255) / 256, 256>>>(x.data(), d_y, n);
  cudaDeviceSynchronize();
  cudaMemcpy(y.data(), d_y, n * sizeof(float), cudaMemcpyDeviceToHost);

  printf("%.0f %.0f %.0f\n", y[0], y[1], y[n - 1]);
  cudaFree(d_y);
  return 0;
}
