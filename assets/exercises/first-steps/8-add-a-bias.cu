// Adds a bias to each column of a matrix. The matrix is stored row by row.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void add_bias(const float* in, const float* bias, float* out, int rows, int cols) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int row = y;
  const int col = x;
  if (row < rows && col < cols) out[row * cols + col] = in[row * cols + col] + bias[col];
}

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  printf("CUDA reports: %s\n", cudaGetErrorString(error));
  exit(1);
}

int main() {
  const int rows = 96, cols = 96, n = rows * cols;
  std::vector<float> in(n), bias(cols), out(n);
  for (int i = 0; i < n; ++i) in[i] = i;
  for (int col = 0; col < cols; ++col) bias[col] = 0.25f * col;

  float *d_in, *d_bias, *d_out;
  check(cudaMalloc(&d_in, n * sizeof(float)));
  check(cudaMalloc(&d_bias, cols * sizeof(float)));
  check(cudaMalloc(&d_out, n * sizeof(float)));
  check(cudaMemcpy(d_in, in.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  check(cudaMemcpy(d_bias, bias.data(), cols * sizeof(float), cudaMemcpyHostToDevice));

  const dim3 threads(32, 8), blocks(96 / 32, 96 / 8);  // a warp has 32 threads of the same y
  add_bias<<<blocks, threads>>>(d_in, d_bias, d_out, rows, cols);
  check(cudaGetLastError());
  check(cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));

  printf("first row ends with %.2f\n", out[cols - 1]);
  printf("last row begins with %.2f\n", out[(rows - 1) * cols]);
  check(cudaFree(d_in));
  check(cudaFree(d_bias));
  check(cudaFree(d_out));
  return 0;
}
