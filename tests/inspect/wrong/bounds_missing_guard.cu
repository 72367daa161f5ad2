// Scales a vector by two, one thread per element.
#include <cstdio>
#include <vector>

__global__ void scale(const float* in, float* out, float factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = factor * in[i];  // expect: bounds
}

int main() {
  const int n = 1000;
  std::vector<float> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = 0.5f * i;

  float *d_in, *d_out;
  cudaMalloc(&d_in, n * sizeof(float));
  cudaMalloc(&d_out, n * sizeof(float));
  cudaMemcpy(d_in, in.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  const int block = 256;
  const int grid = (n + block - 1) / block;
  scale<<<grid, block>>>(d_in, d_out, 2.0f);
  cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost);

  printf("%.1f %.1f %.1f\n", out[0], out[1], out[n - 1]);
  cudaFree(d_in);
  cudaFree(d_out);
}
