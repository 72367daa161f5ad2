// Counts the letters of a text.
#include <cstdio>
#include <string>

__global__ void count_letters(const char* text, int n, int* counts) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && text[i] >= 'a' && text[i] <= 'z') {
    counts[text[i] - 'a'] += 1;  // expect: global_race
  }
}

int main() {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "the quick brown fox jumps over the lazy dog ";
  const int n = static_cast<int>(text.size());

  char* d_text;
  int* d_counts;
  cudaMalloc(&d_text, n);
  cudaMalloc(&d_counts, 26 * sizeof(int));
  cudaMemcpy(d_text, text.data(), n, cudaMemcpyHostToDevice);
  cudaMemset(d_counts, 0, 26 * sizeof(int));
  count_letters<<<(n + 127) / 128, 128>>>(d_text, n, d_counts);
  cudaDeviceSynchronize();

  int counts[26];
  cudaMemcpy(counts, d_counts, sizeof(counts), cudaMemcpyDeviceToHost);
  printf("e: %d, o: %d\n", counts['e' - 'a'], counts['o' - 'a']);
  cudaFree(d_text);
  cudaFree(d_counts);
}
