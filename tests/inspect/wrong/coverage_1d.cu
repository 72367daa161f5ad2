// Converts temperatures from Celsius to Fahrenheit.
#include <cstdio>
#include <vector>

__global__ void to_fahrenheit(const float* celsius, float* fahrenheit, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) fahrenheit[i] = celsius[i] * 1.8f + 32.0f;
}

int main() {
  const int n = 1000;
  std::vector<float> celsius(n), fahrenheit(n);
  for (int i = 0; i < n; ++i) celsius[i] = 0.1f * i - 20.0f;

  float *d_celsius, *d_fahrenheit;
  cudaMalloc(&d_celsius, n * sizeof(float));
  cudaMalloc(&d_fahrenheit, n * sizeof(float));
  cudaMemcpy(d_celsius, celsius.data(), n * sizeof(float), cudaMemcpyHostToDevice);

  const int block = 256;
  to_fahrenheit<<<n / block, block>>>(d_celsius, d_fahrenheit, n);  // expect: coverage
  cudaMemcpy(fahrenheit.data(), d_fahrenheit, n * sizeof(float), cudaMemcpyDeviceToHost);

  printf("first %.1f, last %.1f\n", fahrenheit[0], fahrenheit[n - 1]);
  cudaFree(d_celsius);
  cudaFree(d_fahrenheit);
  return 0;
}
