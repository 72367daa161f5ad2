// C = alpha * A * B + C on tensor cores: fragments of three shapes from global memory, and BF16
// through shared memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdio>
#include <vector>

using namespace nvcuda;

constexpr int kM = 64, kN = 32, kK = 48;

/// A is row-major, B column-major, C row-major. A warp makes a tile of kTileM x kTileN.
template <int kTileM, int kTileN, class Sum>
__global__ void gemm(const half* a, const half* b, Sum* c, float alpha) {
  const int row = blockIdx.y * kTileM, column = blockIdx.x * kTileN;
  wmma::fragment<wmma::accumulator, kTileM, kTileN, 16, Sum> sum, old;
  wmma::fill_fragment(sum, 0.0f);
  for (int k = 0; k < kK; k += 16) {
    wmma::fragment<wmma::matrix_a, kTileM, kTileN, 16, half, wmma::row_major> of_a;
    wmma::fragment<wmma::matrix_b, kTileM, kTileN, 16, half, wmma::col_major> of_b;
    wmma::load_matrix_sync(of_a, a + row * kK + k, kK);
    wmma::load_matrix_sync(of_b, b + column * kK + k, kK);
    wmma::mma_sync(sum, of_a, of_b, sum);
  }
  wmma::load_matrix_sync(old, c + row * kN + column, kN, wmma::mem_row_major);
  for (int i = 0; i < sum.num_elements; ++i)
    sum.x[i] =
        static_cast<Sum>(alpha * static_cast<float>(sum.x[i]) + static_cast<float>(old.x[i]));
  wmma::store_matrix_sync(c + row * kN + column, sum, kN, wmma::mem_row_major);
}

/// A is column-major, B row-major, and C is stored column-major. Tiles have padded rows in shared
/// memory.
__global__ void gemm_shared(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
  __shared__ __align__(32) __nv_bfloat16 tile_a[16][24], tile_b[16][24];
  const int lane = threadIdx.x, row = blockIdx.y * 16, column = blockIdx.x * 16;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int k = 0; k < kK; k += 16) {
    for (int i = lane; i < 256; i += 32) {
      tile_a[i / 16][i % 16] = a[(k + i / 16) * kM + row + i % 16];
      tile_b[i / 16][i % 16] = b[(k + i / 16) * kN + column + i % 16];
    }
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::col_major> of_a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> of_b;
    wmma::load_matrix_sync(of_a, &tile_a[0][0], 24);
    wmma::load_matrix_sync(of_b, &tile_b[0][0], 24);
    wmma::mma_sync(sum, of_a, of_b, sum);
    __syncwarp();
  }
  wmma::store_matrix_sync(c + column * kM + row, sum, kM, wmma::mem_col_major);
}

int number(int i) {
  return i * 7 % 11 - 5;
}

template <class T>
T* to_device(const std::vector<T>& host) {
  T* device;
  cudaMalloc(&device, host.size() * sizeof(T));
  cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice);
  return device;
}

template <class T>
void print_sums(const char* name, const T* device, bool by_column) {
  std::vector<T> c(kM * kN);
  cudaMemcpy(c.data(), device, c.size() * sizeof(T), cudaMemcpyDeviceToHost);
  double sum = 0, weighted = 0;
  for (int i = 0; i < kM * kN; ++i) {
    const float each = static_cast<float>(by_column ? c[i % kN * kM + i / kN] : c[i]);
    sum += each;
    weighted += each * (i % 101);
  }
  printf("%s %.1f %.1f\n", name, sum, weighted);
}

int main() {
  std::vector<half> a(kM * kK), b(kK * kN), c_half(kM * kN);
  std::vector<__nv_bfloat16> a_bf16(kM * kK), b_bf16(kK * kN);
  std::vector<float> c(kM * kN);
  for (int i = 0; i < kM * kK; ++i) a[i] = number(i), a_bf16[i] = number(i);
  for (int i = 0; i < kK * kN; ++i) b[i] = number(3 * i), b_bf16[i] = number(3 * i);
  for (int i = 0; i < kM * kN; ++i) c[i] = number(i) / 2.0f, c_half[i] = number(i) / 2.0f;
  half *d_a = to_device(a), *d_b = to_device(b), *d_half = to_device(c_half);
  __nv_bfloat16 *d_a_bf16 = to_device(a_bf16), *d_b_bf16 = to_device(b_bf16);
  float *d_square = to_device(c), *d_tall = to_device(c), *d_wide = to_device(c), *d_shared;
  cudaMalloc(&d_shared, kM * kN * sizeof(float));
  gemm<16, 16><<<dim3(kN / 16, kM / 16), 32>>>(d_a, d_b, d_square, 0.5f);
  gemm<32, 8><<<dim3(kN / 8, kM / 32), 32>>>(d_a, d_b, d_tall, 0.5f);
  gemm<8, 32><<<dim3(kN / 32, kM / 8), 32>>>(d_a, d_b, d_wide, 0.5f);
  gemm<16, 16><<<dim3(kN / 16, kM / 16), 32>>>(d_a, d_b, d_half, 0.5f);
  gemm_shared<<<dim3(kN / 16, kM / 16), 32>>>(d_a_bf16, d_b_bf16, d_shared);
  print_sums("16x16x16", d_square, false);
  print_sums("32x8x16", d_tall, false);
  print_sums("8x32x16", d_wide, false);
  print_sums("half", d_half, false);
  print_sums("shared", d_shared, true);
  for (half* each : {d_a, d_b, d_half}) cudaFree(each);
  for (__nv_bfloat16* each : {d_a_bf16, d_b_bf16}) cudaFree(each);
  for (float* each : {d_square, d_tall, d_wide, d_shared}) cudaFree(each);
}
