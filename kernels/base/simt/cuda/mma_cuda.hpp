#pragma once

/// \file
/// Included by mma.hpp under nvcc. Before compute capability 8.0 the copies are plain ones, and a
/// kernel with the matrix instructions must not be launched (`kMmaCapability`).

#include <cstdint>

#include "kernels/base/simt/cuda/cuda_dialect.hpp"

namespace tilestep::simt {

/// The least compute capability (×10) that has the matrix instructions.
inline constexpr int kMmaCapability = 80;
/// Whether what is being compiled has them. A kernel that is not launched elsewhere may begin with
///
///     if (!simt::kHasMma) return;
///
/// and takes no time of the compiler there.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
inline constexpr bool kHasMma = true;
#else
inline constexpr bool kHasMma = false;
#endif

/// Address in the shared window, which is what the instructions take.
__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// Not declared where kernels are compiled for any GPU: below 8.0 these are traps, which no compiler reports.
#if !defined(SIMT_ANY_GPU)
__device__ __forceinline__ void mma_m16n8k16_bf16(float (&d)[4], const unsigned (&a)[4],
                                                  unsigned b0, unsigned b1) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  asm volatile("trap;");
#endif
}

/// The same with FP16.
__device__ __forceinline__ void mma_m16n8k16_fp16(float (&d)[4], const unsigned (&a)[4],
                                                  unsigned b0, unsigned b1) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  asm volatile("trap;");
#endif
}
/// Whole numbers of a byte.
__device__ __forceinline__ void mma_m16n8k32_s8(int (&d)[4], const unsigned (&a)[4], unsigned b0,
                                                unsigned b1) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  asm volatile("trap;");
#endif
}
/// The same with FP16 sums, two in a register: d[0] holds what d[0] and d[1] hold above. Under nvcc alone.
__device__ __forceinline__ void mma_m16n8k16_fp16_acc16(unsigned (&d)[2], const unsigned (&a)[4],
                                                        unsigned b0, unsigned b1) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
      "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};\n"
      : "+r"(d[0]), "+r"(d[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  asm volatile("trap;");
#endif
}

/// The low half comes last among the operands (PTX ISA, "cvt").
__device__ __forceinline__ unsigned pack_bf16(float low, float high) {
  unsigned both = 0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16x2.f32 %0, %2, %1;\n" : "=r"(both) : "f"(low), "f"(high));
#else
  asm volatile("trap;");
#endif
  return both;
}
#endif
/// Rounded to the nearest even one. Older GPUs convert one number at a time.
__device__ __forceinline__ unsigned pack_fp16(float low, float high) {
  unsigned both = 0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm("cvt.rn.f16x2.f32 %0, %2, %1;\n" : "=r"(both) : "f"(low), "f"(high));
#else
  asm("{\n.reg .b16 first, second;\ncvt.rn.f16.f32 first, %1;\ncvt.rn.f16.f32 second, %2;\n"
      "mov.b32 %0, {first, second};\n}\n"
      : "=r"(both)
      : "f"(low), "f"(high));
#endif
  return both;
}

__device__ __forceinline__ float unpack_bf16(unsigned pair, int half) {
  return __uint_as_float(half == 0 ? pair << 16 : pair & 0xFFFF0000u);
}
__device__ __forceinline__ float unpack_fp16(unsigned pair, int half) {
  const auto bits = static_cast<unsigned short>(half == 0 ? pair : pair >> 16);
  float value;
  asm("cvt.f32.f16 %0, %1;\n" : "=f"(value) : "h"(bits));
  return value;
}

/// One instruction of the special-function unit; exp2f is several, for what is below the normal numbers.
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ void ldmatrix_x4(unsigned (&r)[4], const std::uint16_t* row) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 750
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
#endif
}

__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&r)[4], const std::uint16_t* row) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 750
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
#endif
}

/// `to` is in shared, `from` in global memory, both aligned to 16 bytes. Passes by L1.
template <class T>
__device__ __forceinline__ void cp_async16(T* to, const T* from) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(shared_address(to)), "l"(from)
               : "memory");
#else
  *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
#endif
}

/// The same, but zeros where `inside` is false; then `from` is not read.
template <class T>
__device__ __forceinline__ void cp_async16(T* to, const T* from, bool inside) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  const int bytes = inside ? 16 : 0;  // what is missing of the 16 is filled with zeros
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes)
               : "memory");
#else
  *reinterpret_cast<uint4*>(to) =
      inside ? *reinterpret_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);
#endif
}

/// One element of 4 bytes. Where `inside` is false `from` is not read.
template <class T>
__device__ __forceinline__ void cp_async4(T* to, const T* from, bool inside) {
  static_assert(sizeof(T) == 4);
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  const int bytes = inside ? 4 : 0;  // what is missing of the 4 is filled with zeros
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes)
               : "memory");
#else
  *to = inside ? *from : T{};
#endif
}

/// Closes a group of the copies that this thread started.
__device__ __forceinline__ void cp_async_commit() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;\n" ::: "memory");
#endif
}

/// Waits until at most kPending of this thread's newest groups are still under way.
template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
#endif
}

}  // namespace tilestep::simt
