// Cooperative groups: lanes of a branch take places together (coalesced_threads), and scans of
// tiles compact an array.
#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>

#include <cstdio>
#include <vector>

namespace cg = cooperative_groups;

/// One atomic for the lanes that come here together.
__device__ int next_place(int* next) {
  const cg::coalesced_group active = cg::coalesced_threads();
  int first = 0;
  if (active.thread_rank() == 0) first = atomicAdd(next, static_cast<int>(active.size()));
  return active.shfl(first, 0) + static_cast<int>(active.thread_rank());
}

__global__ void keep_odd(const int* in, int* out, int* count, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] % 2 != 0) out[next_place(count)] = in[i];
}

/// Lanes that leave a loop early are no longer in the group.
__global__ void votes(const int* in, int* sums, int n) {
  const int i = threadIdx.x;
  int sum = 0;
  for (int step = 0; step < in[i] % 4; ++step) {
    const cg::coalesced_group active = cg::coalesced_threads();
    const int neighbor = active.shfl_down(i, 1), other = active.shfl_up(i, 1);
    const bool even = active.all(i >= 0) && active.any(i % 2 == 0);
    sum += neighbor - other + (even ? static_cast<int>(active.ballot(i % 3 == 0) % 1000) : 0);
    active.sync();
  }
  sums[i] = sum;
}

struct Larger {
  __device__ int operator()(int a, int b) const { return a < b ? b : a; }
};

__global__ void scans(const int* in, int* sums, int* before, int* largest) {
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  const int i = threadIdx.x;
  sums[i] = cg::inclusive_scan(tile, in[i]);
  before[i] = cg::exclusive_scan(tile, in[i], cg::plus<int>());
  largest[i] = cg::inclusive_scan(tile, in[i], Larger());
}

int main() {
  constexpr int n = 200, threads = 64;
  std::vector<int> in(n), got(n);
  for (int i = 0; i < n; ++i) in[i] = i * 37 % 101;
  int *d_in, *d_out, *d_count, *d_more, *d_last, count;
  cudaMalloc(&d_in, n * sizeof(int));
  cudaMalloc(&d_out, n * sizeof(int));
  cudaMalloc(&d_more, threads * sizeof(int));
  cudaMalloc(&d_last, threads * sizeof(int));
  cudaMalloc(&d_count, sizeof(int));
  cudaMemcpy(d_in, in.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemset(d_count, 0, sizeof(int));
  keep_odd<<<(n + threads - 1) / threads, threads>>>(d_in, d_out, d_count, n);
  cudaMemcpy(&count, d_count, sizeof(int), cudaMemcpyDeviceToHost);
  cudaMemcpy(got.data(), d_out, count * sizeof(int), cudaMemcpyDeviceToHost);
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += got[i];
  printf("%d odd numbers, sum %d\n", count, sum);

  const auto print = [&](const char* name, const int* device) {
    cudaMemcpy(got.data(), device, threads * sizeof(int), cudaMemcpyDeviceToHost);
    long long weighted = 0;
    for (int i = 0; i < threads; ++i) weighted += static_cast<long long>(got[i]) * (i + 1);
    printf("%s %lld\n", name, weighted);
  };
  votes<<<1, threads>>>(d_in, d_out, n);
  print("votes", d_out);
  scans<<<1, threads>>>(d_in, d_out, d_more, d_last);
  print("sums", d_out);
  print("before", d_more);
  print("largest", d_last);
  for (int* each : {d_in, d_out, d_count, d_more, d_last}) cudaFree(each);
}
