// Inline PTX of other kinds: special registers, short copies with zeros, ldmatrix with 1, 2 and 4
// matrices, FP16.
#include <cuda_fp16.h>

#include <cstdint>
#include <cstdio>
#include <vector>

/// As many libraries write it.
__device__ uint32_t shared_address(const void* pointer) {
  uint32_t address;
  asm("{ .reg .u64 wide; // 64 bits first\n"
      "  cvta.to.shared.u64 wide, %1; cvt.u32.u64 %0, wide; }"
      : "=r"(address)
      : "l"(pointer));
  return address;
}

__global__ void registers(unsigned* out) {
  unsigned lane, warp, below, multiprocessor, before, after;
  asm volatile("mov.u32 %0, %%laneid;\n\tmov.u32 %1, %%warpid;" : "=r"(lane), "=r"(warp));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
  asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
  asm volatile("mov.u32 %0, %%clock;" : "=r"(before));
  asm volatile("bar.sync 0;");
  asm volatile("mov.u32 %0, %%clock;" : "=r"(after));
  const bool plausible = multiprocessor < 1024 && warp < 64 && after - before < 1u << 31;
  out[threadIdx.x] = lane | below << 8 | (plausible ? 0u : 1u << 7);
}

/// Rows of 6 numbers become rows of 8: two pairs, two by themselves, and a pair of zeros.
__global__ void copies(const float* in, float* out) {
  extern __shared__ float rows[];
  const int row = threadIdx.x;
  const float* from = in + row * 6;
  const uint32_t to = shared_address(rows + row * 8);
  for (int i = 0; i < 4; ++i) {
    if (i == 2) continue;
    const int bytes = i < 3 ? 8 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to + i * 8),
                 "l"(i < 3 ? from + i * 2 : in), "r"(bytes));
  }
  asm volatile("cp.async.ca.shared.global [%0+16], [%1+16], 4;" ::"r"(to), "l"(from));
  asm volatile("cp.async.ca.shared.global [%0+20], [%1+20], 4, %2;" ::"r"(to), "l"(from), "r"(4));
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  for (int i = 0; i < 8; ++i) out[row * 8 + i] = rows[row * 8 + i];
}

/// 16 x 16 numbers in shared memory, as each kind of ldmatrix gives them.
__global__ void matrices(const half* in, uint32_t* out) {
  __shared__ __align__(16) half tile[16][16];
  const int lane = threadIdx.x;
  for (int i = lane; i < 256; i += 32) tile[i / 16][i % 16] = in[i];
  __syncthreads();
  uint32_t r[10];
  const uint32_t address = shared_address(&tile[lane % 16][lane / 16 * 8]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(address));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
               : "=r"(r[1])
               : "r"(address));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[2]), "=r"(r[3])
               : "r"(address));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
               : "r"(address));
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r[8]) : "f"(lane + 0.5f), "f"(1.0f / (lane + 1)));
  r[9] = 0;
  for (int i = 0; i < 10; ++i) out[lane * 10 + i] = r[i];
}

/// D = A * B + C with all of them in FP16; A is the tile, B its upper left 16 x 8, C 1.
__global__ void product(const half* in, uint32_t* out) {
  const int group = threadIdx.x / 4, pair = threadIdx.x % 4 * 2;
  const auto both = [&](int row, int column) {
    return *reinterpret_cast<const uint32_t*>(in + row * 16 + column);
  };
  const auto down = [&](int row, int column) {
    return uint32_t{__half_as_ushort(in[row * 16 + column])} |
           uint32_t{__half_as_ushort(in[(row + 1) * 16 + column])} << 16;
  };
  uint32_t d[2];
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, "
      "{%6, %7}, {%8, %8};"
      : "=r"(d[0]), "=r"(d[1])
      : "r"(both(group, pair)), "r"(both(group + 8, pair)), "r"(both(group, pair + 8)),
        "r"(both(group + 8, pair + 8)), "r"(down(pair, group)), "r"(down(pair + 8, group)),
        "r"(0x3C003C00));
  out[threadIdx.x * 2] = d[0];
  out[threadIdx.x * 2 + 1] = d[1];
}

int main() {
  std::vector<float> floats(192), rows(256);
  std::vector<half> numbers(256);
  std::vector<uint32_t> words(320);
  for (int i = 0; i < 192; ++i) floats[i] = i + 1;
  for (int i = 0; i < 256; ++i) numbers[i] = i * 7 % 11 - 5;
  float *d_floats, *d_rows;
  half* d_numbers;
  uint32_t* d_words;
  cudaMalloc(&d_floats, floats.size() * 4);
  cudaMalloc(&d_rows, rows.size() * 4);
  cudaMalloc(&d_numbers, numbers.size() * 2);
  cudaMalloc(&d_words, words.size() * 4);
  cudaMemcpy(d_floats, floats.data(), floats.size() * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(d_numbers, numbers.data(), numbers.size() * 2, cudaMemcpyHostToDevice);
  const auto print = [&](const char* name, int count) {
    cudaMemcpy(words.data(), d_words, count * 4, cudaMemcpyDeviceToHost);
    uint64_t sum = 0;
    for (int i = 0; i < count; ++i) sum = sum * 31 + words[i];
    printf("%s %08x %08x %016llx\n", name, words[1], words[count - 1], (unsigned long long)sum);
  };
  registers<<<1, 64>>>(d_words);
  print("registers", 64);
  copies<<<1, 32, 32 * 8 * sizeof(float)>>>(d_floats, d_rows);
  cudaMemcpy(rows.data(), d_rows, rows.size() * 4, cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < 256; ++i) sum += rows[i] * (i + 1);
  printf("copies %.0f, a row: %.0f %.0f %.0f %.0f\n", sum, rows[8], rows[9], rows[13], rows[14]);
  matrices<<<1, 32>>>(d_numbers, d_words);
  print("matrices", 320);
  product<<<1, 32>>>(d_numbers, d_words);
  print("product", 64);
  for (void* each : std::vector<void*>{d_floats, d_rows, d_numbers, d_words}) cudaFree(each);
}
