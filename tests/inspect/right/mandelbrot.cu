// Mandelbrot iteration counts, written to a pitched 2D array.
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

struct View {
  float left, top, step;
  int width, height, max_iterations;
};

__global__ void mandelbrot(int* out, size_t pitch, View view) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= view.width || y >= view.height) return;
  const float c_re = view.left + x * view.step;
  const float c_im = view.top - y * view.step;
  float re = 0.0f, im = 0.0f;
  int count = 0;
  while (count < view.max_iterations && re * re + im * im <= 4.0f) {
    const float new_re = re * re - im * im + c_re;
    im = 2.0f * re * im + c_im;
    re = new_re;
    ++count;
  }
  int* row = reinterpret_cast<int*>(reinterpret_cast<char*>(out) + y * pitch);
  row[x] = count;
}

int main() {
  const View view = {-2.03f, 1.04f, 0.0625f, 45, 34, 30};
  const size_t row_bytes = view.width * sizeof(int);
  std::vector<int> counts(view.width * view.height);

  int* d_counts = nullptr;
  size_t pitch = 0;
  CUDA_CHECK(cudaMallocPitch(&d_counts, &pitch, row_bytes, view.height));
  const dim3 block(16, 8);
  const dim3 grid((view.width + block.x - 1) / block.x, (view.height + block.y - 1) / block.y);
  mandelbrot<<<grid, block>>>(d_counts, pitch, view);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy2D(counts.data(), row_bytes, d_counts, pitch, row_bytes, view.height,
                          cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(d_counts));

  int sum = 0, inside = 0;
  for (int count : counts) {
    sum += count;
    inside += count == view.max_iterations;
  }
  for (int y = 2; y < view.height; y += 10) {
    for (int x = 0; x < view.width; ++x) {
      const int count = counts[y * view.width + x];
      putchar(count == view.max_iterations ? '#' : count > 5 ? '+' : '.');
    }
    putchar('\n');
  }
  printf("inside %d, sum %d\n", inside, sum);
}
