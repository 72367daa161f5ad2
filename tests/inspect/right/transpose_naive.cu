// Matrix transpose straight from global memory: the loads are coalesced, the stores are not.
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                  \
  do {                                                                               \
    cudaError_t error = (call);                                                      \
    if (error != cudaSuccess) {                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      exit(EXIT_FAILURE);                                                            \
    }                                                                                \
  } while (0)

__global__ void transpose_naive(const float* in, float* out, int rows, int cols) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && col < cols) {
    out[col * rows + row] = in[row * cols + col];
  }
}

int main() {
  const int rows = 45;
  const int cols = 70;
  const size_t bytes = rows * cols * sizeof(float);

  float* h_in = new float[rows * cols];
  float* h_out = new float[rows * cols];
  for (int r = 0; r < rows; r++) {
    for (int c = 0; c < cols; c++) h_in[r * cols + c] = 100.0f * r + c;
  }

  float* d_in = NULL;
  float* d_out = NULL;
  CHECK(cudaMalloc((void**)&d_in, bytes));
  CHECK(cudaMalloc((void**)&d_out, bytes));
  CHECK(cudaMemcpy(d_in, h_in, bytes, cudaMemcpyHostToDevice));

  dim3 block(16, 16);
  dim3 grid((cols + block.x - 1) / block.x, (rows + block.y - 1) / block.y);
  transpose_naive<<<grid, block>>>(d_in, d_out, rows, cols);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(h_out, d_out, bytes, cudaMemcpyDeviceToHost));

  double checksum = 0;
  for (int i = 0; i < rows * cols; i++) checksum += h_out[i] * (i % 7);
  printf("out[1] = %.0f, out[%d] = %.0f\n", h_out[1], rows, h_out[rows]);
  printf("checksum = %.0f\n", checksum);

  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  delete[] h_in;
  delete[] h_out;
  return 0;
}
