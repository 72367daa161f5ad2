// Averages each element with its two neighbors; the borders keep their value.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                              \
  do {                                                           \
    cudaError_t error = (call);                                  \
    if (error != cudaSuccess) {                                  \
      fprintf(stderr, "error: %s\n", cudaGetErrorString(error)); \
      exit(1);                                                   \
    }                                                            \
  } while (0)

__global__ void smooth(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) {
    out[0] = in[0];
  } else if (i < n) {
    out[i] = (in[i - 1] + in[i] + in[i + 1]) / 3.0f;  // expect: bounds
  }
}

int main() {
  const int n = 1024;
  std::vector<float> data(n);
  for (int i = 0; i < n; ++i) data[i] = static_cast<float>(i % 6);

  float *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(float)));
  CHECK(cudaMalloc(&d_out, n * sizeof(float)));
  CHECK(cudaMemcpy(d_in, data.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  smooth<<<(n + 127) / 128, 128>>>(d_in, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(data.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.2f %.2f %.2f\n", data[0], data[1], data[n - 2]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
}
