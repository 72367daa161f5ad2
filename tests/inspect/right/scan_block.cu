// Inclusive scan (Hillis-Steele, double buffered) in three launches. One thread prints the total.
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

constexpr int kBlock = 256;

__global__ void scan_block(const int* in, int* out, int* block_sums, int n) {
  __shared__ int buffer[2][kBlock];
  const int t = threadIdx.x;
  const int i = blockIdx.x * kBlock + t;
  int current = 0;
  buffer[current][t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int offset = 1; offset < kBlock; offset *= 2) {
    int value = buffer[current][t];
    if (t >= offset) value += buffer[current][t - offset];
    buffer[1 - current][t] = value;
    current = 1 - current;
    __syncthreads();
  }
  if (i < n) out[i] = buffer[current][t];
  if (t == kBlock - 1) block_sums[blockIdx.x] = buffer[current][t];
}

__global__ void add_offsets(int* out, const int* block_scan, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= n) return;
  if (blockIdx.x > 0) out[i] += block_scan[blockIdx.x - 1];
  if (i == n - 1) printf("total %d\n", out[i]);
}

int main() {
  const int n = 1000;
  const int grid = (n + kBlock - 1) / kBlock;
  std::vector<int> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = i % 11 - 3;

  int *d_in, *d_out, *d_sums, *d_sums_scan, *d_total;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_out, n * sizeof(int)));
  CHECK(cudaMalloc(&d_sums, grid * sizeof(int)));
  CHECK(cudaMalloc(&d_sums_scan, grid * sizeof(int)));
  CHECK(cudaMalloc(&d_total, sizeof(int)));
  CHECK(cudaMemcpy(d_in, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));

  scan_block<<<grid, kBlock>>>(d_in, d_out, d_sums, n);
  scan_block<<<1, kBlock>>>(d_sums, d_sums_scan, d_total, grid);
  add_offsets<<<grid, kBlock>>>(d_out, d_sums_scan, n);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost));
  printf("out[0] %d, out[255] %d, out[256] %d, out[999] %d\n", out[0], out[255], out[256],
         out[999]);

  for (int* pointer : {d_in, d_out, d_sums, d_sums_scan, d_total}) CHECK(cudaFree(pointer));
}
