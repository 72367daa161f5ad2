// Bitonic sort in dynamic shared memory. The array is padded to a power of two with INT_MAX.
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

// Needs padded / 2 threads.
__global__ void bitonic_sort(int* data, int n, int padded) {
  extern __shared__ int keys[];
  const int t = threadIdx.x;
  for (int i = t; i < padded; i += blockDim.x) keys[i] = i < n ? data[i] : INT_MAX;
  __syncthreads();

  for (int size = 2; size <= padded; size *= 2) {
    for (int stride = size / 2; stride > 0; stride /= 2) {
      const int i = t / stride * (2 * stride) + t % stride;
      const int j = i + stride;
      const bool ascending = (i & size) == 0;
      const int a = keys[i];
      const int b = keys[j];
      if (ascending ? a > b : a < b) {
        keys[i] = b;
        keys[j] = a;
      }
      __syncthreads();
    }
  }
  for (int i = t; i < n; i += blockDim.x) data[i] = keys[i];
}

int main() {
  const int n = 700;
  int padded = 1;
  while (padded < n) padded *= 2;
  std::vector<int> data(n);
  for (int i = 0; i < n; ++i) data[i] = (i * 389 + 17) % 1009;

  int* d_data;
  CHECK(cudaMalloc(&d_data, n * sizeof(int)));
  CHECK(cudaMemcpy(d_data, data.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  bitonic_sort<<<1, padded / 2, padded * sizeof(int)>>>(d_data, n, padded);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(data.data(), d_data, n * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(d_data));

  int misplaced = 0;
  for (int i = 1; i < n; ++i) misplaced += data[i - 1] > data[i];
  printf("first %d %d %d\n", data[0], data[1], data[2]);
  printf("middle %d, last %d\n", data[n / 2], data[n - 1]);
  printf("misplaced %d\n", misplaced);
}
