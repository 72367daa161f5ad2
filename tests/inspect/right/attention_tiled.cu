// Attention with an online softmax. A block owns a tile of queries and walks over tiles of keys.
#include <cfloat>
#include <cmath>
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

constexpr int kTile = 32;
constexpr int kDim = 8;

__global__ void __launch_bounds__(kTile)
    attention(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
              float* __restrict__ out, int seq, float scale) {
  __shared__ float k_tile[kTile][kDim];
  __shared__ float v_tile[kTile][kDim];
  const int t = threadIdx.x;
  const int row = blockIdx.x * kTile + t;
  float query[kDim] = {}, acc[kDim] = {};
  float largest = -FLT_MAX, total = 0.0f;
  if (row < seq) {
    for (int d = 0; d < kDim; ++d) query[d] = q[row * kDim + d];
  }

  for (int base = 0; base < seq; base += kTile) {
    const int keys = min(kTile, seq - base);
    if (t < keys) {
      for (int d = 0; d < kDim; ++d) {
        k_tile[t][d] = k[(base + t) * kDim + d];
        v_tile[t][d] = v[(base + t) * kDim + d];
      }
    }
    __syncthreads();
    for (int j = 0; j < keys; ++j) {
      float score = 0.0f;
      for (int d = 0; d < kDim; ++d) score += query[d] * k_tile[j][d];
      score *= scale;
      const float new_largest = fmaxf(largest, score);
      const float correction = expf(largest - new_largest);
      const float weight = expf(score - new_largest);
      total = total * correction + weight;
      for (int d = 0; d < kDim; ++d) acc[d] = acc[d] * correction + weight * v_tile[j][d];
      largest = new_largest;
    }
    __syncthreads();
  }
  if (row < seq) {
    for (int d = 0; d < kDim; ++d) out[row * kDim + d] = acc[d] / total;
  }
}

float* to_device(const std::vector<float>& host) {
  float* device = nullptr;
  CHECK(cudaMalloc(&device, host.size() * sizeof(float)));
  CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  return device;
}

int main() {
  const int seq = 50, n = seq * kDim;
  std::vector<float> q(n), k(n), v(n), out(n);
  for (int i = 0; i < n; ++i) {
    q[i] = static_cast<float>(i % 5 - 2);
    k[i] = static_cast<float>(i % 7 - 3);
    v[i] = static_cast<float>((i * 3) % 11);
  }

  float *d_q = to_device(q), *d_k = to_device(k), *d_v = to_device(v), *d_out = nullptr;
  CHECK(cudaMalloc(&d_out, n * sizeof(float)));
  attention<<<(seq + kTile - 1) / kTile, kTile>>>(d_q, d_k, d_v, d_out, seq, 0.25f);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i : {1, 123, 256, 399}) printf("out[%d] = %.3f\n", i, out[i]);
  for (float* pointer : {d_q, d_k, d_v, d_out}) CHECK(cudaFree(pointer));
}
