// Even threads scale their element, odd threads negate theirs; each then adds its partner's.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                              \
  do {                                                           \
    cudaError_t error = (call);                                  \
    if (error != cudaSuccess) {                                  \
      fprintf(stderr, "error: %s\n", cudaGetErrorString(error)); \
      exit(1);                                                   \
    }                                                            \
  } while (0)

constexpr int kBlock = 64;

__global__ void exchange(const int* in, int* out) {
  __shared__ int tile[kBlock];
  const int t = threadIdx.x;
  const int i = blockIdx.x * kBlock + t;
  if (t % 2 == 0) {
    tile[t] = 10 * in[i];
    __syncthreads();  // expect: barrier
    out[i] = tile[t] + tile[t + 1];
  } else {
    tile[t] = -in[i];
    __syncthreads();  // expect: barrier
    out[i] = tile[t] + tile[t - 1];
  }
}

int main() {
  const int n = 4 * kBlock;
  std::vector<int> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = i;

  int *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_out, n * sizeof(int)));
  CHECK(cudaMemcpy(d_in, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  exchange<<<n / kBlock, kBlock>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d %d\n", out[0], out[2], out[n - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
}
