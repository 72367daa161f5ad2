#pragma once

/// \file
/// What Hopper alone has, each function one PTX instruction or two: mbarriers, the copies of TMA,
/// clusters of blocks, and wgmma. There where sm_90a is compiled and nowhere else: a kernel that uses
/// it stands under `#if defined(__CUDA_ARCH_FEAT_SM90_ALL)`. PTX ISA, "mbarrier",
/// "cp.async.bulk.tensor" and "Asynchronous Warpgroup Level Matrix Instructions".

#include "kernels/base/simt/mma.hpp"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

#include <cuda.h>

#include <cstdint>

namespace tilestep::simt::hopper {

// ---- mbarriers ----------------------------------------------------------------------------------
// A barrier's phase ends when all expected arrivals and all expected bytes have come. A waiter
// names the parity of the phase that it waits for; the phase before the first counts as ended.

__device__ __forceinline__ void barrier_init(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(arrivals)
               : "memory");
}
__device__ __forceinline__ void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}
/// Makes initialised barriers known to TMA and to the other blocks of the cluster.
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
}
/// Arrives, and lets the phase wait for `bytes` of copies too.
__device__ __forceinline__ void arrive_expecting(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(bytes)
               : "memory");
}
/// Arrives at the same barrier of a block of the cluster.
__device__ __forceinline__ void arrive_at(unsigned barrier, unsigned block) {
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}\n" ::"r"(barrier),
      "r"(block)
      : "memory");
}
__device__ __forceinline__ void wait_for(unsigned barrier, unsigned parity) {
  unsigned done = 0;
  while (done == 0) {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}\n"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
}

__device__ __forceinline__ unsigned rank_in_cluster() {
  unsigned rank = 0;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// All threads of all blocks of the cluster meet.
__device__ __forceinline__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n" ::: "memory");
}

/// Starts the copy of a box of rows, k from `k` on, to shared memory, of both blocks of a cluster
/// if kBlocks is 2; its bytes are announced to the barrier of the same place in each.
template <int kBlocks>
__device__ __forceinline__ void fetch(const CUtensorMap& map, unsigned to, unsigned barrier, int k,
                                      int row) {
  if constexpr (kBlocks == 1) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4}], [%2];\n" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(k), "r"(row)
        : "memory");
  } else {
    constexpr auto kAll = static_cast<std::uint16_t>((1 << kBlocks) - 1);
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%4, %5}], [%2], %3;\n" ::"r"(to),
        "l"(&map), "r"(barrier), "h"(kAll), "r"(k), "r"(row)
        : "memory");
  }
}

/// Gives registers away, or takes them: all warps of a warpgroup call it.
template <int kRegisters>
__device__ __forceinline__ void keep_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
}

// ---- wgmma --------------------------------------------------------------------------------------
// d = A·Bᵀ (+ d unless `fresh`) by the four warps of a warpgroup, A 64 × k and B n × k in shared
// memory, k fastest. Warp w has rows 16w … 16w+15 of d, its lanes as in mma.m16n8. Asynchronous: d
// must not be touched before the wait. `a` and `b` are descriptors.

/// The pattern of the 128-byte swizzle repeats after 8 rows of 128 bytes: a tile must start at a
/// multiple of that.
inline constexpr int kSwizzleBytes = 8 * 128;

/// Describes the tile at a shared address with 128-byte swizzle, k fastest: 8 rows take 1024 bytes;
/// swizzle mode 1.
__device__ __forceinline__ std::uint64_t descriptor(unsigned tile) {
  const auto field = [](unsigned bytes) { return static_cast<std::uint64_t>(bytes / 16 & 0x3FFF); };
  return field(tile) | field(16) << 16 | field(kSwizzleBytes) << 32 | std::uint64_t{1} << 62;
}

// clang-format off
#define TILESTEP_REGISTERS_64 \
  "{%0, %1, %2, %3, %4, %5, %6, %7, " \
  "%8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, " \
  "%40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, " \
  "%56, %57, %58, %59, %60, %61, %62, %63}"
#define TILESTEP_REGISTERS_128 \
  "{%0, %1, %2, %3, %4, %5, %6, %7, " \
  "%8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, " \
  "%40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, " \
  "%56, %57, %58, %59, %60, %61, %62, %63, " \
  "%64, %65, %66, %67, %68, %69, %70, %71, " \
  "%72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, " \
  "%88, %89, %90, %91, %92, %93, %94, %95, " \
  "%96, %97, %98, %99, %100, %101, %102, %103, " \
  "%104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, " \
  "%120, %121, %122, %123, %124, %125, %126, %127}"
// clang-format on
#define TILESTEP_SUMS_8(d, i)                                                                 \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define TILESTEP_SUMS_64(d, i)                                                            \
  TILESTEP_SUMS_8(d, i), TILESTEP_SUMS_8(d, i + 8), TILESTEP_SUMS_8(d, i + 16),           \
      TILESTEP_SUMS_8(d, i + 24), TILESTEP_SUMS_8(d, i + 32), TILESTEP_SUMS_8(d, i + 40), \
      TILESTEP_SUMS_8(d, i + 48), TILESTEP_SUMS_8(d, i + 56)

/// E4M3, n = 128, k = 32.
__device__ __forceinline__ void wgmma_fp8_n128(float (&d)[64], std::uint64_t a, std::uint64_t b,
                                               bool fresh) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.eq.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 " TILESTEP_REGISTERS_64
      ", %64, %65, p, 1, 1;\n}\n"
      : TILESTEP_SUMS_64(d, 0)
      : "l"(a), "l"(b), "r"(static_cast<int>(fresh)));
}
/// BF16, n = 128, k = 16; into the first 64 of a thread's sums.
template <int kSums>
__device__ __forceinline__ void wgmma_bf16_n128(float (&d)[kSums], std::uint64_t a, std::uint64_t b,
                                                bool fresh) {
  static_assert(kSums >= 64);
  asm volatile(
      "{\n.reg .pred p;\nsetp.eq.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " TILESTEP_REGISTERS_64
      ", %64, %65, p, 1, 1, 0, 0;\n}\n"
      : TILESTEP_SUMS_64(d, 0)
      : "l"(a), "l"(b), "r"(static_cast<int>(fresh)));
}
/// BF16, n = 256, k = 16.
__device__ __forceinline__ void wgmma_bf16_n256(float (&d)[128], std::uint64_t a, std::uint64_t b,
                                                bool fresh) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.eq.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " TILESTEP_REGISTERS_128
      ", %128, %129, p, 1, 1, 0, 0;\n}\n"
      : TILESTEP_SUMS_64(d, 0), TILESTEP_SUMS_64(d, 64)
      : "l"(a), "l"(b), "r"(static_cast<int>(fresh)));
}
#undef TILESTEP_SUMS_64
#undef TILESTEP_SUMS_8
#undef TILESTEP_REGISTERS_128
#undef TILESTEP_REGISTERS_64

__device__ __forceinline__ void wgmma_begin() {
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(kPending) : "memory");
}
/// Keeps the compiler from reading the sums before this point.
template <int kCount>
__device__ __forceinline__ void settle(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
/// What ordinary copies wrote to shared memory becomes visible to wgmma.
__device__ __forceinline__ void publish_to_tensor_cores() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

}  // namespace tilestep::simt::hopper

#endif
