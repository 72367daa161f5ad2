// Squares the numbers of an array.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void square(const int* numbers, int* squares, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) squares[i] = numbers[i] * numbers[i];
}

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  printf("CUDA reports: %s\n", cudaGetErrorString(error));
  exit(1);
}

int main() {
  const int n = 300;
  const size_t bytes = n * sizeof(int);
  std::vector<int> numbers(n), squares(n);
  for (int i = 0; i < n; ++i) numbers[i] = i - 100;

  int* d_squares;
  check(cudaMalloc(&d_squares, bytes));
  const int threads = 128, blocks = (n + threads - 1) / threads;

  int* d_numbers;
  check(cudaMalloc(&d_numbers, bytes));
  check(cudaMemcpy(d_numbers, numbers.data(), bytes, cudaMemcpyHostToDevice));
  square<<<blocks, threads>>>(d_numbers, d_squares, n);
  check(cudaGetLastError());
  check(cudaFree(d_numbers));

  check(cudaMemcpy(squares.data(), d_squares, bytes, cudaMemcpyDeviceToHost));
  printf("%d squared is %d\n", numbers[0], squares[0]);
  printf("%d squared is %d\n", numbers[n - 1], squares[n - 1]);
  check(cudaFree(d_squares));
  return 0;
}
