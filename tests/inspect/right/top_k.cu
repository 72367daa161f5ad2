// The k largest values of each row with their columns. One warp per row, one round per value.
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                  \
  do {                                                                               \
    cudaError_t error = (call);                                                      \
    if (error != cudaSuccess) {                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      exit(EXIT_FAILURE);                                                            \
    }                                                                                \
  } while (0)

// Larger values come first; equal values are ordered by column.
__device__ bool precedes(int value_a, int col_a, int value_b, int col_b) {
  return value_a > value_b || (value_a == value_b && col_a < col_b);
}

__global__ void top_k(const int* in, int* values, int* columns, int cols, int k) {
  const int lane = threadIdx.x;
  const int row = blockIdx.x;
  int last_value = INT_MAX, last_col = -1;
  for (int round = 0; round < k; ++round) {
    int value = INT_MIN, col = cols;
    for (int c = lane; c < cols; c += warpSize) {
      const int candidate = in[row * cols + c];
      if (precedes(last_value, last_col, candidate, c) && precedes(candidate, c, value, col)) {
        value = candidate;
        col = c;
      }
    }
    for (int mask = 16; mask > 0; mask /= 2) {
      const int other_value = __shfl_xor_sync(0xffffffffu, value, mask);
      const int other_col = __shfl_xor_sync(0xffffffffu, col, mask);
      if (precedes(other_value, other_col, value, col)) {
        value = other_value;
        col = other_col;
      }
    }
    if (lane == 0) {
      values[row * k + round] = value;
      columns[row * k + round] = col;
    }
    last_value = value;
    last_col = col;
  }
}

int main() {
  const int rows = 9, cols = 150, k = 4;
  std::vector<int> in(rows * cols), values(rows * k), columns(rows * k);
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < cols; ++c) in[r * cols + c] = (c * c + r * 31 + c * 3) % 127;
  }

  int *d_in, *d_values, *d_columns;
  CHECK(cudaMalloc(&d_in, in.size() * sizeof(int)));
  CHECK(cudaMalloc(&d_values, values.size() * sizeof(int)));
  CHECK(cudaMalloc(&d_columns, columns.size() * sizeof(int)));
  CHECK(cudaMemcpy(d_in, in.data(), in.size() * sizeof(int), cudaMemcpyHostToDevice));
  top_k<<<rows, 32>>>(d_in, d_values, d_columns, cols, k);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(values.data(), d_values, values.size() * sizeof(int), cudaMemcpyDefault));
  CHECK(cudaMemcpy(columns.data(), d_columns, columns.size() * sizeof(int), cudaMemcpyDefault));

  for (int r = 0; r < rows; r += 4) {
    printf("row %d:", r);
    for (int i = r * k; i < (r + 1) * k; ++i) printf(" %d@%d", values[i], columns[i]);
    printf("\n");
  }
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_values));
  CHECK(cudaFree(d_columns));
}
