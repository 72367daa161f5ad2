// Attention in three kernels: the scores, a softmax of each row, and the weighted sum of V.
#include <cfloat>
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

constexpr int kHeads = 3, kSeq = 20, kDim = 8;

// Q, K, V and the output are [head][position][dim]; the scores are [head][query][key].
__global__ void scores_kernel(const float* q, const float* k, float* scores, float scale) {
  const int key = blockIdx.x * blockDim.x + threadIdx.x;
  const int query = blockIdx.y * blockDim.y + threadIdx.y;
  const int head = blockIdx.z;
  if (key >= kSeq || query >= kSeq) return;
  float dot = 0.0f;
  for (int d = 0; d < kDim; ++d) {
    dot += q[(head * kSeq + query) * kDim + d] * k[(head * kSeq + key) * kDim + d];
  }
  scores[(head * kSeq + query) * kSeq + key] = dot * scale;
}

__global__ void softmax_kernel(float* scores, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float* s = scores + row * kSeq;
  float largest = -FLT_MAX, sum = 0.0f;
  for (int key = 0; key < kSeq; ++key) largest = fmaxf(largest, s[key]);
  for (int key = 0; key < kSeq; ++key) {
    s[key] = expf(s[key] - largest);
    sum += s[key];
  }
  for (int key = 0; key < kSeq; ++key) s[key] /= sum;
}

__global__ void output_kernel(const float* weights, const float* v, float* out) {
  const int d = threadIdx.x, query = blockIdx.x * blockDim.y + threadIdx.y;
  const int head = threadIdx.z;
  if (query >= kSeq) return;
  float sum = 0.0f;
  for (int key = 0; key < kSeq; ++key) {
    sum += weights[(head * kSeq + query) * kSeq + key] * v[(head * kSeq + key) * kDim + d];
  }
  out[(head * kSeq + query) * kDim + d] = sum;
}

float* to_device(const std::vector<float>& host) {
  float* device = nullptr;
  CUDA_CHECK(cudaMalloc(&device, host.size() * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  return device;
}

int main() {
  const int n = kHeads * kSeq * kDim, rows = kHeads * kSeq;
  std::vector<float> q(n), k(n), v(n), out(n);
  for (int i = 0; i < n; ++i) {
    q[i] = static_cast<float>(i % 3 - 1);
    k[i] = static_cast<float>(i % 5 - 2);
    v[i] = static_cast<float>(i % 7);
  }

  float *d_q = to_device(q), *d_k = to_device(k), *d_v = to_device(v), *d_scores, *d_out;
  CUDA_CHECK(cudaMalloc(&d_scores, rows * kSeq * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&d_out, n * sizeof(float)));
  scores_kernel<<<dim3((kSeq + 7) / 8, (kSeq + 7) / 8, kHeads), dim3(8, 8)>>>(d_q, d_k, d_scores,
                                                                              1.0f / sqrtf(kDim));
  softmax_kernel<<<(rows + 31) / 32, 32>>>(d_scores, rows);
  output_kernel<<<(kSeq + 7) / 8, dim3(kDim, 8, kHeads)>>>(d_scores, d_v, d_out);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i : {0, 100, 237, n - 1}) printf("out[%d] = %.3f\n", i, out[i]);
  for (float* pointer : {d_q, d_k, d_v, d_scores, d_out}) CUDA_CHECK(cudaFree(pointer));
}
