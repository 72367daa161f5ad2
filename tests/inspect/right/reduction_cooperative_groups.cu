// Sum with cooperative groups: cg::reduce in each warp, then shfl_down in the first warp.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace cg = cooperative_groups;

#define CHECK(call)                                                                  \
  do {                                                                               \
    cudaError_t error = (call);                                                      \
    if (error != cudaSuccess) {                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      exit(EXIT_FAILURE);                                                            \
    }                                                                                \
  } while (0)

constexpr int kBlock = 192;
constexpr int kWarps = kBlock / 32;

__global__ void reduce(const int* in, int* out, int n) {
  __shared__ int warp_sums[kWarps];
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);

  const int i = blockIdx.x * blockDim.x + block.thread_rank();
  int sum = cg::reduce(warp, i < n ? in[i] : 0, cg::plus<int>());
  if (warp.thread_rank() == 0) warp_sums[warp.meta_group_rank()] = sum;
  block.sync();

  if (warp.meta_group_rank() == 0) {
    sum = warp.thread_rank() < kWarps ? warp_sums[warp.thread_rank()] : 0;
    for (int offset = warp.size() / 2; offset > 0; offset /= 2) {
      sum += warp.shfl_down(sum, offset);
    }
    if (warp.thread_rank() == 0) out[blockIdx.x] = sum;
  }
}

int main() {
  const int n = 1000;
  const int grid = (n + kBlock - 1) / kBlock;
  std::vector<int> in(n), out(grid);
  for (int i = 0; i < n; ++i) in[i] = i % 2 ? -i : 3 * i;

  int *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_out, grid * sizeof(int)));
  CHECK(cudaMemcpy(d_in, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  reduce<<<grid, kBlock>>>(d_in, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(out.data(), d_out, grid * sizeof(int), cudaMemcpyDeviceToHost));

  int total = 0;
  for (int b = 0; b < grid; ++b) {
    printf("block %d: %d\n", b, out[b]);
    total += out[b];
  }
  printf("total: %d\n", total);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
