// Matrix product with 16 x 16 shared tiles. Tiles that stick out are filled with zeros.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(expr)                                                     \
  do {                                                                       \
    cudaError_t status = (expr);                                             \
    if (status != cudaSuccess) {                                             \
      fprintf(stderr, "%s failed: %s\n", #expr, cudaGetErrorString(status)); \
      exit(1);                                                               \
    }                                                                        \
  } while (0)

template <int TILE>
__global__ void matmul(float* C, const float* A, const float* B, int M, int N, int K) {
  __shared__ float As[TILE][TILE];
  __shared__ float Bs[TILE][TILE];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * TILE + ty;
  int col = blockIdx.x * TILE + tx;

  float sum = 0.0f;
  for (int tile = 0; tile < (K + TILE - 1) / TILE; tile++) {
    int a_col = tile * TILE + tx;
    int b_row = tile * TILE + ty;
    As[ty][tx] = (row < M && a_col < K) ? A[row * K + a_col] : 0.0f;
    Bs[ty][tx] = (b_row < K && col < N) ? B[b_row * N + col] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TILE; i++) sum += As[ty][i] * Bs[i][tx];
    __syncthreads();
  }
  if (row < M && col < N) C[row * N + col] = sum;
}

int main() {
  const int M = 40, N = 37, K = 45;
  std::vector<float> A(M * K), B(K * N), C(M * N);
  for (int i = 0; i < M * K; i++) A[i] = static_cast<float>(i % 6);
  for (int i = 0; i < K * N; i++) B[i] = static_cast<float>(i % 11 - 5);

  float *dA, *dB, *dC;
  CUDA_CHECK(cudaMalloc(&dA, sizeof(float) * M * K));
  CUDA_CHECK(cudaMalloc(&dB, sizeof(float) * K * N));
  CUDA_CHECK(cudaMalloc(&dC, sizeof(float) * M * N));
  CUDA_CHECK(cudaMemcpy(dA, A.data(), sizeof(float) * M * K, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dB, B.data(), sizeof(float) * K * N, cudaMemcpyHostToDevice));

  dim3 threads(16, 16);
  dim3 grid((N + threads.x - 1) / threads.x, (M + threads.y - 1) / threads.y);
  matmul<16><<<grid, threads>>>(dC, dA, dB, M, N, K);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(C.data(), dC, sizeof(float) * M * N, cudaMemcpyDeviceToHost));

  double checksum = 0;
  for (int i = 0; i < M * N; i++) checksum += C[i] * (i % 4 + 1);
  printf("C[0][0] %.0f, C[17][16] %.0f, C[39][36] %.0f\n", C[0], C[17 * N + 16], C[M * N - 1]);
  printf("checksum %.0f\n", checksum);

  CUDA_CHECK(cudaFree(dA));
  CUDA_CHECK(cudaFree(dB));
  CUDA_CHECK(cudaFree(dC));
}
