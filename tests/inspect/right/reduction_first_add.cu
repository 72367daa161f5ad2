// Sum in which each thread adds two elements while it loads, and the last warp finishes alone.
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

constexpr unsigned kBlock = 128;

__device__ void warp_reduce(int* sums, unsigned t) {
  for (unsigned s = 32; s > 0; s >>= 1) {
    const int other = sums[t + s];
    __syncwarp();
    sums[t] += other;
    __syncwarp();
  }
}

__global__ void reduce_first_add(const int* in, int* out, unsigned n) {
  __shared__ int sums[kBlock];
  const unsigned t = threadIdx.x;
  const unsigned i = blockIdx.x * (2 * kBlock) + t;
  int mine = i < n ? in[i] : 0;
  if (i + kBlock < n) mine += in[i + kBlock];
  sums[t] = mine;
  __syncthreads();

  for (unsigned s = kBlock / 2; s > 32; s >>= 1) {
    if (t < s) sums[t] += sums[t + s];
    __syncthreads();
  }
  if (t < 32) warp_reduce(sums, t);
  if (t == 0) out[blockIdx.x] = sums[0];
}

int main() {
  const unsigned n = 1500;
  const unsigned grid = (n + 2 * kBlock - 1) / (2 * kBlock);
  std::vector<int> in(n), out(grid);
  for (unsigned i = 0; i < n; ++i) in[i] = static_cast<int>(i * i % 31);

  int* d_in;
  int* d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_out, grid * sizeof(int)));
  CHECK(cudaMemcpy(d_in, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  reduce_first_add<<<grid, kBlock>>>(d_in, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), d_out, grid * sizeof(int), cudaMemcpyDeviceToHost));

  int total = 0;
  for (int sum : out) total += sum;
  printf("%u blocks, first %d, last %d\n", grid, out.front(), out.back());
  printf("total %d\n", total);
  CHECK(cudaFree(d_out));
  CHECK(cudaFree(d_in));
}
