// Gravity of n bodies. Each block stages one tile of bodies after the other in shared memory.
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

constexpr int kBlock = 32;

struct Params {
  float dt;
  float softening;
};

__global__ void accelerate(const float4* bodies, float3* velocity, int n, Params params) {
  __shared__ float4 tile[kBlock];
  const int i = blockIdx.x * kBlock + threadIdx.x;
  const float4 self = bodies[min(i, n - 1)];
  float3 a = make_float3(0.0f, 0.0f, 0.0f);
  for (int base = 0; base < n; base += kBlock) {
    const int j = base + threadIdx.x;
    tile[threadIdx.x] = j < n ? bodies[j] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);  // no mass
    __syncthreads();
    for (int t = 0; t < kBlock; ++t) {
      const float dx = tile[t].x - self.x, dy = tile[t].y - self.y, dz = tile[t].z - self.z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + params.softening);
      const float pull = tile[t].w * inverse * inverse * inverse;
      a.x += dx * pull;
      a.y += dy * pull;
      a.z += dz * pull;
    }
    __syncthreads();
  }
  if (i < n) {
    velocity[i].x += a.x * params.dt;
    velocity[i].y += a.y * params.dt;
    velocity[i].z += a.z * params.dt;
  }
}

__global__ void move(float4* bodies, const float3* velocity, int n, Params params) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  bodies[i].x += velocity[i].x * params.dt;
  bodies[i].y += velocity[i].y * params.dt;
  bodies[i].z += velocity[i].z * params.dt;
}

int main() {
  const int n = 100, grid = (n + kBlock - 1) / kBlock;
  const Params params = {0.125f, 1.0f};
  std::vector<float4> bodies(n);
  for (int i = 0; i < n; ++i) {
    bodies[i] = make_float4(i * 7 % 19, i * 5 % 23, i * 3 % 17, 1 + i % 3);
  }

  float4* d_bodies;
  float3* d_velocity;
  cudaMalloc(&d_bodies, n * sizeof(float4));
  cudaMalloc(&d_velocity, n * sizeof(float3));
  cudaMemcpy(d_bodies, bodies.data(), n * sizeof(float4), cudaMemcpyHostToDevice);
  cudaMemset(d_velocity, 0, n * sizeof(float3));
  for (int step = 0; step < 3; ++step) {
    accelerate<<<grid, kBlock>>>(d_bodies, d_velocity, n, params);
    move<<<grid, kBlock>>>(d_bodies, d_velocity, n, params);
  }
  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) {
    fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(error));
    return 1;
  }
  cudaMemcpy(bodies.data(), d_bodies, n * sizeof(float4), cudaMemcpyDeviceToHost);
  for (int i : {0, 33, 99}) {
    printf("body %d: %.3f %.3f %.3f\n", i, bodies[i].x, bodies[i].y, bodies[i].z);
  }
  cudaFree(d_bodies);
  cudaFree(d_velocity);
}
