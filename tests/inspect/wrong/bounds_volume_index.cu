// Copies a 3D volume and mirrors it along x.
#include <cstdio>
#include <vector>

__global__ void mirror_x(const float* in, float* out, int nx, int ny, int nz) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x >= nx || y >= ny || z >= nz) return;
  float value = in[(z * ny * nx + y) * nx + (nx - 1 - x)];  // expect: bounds
  out[(z * ny + y) * nx + x] = value;
}

int main() {
  const int nx = 12, ny = 10, nz = 8;
  const int n = nx * ny * nz;
  std::vector<float> volume(n), mirrored(n);
  for (int i = 0; i < n; ++i) volume[i] = static_cast<float>(i);

  float *d_in = nullptr, *d_out = nullptr;
  cudaMalloc(&d_in, n * sizeof(float));
  cudaMalloc(&d_out, n * sizeof(float));
  cudaMemcpy(d_in, volume.data(), n * sizeof(float), cudaMemcpyHostToDevice);

  dim3 block(8, 4, 4);
  dim3 grid((nx + block.x - 1) / block.x, (ny + block.y - 1) / block.y,
            (nz + block.z - 1) / block.z);
  mirror_x<<<grid, block>>>(d_in, d_out, nx, ny, nz);
  cudaMemcpy(mirrored.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost);
  printf("%.0f %.0f\n", mirrored[0], mirrored[n - 1]);
  cudaFree(d_in);
  cudaFree(d_out);
}
