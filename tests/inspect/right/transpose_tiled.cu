// Matrix transpose through a shared tile, so that loads and stores are both coalesced.
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

template <int kTile, typename T>
__global__ void transpose(const T* __restrict__ in, T* __restrict__ out, int rows, int cols) {
  __shared__ T tile[kTile][kTile];
  int col = blockIdx.x * kTile + threadIdx.x;
  int row = blockIdx.y * kTile + threadIdx.y;
  if (row < rows && col < cols) tile[threadIdx.y][threadIdx.x] = in[row * cols + col];
  __syncthreads();

  // The block writes the mirrored tile, again along rows.
  col = blockIdx.y * kTile + threadIdx.x;
  row = blockIdx.x * kTile + threadIdx.y;
  if (row < cols && col < rows) out[row * rows + col] = tile[threadIdx.x][threadIdx.y];
}

int main() {
  constexpr int kTile = 16;
  const int rows = 50, cols = 37;
  std::vector<int> in(rows * cols), out(rows * cols);
  for (int i = 0; i < rows * cols; ++i) in[i] = i;

  int *d_in, *d_out;
  CUDA_CHECK(cudaMalloc(&d_in, in.size() * sizeof(int)));
  CUDA_CHECK(cudaMalloc(&d_out, out.size() * sizeof(int)));
  CUDA_CHECK(cudaMemcpy(d_in, in.data(), in.size() * sizeof(int), cudaMemcpyHostToDevice));

  const dim3 block(kTile, kTile);
  const dim3 grid((cols + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
  transpose<kTile><<<grid, block>>>(d_in, d_out, rows, cols);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(out.data(), d_out, out.size() * sizeof(int), cudaMemcpyDeviceToHost));

  int wrong = 0;
  long long checksum = 0;
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < cols; ++c) {
      if (out[c * rows + r] != in[r * cols + c]) ++wrong;
      checksum += static_cast<long long>(out[c * rows + r]) * (r + 1);
    }
  }
  printf("wrong elements: %d\n", wrong);
  printf("checksum: %lld\n", checksum);
  CUDA_CHECK(cudaFree(d_in));
  CUDA_CHECK(cudaFree(d_out));
}
