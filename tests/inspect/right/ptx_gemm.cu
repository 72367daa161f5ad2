// C = A * B in BF16 with inline PTX: cp.async into two stages, ldmatrix, and mma.m16n8k16; then 2^x
// of each sum.
#include <cuda_bf16.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#define CP_ASYNC(to, from, bytes)                                                           \
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], %2;\n" ::"r"(to), "l"(from), \
               "n"(bytes))
#define CP_ASYNC_COMMIT() asm volatile("cp.async.commit_group;\n" ::)
#define CP_ASYNC_WAIT(n) asm volatile("cp.async.wait_group %0;\n" ::"n"(n))
#define LDMATRIX_X4(r0, r1, r2, r3, address)                                        \
  asm volatile("ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%0, %1, %2, %3}, [%4];\n" \
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)                             \
               : "r"(address))

constexpr int kM = 32, kN = 16, kK = 64, kStep = 16, kPitch = 24;

__device__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ unsigned lane_id() {
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

/// A warp makes a tile of 16 x 8. Both matrices are row-major.
__global__ void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, float* powers) {
  __shared__ __align__(16) __nv_bfloat16 tile_a[2][16][kPitch];
  __shared__ __align__(16) __nv_bfloat16 tile_b[2][16][8];
  const int lane = lane_id(), row = blockIdx.y * 16, column = blockIdx.x * 8;
  const auto fetch = [&](int stage, int k) {
    CP_ASYNC(shared_address(&tile_a[stage][lane / 2][lane % 2 * 8]),
             a + (row + lane / 2) * kK + k + lane % 2 * 8, 16);
    if (lane < 16) CP_ASYNC(shared_address(tile_b[stage][lane]), b + (k + lane) * kN + column, 16);
    CP_ASYNC_COMMIT();
  };
  float d[4] = {0, 0, 0, 0};
  fetch(0, 0);
  for (int k = 0; k < kK; k += kStep) {
    const int stage = k / kStep % 2;
    if (k + kStep < kK) {
      fetch(1 - stage, k + kStep);
      CP_ASYNC_WAIT(1);
    } else {
      CP_ASYNC_WAIT(0);
    }
    asm volatile("bar.sync 0;" ::: "memory");
    uint32_t of_a[4], of_b[2];
    LDMATRIX_X4(of_a[0], of_a[1], of_a[2], of_a[3],
                shared_address(&tile_a[stage][lane % 16][lane / 16 * 8]));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(of_b[0]), "=r"(of_b[1])
                 : "r"(shared_address(tile_b[stage][lane % 16])));
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(of_a[0]), "r"(of_a[1]), "r"(of_a[2]), "r"(of_a[3]), "r"(of_b[0]), "r"(of_b[1]));
    asm volatile("bar.sync 0;" ::: "memory");
  }
  for (int i = 0; i < 4; ++i) {
    const int at = (row + lane / 4 + i / 2 * 8) * kN + column + lane % 4 * 2 + i % 2;
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(d[i] / 64));
    c[at] = d[i];
    powers[at] = power;
  }
}

/// Two floats as a pair of BF16, the first in the upper half.
__global__ void pack(const float* in, uint32_t* out, int n) {
  const int i = threadIdx.x;
  if (i >= n) return;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out[i]) : "f"(in[2 * i]), "f"(in[2 * i + 1]));
}

int number(int i) {
  return i * 7 % 11 - 5;
}

int main() {
  std::vector<__nv_bfloat16> a(kM * kK), b(kK * kN);
  std::vector<float> c(kM * kN), powers(kM * kN), floats(32);
  std::vector<uint32_t> pairs(16);
  for (int i = 0; i < kM * kK; ++i) a[i] = number(i);
  for (int i = 0; i < kK * kN; ++i) b[i] = number(3 * i);
  for (int i = 0; i < 32; ++i) floats[i] = number(i) + 0.001f * i;
  __nv_bfloat16 *d_a, *d_b;
  float *d_c, *d_powers, *d_floats;
  uint32_t* d_pairs;
  cudaMalloc(&d_a, a.size() * 2);
  cudaMalloc(&d_b, b.size() * 2);
  cudaMalloc(&d_c, c.size() * 4);
  cudaMalloc(&d_powers, c.size() * 4);
  cudaMalloc(&d_floats, floats.size() * 4);
  cudaMalloc(&d_pairs, pairs.size() * 4);
  cudaMemcpy(d_a, a.data(), a.size() * 2, cudaMemcpyHostToDevice);
  cudaMemcpy(d_b, b.data(), b.size() * 2, cudaMemcpyHostToDevice);
  cudaMemcpy(d_floats, floats.data(), floats.size() * 4, cudaMemcpyHostToDevice);
  gemm<<<dim3(kN / 8, kM / 16), 32>>>(d_a, d_b, d_c, d_powers);
  pack<<<1, 32>>>(d_floats, d_pairs, 16);
  cudaMemcpy(c.data(), d_c, c.size() * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(powers.data(), d_powers, c.size() * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(pairs.data(), d_pairs, pairs.size() * 4, cudaMemcpyDeviceToHost);
  double sum = 0, weighted = 0, power = 0;
  for (int i = 0; i < kM * kN; ++i) sum += c[i], weighted += c[i] * (i % 101), power += powers[i];
  printf("%.1f %.1f %.2f\n", sum, weighted, power);
  for (const uint32_t pair : pairs) printf("%08x ", pair);
  printf("\n");
  for (void* each : std::vector<void*>{d_a, d_b, d_c, d_powers, d_floats, d_pairs}) cudaFree(each);
}
