// Sparse matrix-vector product in CSR format with one warp per row. Some rows are empty.
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(expr)                                                     \
  do {                                                                       \
    cudaError_t status = (expr);                                             \
    if (status != cudaSuccess) {                                             \
      fprintf(stderr, "%s failed: %s\n", #expr, cudaGetErrorString(status)); \
      exit(1);                                                               \
    }                                                                        \
  } while (0)

namespace sparse {

__global__ void spmv(const int* __restrict__ row_start, const int* __restrict__ columns,
                     const int* __restrict__ values, const int* __restrict__ x, int* __restrict__ y,
                     int rows, int cols) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  int sum = 0;
  for (int e = __ldg(&row_start[row]) + lane; e < __ldg(&row_start[row + 1]); e += 32) {
    const int col = __ldg(&columns[e]);
    assert(col >= 0 && col < cols);
    sum += __ldg(&values[e]) * __ldg(&x[col]);
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
  if (lane == 0) y[row] = sum;
}

}  // namespace sparse

template <typename T>
T* to_device(const std::vector<T>& host) {
  T* device = nullptr;
  CUDA_CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
  CUDA_CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

int main() {
  const int rows = 90, cols = 70;
  std::vector<int> row_start = {0}, columns, values, x(cols), y(rows);
  for (int r = 0; r < rows; ++r) {
    for (int c = r % 4; c < cols && r % 10 != 9; c += 1 + r % 6) {
      columns.push_back(c);
      values.push_back((r + c) % 5 - 1);
    }
    row_start.push_back(static_cast<int>(columns.size()));
  }
  for (int c = 0; c < cols; ++c) x[c] = c % 6;

  int* d_row_start = to_device(row_start);
  int* d_columns = to_device(columns);
  int* d_values = to_device(values);
  int* d_x = to_device(x);
  int* d_y = nullptr;
  CUDA_CHECK(cudaMalloc(&d_y, rows * sizeof(int)));

  constexpr int kBlock = 128;
  const int grid = (rows * 32 + kBlock - 1) / kBlock;
  sparse::spmv<<<grid, kBlock>>>(d_row_start, d_columns, d_values, d_x, d_y, rows, cols);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(y.data(), d_y, rows * sizeof(int), cudaMemcpyDeviceToHost));

  int checksum = 0;
  for (int r = 0; r < rows; ++r) checksum += y[r] * (r % 8 + 1);
  printf("%d elements, y[0] = %d, y[9] = %d, y[89] = %d, y[88] = %d\n", row_start[rows], y[0], y[9],
         y[89], y[88]);
  printf("checksum = %d\n", checksum);
  for (int* pointer : {d_row_start, d_columns, d_values, d_x, d_y}) CUDA_CHECK(cudaFree(pointer));
}
