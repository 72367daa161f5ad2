// Two halves of an array in two streams: copy in, compute, copy out, with pinned host memory.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                  \
  do {                                                                               \
    cudaError_t error = (call);                                                      \
    if (error != cudaSuccess) {                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      exit(EXIT_FAILURE);                                                            \
    }                                                                                \
  } while (0)

__global__ void polynomial(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * in[i] - 2 * in[i] + 1;
}

int main() {
  const int n = 1999;
  const int half = (n + 1) / 2;
  const int block = 128;

  int *h_in, *h_out, *d_in, *d_out;
  CHECK(cudaMallocHost(&h_in, n * sizeof(int)));
  CHECK(cudaMallocHost(&h_out, n * sizeof(int)));
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_out, n * sizeof(int)));
  for (int i = 0; i < n; ++i) h_in[i] = i % 40;

  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) CHECK(cudaStreamCreate(&stream));
  for (int s = 0; s < 2; ++s) {
    const int first = s * half;
    const int count = s == 0 ? half : n - half;
    const size_t bytes = count * sizeof(int);
    CHECK(cudaMemcpyAsync(d_in + first, h_in + first, bytes, cudaMemcpyHostToDevice, streams[s]));
    polynomial<<<(count + block - 1) / block, block, 0, streams[s]>>>(d_in + first, d_out + first,
                                                                      count);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(h_out + first, d_out + first, bytes, cudaMemcpyDeviceToHost, streams[s]));
  }
  for (cudaStream_t stream : streams) {
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamDestroy(stream));
  }

  long long sum = 0;
  for (int i = 0; i < n; ++i) sum += h_out[i];
  printf("out[0] %d, out[999] %d, out[1000] %d, out[1998] %d\n", h_out[0], h_out[999], h_out[1000],
         h_out[1998]);
  printf("sum %lld\n", sum);

  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  CHECK(cudaFreeHost(h_in));
  CHECK(cudaFreeHost(h_out));
  return 0;
}
