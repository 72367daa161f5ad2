// Softmax of each row. One block per row reduces in dynamic shared memory.
#include <cmath>
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

__global__ void softmax_rows(const float* in, float* out, int cols) {
  extern __shared__ float scratch[];
  const int t = threadIdx.x;
  const float* x = in + blockIdx.x * cols;
  float* y = out + blockIdx.x * cols;

  float largest = -INFINITY;
  for (int c = t; c < cols; c += blockDim.x) largest = fmaxf(largest, x[c]);
  scratch[t] = largest;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (t < s) scratch[t] = fmaxf(scratch[t], scratch[t + s]);
    __syncthreads();
  }
  largest = scratch[0];
  __syncthreads();  // every thread has read scratch[0] before it is overwritten

  float sum = 0.0f;
  for (int c = t; c < cols; c += blockDim.x) sum += expf(x[c] - largest);
  scratch[t] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (t < s) scratch[t] += scratch[t + s];
    __syncthreads();
  }
  const float scale = 1.0f / scratch[0];
  for (int c = t; c < cols; c += blockDim.x) y[c] = expf(x[c] - largest) * scale;
}

int main() {
  const int rows = 12, cols = 100, block = 64;
  const size_t bytes = rows * cols * sizeof(float);
  std::vector<float> in(rows * cols), out(rows * cols);
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < cols; ++c) in[r * cols + c] = 0.5f * ((r * 7 + c * 3) % 11);
  }

  float *d_in, *d_out;
  CUDA_CHECK(cudaMalloc(&d_in, bytes));
  CUDA_CHECK(cudaMalloc(&d_out, bytes));
  CUDA_CHECK(cudaMemcpy(d_in, in.data(), bytes, cudaMemcpyHostToDevice));
  softmax_rows<<<rows, block, block * sizeof(float)>>>(d_in, d_out, cols);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(out.data(), d_out, bytes, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(d_in));
  CUDA_CHECK(cudaFree(d_out));

  for (int r = 0; r < rows; r += 5) {
    float sum = 0.0f;
    for (int c = 0; c < cols; ++c) sum += out[r * cols + c];
    printf("row %d: %.4f %.4f, sum %.3f\n", r, out[r * cols + 6], out[r * cols + 7], sum);
  }
}
