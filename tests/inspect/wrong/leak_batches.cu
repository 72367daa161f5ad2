// Processes an array in batches and prints the sum of squares of each batch.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(expr)                     \
  do {                                       \
    cudaError_t status = (expr);             \
    if (status != cudaSuccess) {             \
      fprintf(stderr, "%s failed\n", #expr); \
      exit(1);                               \
    }                                        \
  } while (0)

__global__ void add_squares(const int* batch, int n, int* sum) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(sum, batch[i] * batch[i]);
}

int main() {
  const int batches = 5, n = 150;
  std::vector<int> values(batches * n);
  for (int i = 0; i < batches * n; ++i) values[i] = i % 12;

  int* d_sum;
  CUDA_CHECK(cudaMalloc(&d_sum, sizeof(int)));
  for (int b = 0; b < batches; ++b) {
    int* d_batch;
    CUDA_CHECK(cudaMalloc(&d_batch, n * sizeof(int)));  // expect: leak
    CUDA_CHECK(cudaMemcpy(d_batch, &values[b * n], n * sizeof(int), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(d_sum, 0, sizeof(int)));
    add_squares<<<(n + 63) / 64, 64>>>(d_batch, n, d_sum);
    CUDA_CHECK(cudaGetLastError());
    int sum = 0;
    CUDA_CHECK(cudaMemcpy(&sum, d_sum, sizeof(int), cudaMemcpyDeviceToHost));
    printf("batch %d: %d\n", b, sum);
  }
  CUDA_CHECK(cudaFree(d_sum));
  return 0;
}
