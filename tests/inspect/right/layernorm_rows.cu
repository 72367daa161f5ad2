// Layer normalization with one warp per row. The input is __half, the arithmetic float.
#include <cuda_fp16.h>

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

constexpr int kWarpsPerBlock = 4;

__device__ float warp_sum(float value) {
  for (int mask = 16; mask > 0; mask >>= 1) value += __shfl_xor_sync(0xffffffffu, value, mask);
  return value;
}

__global__ void layernorm(const __half* x, const float* gamma, const float* beta, float* y,
                          int rows, int cols, float epsilon) {
  const int row = blockIdx.x * kWarpsPerBlock + threadIdx.y;
  if (row >= rows) return;  // the whole warp returns
  x += row * cols;
  y += row * cols;

  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 32) sum += __half2float(x[c]);
  const float mean = warp_sum(sum) / cols;
  float squares = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 32) {
    const float d = __half2float(x[c]) - mean;
    squares += d * d;
  }
  const float inverse = rsqrtf(warp_sum(squares) / cols + epsilon);
  for (int c = threadIdx.x; c < cols; c += 32) {
    y[c] = (__half2float(x[c]) - mean) * inverse * gamma[c] + beta[c];
  }
}

int main() {
  const int rows = 13, cols = 70, n = rows * cols;
  std::vector<__half> x(n);
  std::vector<float> gamma(cols), beta(cols), y(n);
  for (int i = 0; i < n; ++i) x[i] = __float2half(static_cast<float>((i * 5) % 23 - 8));
  for (int c = 0; c < cols; ++c) {
    gamma[c] = 1.0f + c % 3;
    beta[c] = static_cast<float>(c % 4);
  }

  __half* d_x;
  float *d_gamma, *d_beta, *d_y;
  CHECK(cudaMalloc(&d_x, n * sizeof(__half)));
  CHECK(cudaMalloc(&d_gamma, cols * sizeof(float)));
  CHECK(cudaMalloc(&d_beta, cols * sizeof(float)));
  CHECK(cudaMalloc(&d_y, n * sizeof(float)));
  CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(__half), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_gamma, gamma.data(), cols * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_beta, beta.data(), cols * sizeof(float), cudaMemcpyHostToDevice));

  const dim3 block(32, kWarpsPerBlock);
  layernorm<<<(rows + kWarpsPerBlock - 1) / kWarpsPerBlock, block>>>(d_x, d_gamma, d_beta, d_y,
                                                                     rows, cols, 1e-5f);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(y.data(), d_y, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int row : {0, 6, 12}) {
    printf("row %d: %.3f %.3f %.3f\n", row, y[row * cols], y[row * cols + 1], y[row * cols + 69]);
  }
  CHECK(cudaFree(d_x));
  CHECK(cudaFree(d_gamma));
  CHECK(cudaFree(d_beta));
  CHECK(cudaFree(d_y));
}
