// Moves points by structures that functions take and return by value.
#include <cstdio>
#include <vector>

struct Point {
  float x, y, z;
};

__host__ __device__ Point operator+(Point a, Point b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
__host__ __device__ Point operator*(float factor, Point a) {
  return {factor * a.x, factor * a.y, factor * a.z};
}

__global__ void step(const Point* at, const Point* speed, Point* to, float seconds, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = at[i] + seconds * speed[i];
}

__global__ void pack(const Point* at, float4* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = make_float4(at[i].x, at[i].y, at[i].z, 1);
}

int main() {
  const int n = 500;
  std::vector<Point> at(n), speed(n);
  for (int i = 0; i < n; ++i) {
    at[i] = {1.0f * i, 2.0f * i, -1};
    speed[i] = {2, -4, 6};
  }
  Point *d_at, *d_speed, *d_to;
  float4* d_packed;
  cudaMalloc(&d_at, n * sizeof(Point));
  cudaMalloc(&d_speed, n * sizeof(Point));
  cudaMalloc(&d_to, n * sizeof(Point));
  cudaMalloc(&d_packed, n * sizeof(float4));
  cudaMemcpy(d_at, at.data(), n * sizeof(Point), cudaMemcpyHostToDevice);
  cudaMemcpy(d_speed, speed.data(), n * sizeof(Point), cudaMemcpyHostToDevice);
  step<<<(n + 127) / 128, 128>>>(d_at, d_speed, d_to, 0.5f, n);
  pack<<<(n + 127) / 128, 128>>>(d_to, d_packed, n);
  std::vector<float4> packed(n);
  cudaMemcpy(packed.data(), d_packed, n * sizeof(float4), cudaMemcpyDeviceToHost);
  float sum = 0;
  for (const float4& each : packed) sum += each.x + each.y + each.z + each.w;
  printf("first %.1f %.1f %.1f, last %.1f, sum %.0f\n", packed[0].x, packed[0].y, packed[0].z,
         packed[n - 1].x, sum);
  cudaFree(d_at);
  cudaFree(d_speed);
  cudaFree(d_to);
  cudaFree(d_packed);
}
