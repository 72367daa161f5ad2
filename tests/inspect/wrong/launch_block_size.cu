// Takes the absolute value of each matrix element in place.
#include <cstdio>
#include <vector>

__global__ void absolute(int* matrix, int rows, int cols) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && col < cols) matrix[row * cols + col] = abs(matrix[row * cols + col]);
}

int main() {
  const int rows = 60, cols = 50;
  std::vector<int> matrix(rows * cols);
  for (int i = 0; i < rows * cols; ++i) matrix[i] = i % 2 ? i : -i;

  int* d_matrix;
  cudaMalloc(&d_matrix, matrix.size() * sizeof(int));
  cudaMemcpy(d_matrix, matrix.data(), matrix.size() * sizeof(int), cudaMemcpyHostToDevice);

  dim3 block(64, 32);
  dim3 grid((cols + block.x - 1) / block.x, (rows + block.y - 1) / block.y);
  absolute<<<grid, block>>>(d_matrix, rows, cols);  // expect: launch
  cudaMemcpy(matrix.data(), d_matrix, matrix.size() * sizeof(int), cudaMemcpyDeviceToHost);

  printf("%d %d %d\n", matrix[1], matrix[2], matrix[3]);
  cudaFree(d_matrix);
  return 0;
}
