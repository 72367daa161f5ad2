// Counts the divisors of each number up to n.
#include <cstdio>
#include <vector>

__global__ void count_divisors(int* divisors, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int count = 0;
  for (int d = 1; d <= i + 1; ++d) {
    if ((i + 1) % d == 0) ++count;
  }
  divisors[i] = count;
}

int main() {
  const int n = 250;
  std::vector<int> divisors(n, 0);
  int* d_divisors;
  cudaMalloc(&d_divisors, n * sizeof(int));
  count_divisors<<<(n + 63) / 64, 64>>>(d_divisors, n);
  cudaDeviceSynchronize();
  cudaMemcpy(divisors.data(), d_divisors, n, cudaMemcpyDeviceToHost);  // expect: copy_bytes

  int primes = 0;
  for (int i = 0; i < n; ++i) primes += divisors[i] == 2;
  printf("primes up to %d: %d\n", n, primes);
  cudaFree(d_divisors);
  return 0;
}
