// 1D stencil of radius 3. Each block stages its elements and the halo in shared memory.
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

constexpr int kBlock = 128;
constexpr int kRadius = 3;

__device__ int load_or_zero(const int* in, int i, int n) {
  return i >= 0 && i < n ? in[i] : 0;
}

__global__ void stencil(const int* in, int* out, int n) {
  __shared__ int tile[kBlock + 2 * kRadius];
  const int first = blockIdx.x * kBlock;
  const int i = first + threadIdx.x;
  const int local = threadIdx.x + kRadius;

  tile[local] = load_or_zero(in, i, n);
  if (threadIdx.x < kRadius) {
    tile[local - kRadius] = load_or_zero(in, i - kRadius, n);
    tile[local + kBlock] = load_or_zero(in, i + kBlock, n);
  }
  __syncthreads();

  if (i >= n) return;
  int sum = 0;
  for (int offset = -kRadius; offset <= kRadius; ++offset) sum += tile[local + offset];
  out[i] = sum;
}

int main() {
  const int n = 1000;
  std::vector<int> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = (i * 7) % 13;

  int *d_in = nullptr, *d_out = nullptr;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_out, n * sizeof(int)));
  CHECK(cudaMemcpy(d_in, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  stencil<<<(n + kBlock - 1) / kBlock, kBlock>>>(d_in, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));

  long long checksum = 0;
  for (int i = 0; i < n; ++i) checksum += static_cast<long long>(out[i]) * (i % 10 + 1);
  printf("first %d, block edge %d %d, last %d\n", out[0], out[127], out[128], out[n - 1]);
  printf("checksum %lld\n", checksum);
}
