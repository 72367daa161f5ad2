// Inverts a grayscale image.
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

__global__ void invert(const unsigned char* in, unsigned char* out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) out[y * width + x] = 255 - in[y * width + x];
}

int main() {
  const int width = 50, height = 40;
  std::vector<unsigned char> image(width * height), inverted(width * height);
  for (int i = 0; i < width * height; ++i) image[i] = i % 251;

  unsigned char *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, image.size()));
  CHECK(cudaMalloc(&d_out, image.size()));
  CHECK(cudaMemcpy(d_in, image.data(), image.size(), cudaMemcpyHostToDevice));

  dim3 block(16, 8);
  dim3 grid(width / block.x, height / block.y);
  invert<<<grid, block>>>(d_in, d_out, width, height);  // expect: coverage
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(inverted.data(), d_out, image.size(), cudaMemcpyDeviceToHost));
  printf("%d %d\n", inverted[0], inverted[width - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
}
