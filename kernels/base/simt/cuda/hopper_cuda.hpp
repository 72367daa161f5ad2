#pragma once

/// \file
/// Included by hopper.hpp under nvcc: Hopper's words as PTX. Where not sm_90a is compiled they trap, so
/// that a kernel needs no `#if` of its own; it must not be launched there.

#include <cuda.h>

#include <cstdint>
#include <type_traits>

#include "kernels/base/simt/mma.hpp"

#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TILESTEP_PTX(...) asm volatile(__VA_ARGS__)
#else
#define TILESTEP_PTX(...) asm volatile("trap;\n" ::: "memory")
#endif

namespace tilestep::simt::hopper {

/// What TMA knows of an array: tensor_map.hpp.
using TensorMap = CUtensorMap;

// ---- mbarriers ----------------------------------------------------------------------------------

__device__ __forceinline__ void barrier_init([[maybe_unused]] unsigned barrier,
                                             [[maybe_unused]] int arrivals) {
  TILESTEP_PTX("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(arrivals)
               : "memory");
}
__device__ __forceinline__ void arrive([[maybe_unused]] unsigned barrier) {
  TILESTEP_PTX("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void publish_barriers() {
  TILESTEP_PTX("fence.mbarrier_init.release.cluster;\n" ::: "memory");
}
__device__ __forceinline__ void arrive_expecting([[maybe_unused]] unsigned barrier,
                                                 [[maybe_unused]] int bytes) {
  TILESTEP_PTX("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void expect_bytes([[maybe_unused]] unsigned barrier,
                                             [[maybe_unused]] int bytes) {
  TILESTEP_PTX("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;\n" ::"r"(barrier),
               "r"(bytes)
               : "memory");
}
/// Arrives at the same barrier of a block of the cluster. Relaxed: an arrival that also releases what was
/// written before costs a fence at the cluster's scope, and products that have been waited for need none.
__device__ __forceinline__ void arrive_at([[maybe_unused]] unsigned barrier,
                                          [[maybe_unused]] unsigned block) {
  TILESTEP_PTX(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [there];\n}\n" ::"r"(barrier),
      "r"(block)
      : "memory");
}
template <class T>
__device__ __forceinline__ void store_at([[maybe_unused]] unsigned address,
                                         [[maybe_unused]] unsigned barrier,
                                         [[maybe_unused]] unsigned block, const T& value) {
  static_assert(sizeof(T) == 8);
  [[maybe_unused]] std::uint64_t bits;
  memcpy(&bits, &value, 8);
  TILESTEP_PTX(
      "{\n.reg .b32 to, at;\nmapa.shared::cluster.u32 to, %0, %3;\n"
      "mapa.shared::cluster.u32 at, %1, %3;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [to], %2, [at];\n}\n" ::"r"(
          address),
      "r"(barrier), "l"(bits), "r"(block)
      : "memory");
}
__device__ __forceinline__ bool try_wait([[maybe_unused]] unsigned barrier,
                                         [[maybe_unused]] unsigned parity) {
  unsigned done = 0;
  TILESTEP_PTX(
      "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}\n"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}
__device__ __forceinline__ void wait_for(unsigned barrier, unsigned parity) {
  while (!try_wait(barrier, parity)) {
  }
}
__device__ __forceinline__ bool wait_at_most(unsigned barrier, unsigned parity, long long cycles) {
  const long long start = clock64();
  while (!try_wait(barrier, parity)) {
    if (clock64() - start > cycles) return false;
  }
  return true;
}

/// Looks on while others wait: whether the phase has ended before so many cycles are over.
__device__ __forceinline__ bool watch([[maybe_unused]] unsigned barrier,
                                      [[maybe_unused]] unsigned parity, long long cycles) {
  const long long start = clock64();
  unsigned done = 0;
  do {
    TILESTEP_PTX(
        "{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}\n"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (done == 0 && clock64() - start <= cycles);
  return done != 0;
}
/// Of the multiprocessor.
__device__ __forceinline__ long long cycles() {
  return clock64();
}
/// Since some moment; all multiprocessors share it.
__device__ __forceinline__ long long nanoseconds() {
  long long now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

// ---- clusters -----------------------------------------------------------------------------------

__device__ __forceinline__ unsigned rank_in_cluster() {
  unsigned rank = 0;
  TILESTEP_PTX("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// All threads of all blocks of the cluster meet.
__device__ __forceinline__ void cluster_barrier() {
  TILESTEP_PTX("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n" ::: "memory");
}

// ---- TMA ----------------------------------------------------------------------------------------

/// With kBlocks 2, 4 or 8 the box comes to so many blocks of the cluster, from the first on, and is announced
/// to the barrier of the same place in each.
template <int kBlocks = 1>
__device__ __forceinline__ void fetch(const TensorMap& map, unsigned to, unsigned barrier,
                                      int column, int row) {
  if constexpr (kBlocks == 1) {
    TILESTEP_PTX(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4}], [%2];\n" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(column), "r"(row)
        : "memory");
  } else {
    [[maybe_unused]] constexpr auto kAll = static_cast<std::uint16_t>((1 << kBlocks) - 1);
    TILESTEP_PTX(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%4, %5}], [%2], %3;\n" ::"r"(to),
        "l"(&map), "r"(barrier), "h"(kAll), "r"(column), "r"(row)
        : "memory");
  }
}
/// Of one of the map's matrices.
__device__ __forceinline__ void fetch([[maybe_unused]] const TensorMap& map,
                                      [[maybe_unused]] unsigned to,
                                      [[maybe_unused]] unsigned barrier,
                                      [[maybe_unused]] int column, [[maybe_unused]] int row,
                                      [[maybe_unused]] int matrix) {
  TILESTEP_PTX(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5}], [%2];\n" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(column), "r"(row), "r"(matrix)
      : "memory");
}
__device__ __forceinline__ void store([[maybe_unused]] const TensorMap& map,
                                      [[maybe_unused]] unsigned from, [[maybe_unused]] int column,
                                      [[maybe_unused]] int row) {
  TILESTEP_PTX(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];\n" ::"l"(
          &map),
      "r"(from), "r"(column), "r"(row)
      : "memory");
}
__device__ __forceinline__ void store([[maybe_unused]] const TensorMap& map,
                                      [[maybe_unused]] unsigned from, [[maybe_unused]] int column,
                                      [[maybe_unused]] int row, [[maybe_unused]] int matrix) {
  TILESTEP_PTX(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], "
      "[%1];\n" ::"l"(&map),
      "r"(from), "r"(column), "r"(row), "r"(matrix)
      : "memory");
}
/// The numbers are added to those there: FP32 or BF16, as the map says.
__device__ __forceinline__ void reduce_add([[maybe_unused]] const TensorMap& map,
                                           [[maybe_unused]] unsigned from,
                                           [[maybe_unused]] int column, [[maybe_unused]] int row) {
  TILESTEP_PTX(
      "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%2, %3}], "
      "[%1];\n" ::"l"(&map),
      "r"(from), "r"(column), "r"(row)
      : "memory");
}
/// Fetches the map itself, ahead of its first use.
__device__ __forceinline__ void prefetch([[maybe_unused]] const TensorMap& map) {
  TILESTEP_PTX("prefetch.tensormap [%0];\n" ::"l"(&map) : "memory");
}
__device__ __forceinline__ void store_commit() {
  TILESTEP_PTX("cp.async.bulk.commit_group;\n" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void store_wait() {
  TILESTEP_PTX("cp.async.bulk.wait_group.read %0;\n" ::"n"(kPending) : "memory");
}
__device__ __forceinline__ void others_may_begin() {
  TILESTEP_PTX("griddepcontrol.launch_dependents;\n" :::);
}
__device__ __forceinline__ void await_launch_before() {
  TILESTEP_PTX("griddepcontrol.wait;\n" ::: "memory");
}
__device__ __forceinline__ void publish_to_async_proxy() {
  TILESTEP_PTX("fence.proxy.async.shared::cta;\n" ::: "memory");
}

// ---- named barriers and registers ---------------------------------------------------------------

__device__ __forceinline__ void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}
/// Gives registers away, or takes them: all warps of a warpgroup call it.
template <int kRegisters>
__device__ __forceinline__ void keep_registers() {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256);
  TILESTEP_PTX("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256);
  TILESTEP_PTX("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
}

/// Two numbers in BF16, rounded to nearest even, the first in the low half.
__device__ __forceinline__ unsigned pack_bf16(float low, float high) {
  unsigned both = 0;
  TILESTEP_PTX("cvt.rn.bf16x2.f32 %0, %2, %1;\n" : "=r"(both) : "f"(low), "f"(high));
  return both;
}
/// The same in FP16.
__device__ __forceinline__ unsigned pack_fp16(float low, float high) {
  unsigned both = 0;
  TILESTEP_PTX("cvt.rn.f16x2.f32 %0, %2, %1;\n" : "=r"(both) : "f"(low), "f"(high));
  return both;
}
/// Four in E4M3 or as whole numbers of a byte, saturated, the first in the lowest byte.
__device__ __forceinline__ unsigned pack_e4m3(float a, float b, float c, float d) {
  unsigned four = 0;
  TILESTEP_PTX(
      "{\n.reg .b16 low, high;\ncvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
      "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\nmov.b32 %0, {low, high};\n}\n"
      : "=r"(four)
      : "f"(a), "f"(b), "f"(c), "f"(d));
  return four;
}
__device__ __forceinline__ unsigned pack_s8(float a, float b, float c, float d) {
  const float numbers[4] = {a, b, c, d};
  unsigned four = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    int one = 0;
    asm("cvt.rni.sat.s8.f32 %0, %1;\n" : "=r"(one) : "f"(numbers[i]));
    four |= (static_cast<unsigned>(one) & 0xFFu) << (8 * i);
  }
  return four;
}
/// 2^x. Not volatile: what nobody uses is left out, and the rest may move.
__device__ __forceinline__ float exp2_approximate(float x) {
  float power = 0;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(power) : "f"(x));
  return power;
}

// ---- wgmma --------------------------------------------------------------------------------------

// clang-format off
// Registers %0 … as the instruction lists them, and the operands that they are.
#define TILESTEP_LIST_4 \
  "%0, %1, %2, %3"
#define TILESTEP_LIST_8 TILESTEP_LIST_4 ", " \
  "%4, %5, %6, %7"
#define TILESTEP_LIST_16 TILESTEP_LIST_8 ", " \
  "%8, %9, %10, %11, %12, %13, %14, %15"
#define TILESTEP_LIST_32 TILESTEP_LIST_16 ", " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TILESTEP_LIST_48 TILESTEP_LIST_32 ", " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define TILESTEP_LIST_64 TILESTEP_LIST_48 ", " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TILESTEP_LIST_80 TILESTEP_LIST_64 ", " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define TILESTEP_LIST_88 TILESTEP_LIST_80 ", " \
  "%80, %81, %82, %83, %84, %85, %86, %87"
#define TILESTEP_LIST_96 TILESTEP_LIST_88 ", " \
  "%88, %89, %90, %91, %92, %93, %94, %95"
#define TILESTEP_LIST_128 TILESTEP_LIST_96 ", " \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define TILESTEP_SUMS_4(how, d, i) how(d[i]), how(d[i + 1]), how(d[i + 2]), how(d[i + 3])
#define TILESTEP_SUMS_8(how, d, i) TILESTEP_SUMS_4(how, d, i), TILESTEP_SUMS_4(how, d, i + 4)
#define TILESTEP_SUMS_16(how, d, i) TILESTEP_SUMS_8(how, d, i), TILESTEP_SUMS_8(how, d, i + 8)
#define TILESTEP_SUMS_32(how, d, i) TILESTEP_SUMS_16(how, d, i), TILESTEP_SUMS_16(how, d, i + 16)
#define TILESTEP_SUMS_48(how, d, i) TILESTEP_SUMS_32(how, d, i), TILESTEP_SUMS_16(how, d, i + 32)
#define TILESTEP_SUMS_64(how, d, i) TILESTEP_SUMS_32(how, d, i), TILESTEP_SUMS_32(how, d, i + 32)
#define TILESTEP_SUMS_80(how, d, i) TILESTEP_SUMS_64(how, d, i), TILESTEP_SUMS_16(how, d, i + 64)
#define TILESTEP_SUMS_88(how, d, i) TILESTEP_SUMS_80(how, d, i), TILESTEP_SUMS_8(how, d, i + 80)
#define TILESTEP_SUMS_96(how, d, i) TILESTEP_SUMS_64(how, d, i), TILESTEP_SUMS_32(how, d, i + 64)
#define TILESTEP_SUMS_128(how, d, i) TILESTEP_SUMS_64(how, d, i), TILESTEP_SUMS_64(how, d, i + 64)
// One product: A from shared memory by its descriptor, or from four registers; B by its descriptor; whether d
// counts. The numbers are those of the operands, after the C sums.
#define TILESTEP_WGMMA(N, C, HOW, A, B, FRESH, SHAPE, TAIL) \
  TILESTEP_PTX("{\n.reg .pred p;\nsetp.eq.b32 p, %" #FRESH ", 0;\n" \
               "wgmma.mma_async.sync.aligned.m64n" #N SHAPE " {" TILESTEP_LIST_##C "}, %" #A ", %" #B ", p" TAIL ";\n}\n" \
               : TILESTEP_SUMS_##C(HOW, d, 0) : "l"(a), "l"(b), "r"(static_cast<int>(fresh)))
#define TILESTEP_WGMMA_REGISTERS(N, C, HOW, A0, A1, A2, A3, B, FRESH, SHAPE, TAIL) \
  TILESTEP_PTX("{\n.reg .pred p;\nsetp.eq.b32 p, %" #FRESH ", 0;\n" \
               "wgmma.mma_async.sync.aligned.m64n" #N SHAPE " {" TILESTEP_LIST_##C "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B ", p" TAIL ";\n}\n" \
               : TILESTEP_SUMS_##C(HOW, d, 0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(fresh)))
// MORE: how A lies, where that can be said.
#define TILESTEP_WGMMA_FORMATS(WGMMA, MORE, N, C, ...) \
  if constexpr (kFormat == Format::bf16 && kMajorB == Major::k) { \
    WGMMA(N, C, "+f", __VA_ARGS__, "k16.f32.bf16.bf16", ", 1, 1" MORE ", 0"); \
  } else if constexpr (kFormat == Format::bf16) { \
    WGMMA(N, C, "+f", __VA_ARGS__, "k16.f32.bf16.bf16", ", 1, 1" MORE ", 1"); \
  } else if constexpr (kFormat == Format::fp16 && kMajorB == Major::k) { \
    WGMMA(N, C, "+f", __VA_ARGS__, "k16.f32.f16.f16", ", 1, 1" MORE ", 0"); \
  } else if constexpr (kFormat == Format::fp16) { \
    WGMMA(N, C, "+f", __VA_ARGS__, "k16.f32.f16.f16", ", 1, 1" MORE ", 1"); \
  } else if constexpr (kFormat == Format::e4m3) { \
    WGMMA(N, C, "+f", __VA_ARGS__, "k32.f32.e4m3.e4m3", ", 1, 1"); \
  } else { \
    WGMMA(N, C, "+r", __VA_ARGS__, "k32.s32.s8.s8", ""); \
  }
// Two steps, so that what is passed on is taken apart.
#define TILESTEP_WGMMA_SHARED(...) TILESTEP_WGMMA(__VA_ARGS__)
#define TILESTEP_WGMMA_OF_REGISTERS(...) TILESTEP_WGMMA_REGISTERS(__VA_ARGS__)
#define TILESTEP_FROM_SHARED(N, C, ...) TILESTEP_WGMMA_FORMATS(TILESTEP_WGMMA_SHARED, ", 0", N, C, __VA_ARGS__)
#define TILESTEP_FROM_REGISTERS(N, C, ...) TILESTEP_WGMMA_FORMATS(TILESTEP_WGMMA_OF_REGISTERS, "", N, C, __VA_ARGS__)

template <Format kFormat, int kN, Major kMajorB = Major::k, class T, int kSums>
__device__ __forceinline__ void wgmma(T (&d)[kSums], std::uint64_t a, std::uint64_t b, bool fresh) {
  static_assert(allowed_product<kFormat, kN, kMajorB, T, kSums>());
  if constexpr (kN == 8) {
    TILESTEP_FROM_SHARED(8, 4, 4, 5, 6);
  } else if constexpr (kN == 16) {
    TILESTEP_FROM_SHARED(16, 8, 8, 9, 10);
  } else if constexpr (kN == 32) {
    TILESTEP_FROM_SHARED(32, 16, 16, 17, 18);
  } else if constexpr (kN == 64) {
    TILESTEP_FROM_SHARED(64, 32, 32, 33, 34);
  } else if constexpr (kN == 96) {
    TILESTEP_FROM_SHARED(96, 48, 48, 49, 50);
  } else if constexpr (kN == 128) {
    TILESTEP_FROM_SHARED(128, 64, 64, 65, 66);
  } else if constexpr (kN == 160) {
    TILESTEP_FROM_SHARED(160, 80, 80, 81, 82);
  } else if constexpr (kN == 176) {
    TILESTEP_FROM_SHARED(176, 88, 88, 89, 90);
  } else if constexpr (kN == 192) {
    TILESTEP_FROM_SHARED(192, 96, 96, 97, 98);
  } else if constexpr (kN == 256) {
    TILESTEP_FROM_SHARED(256, 128, 128, 129, 130);
  }
}
/// Nothing may write A's registers before the wait.
template <Format kFormat, int kN, Major kMajorB = Major::k, class T, int kSums>
__device__ __forceinline__ void wgmma(T (&d)[kSums], const unsigned (&a)[4], std::uint64_t b, bool fresh) {
  static_assert(allowed_product<kFormat, kN, kMajorB, T, kSums>());
  if constexpr (kN == 8) {
    TILESTEP_FROM_REGISTERS(8, 4, 4, 5, 6, 7, 8, 9);
  } else if constexpr (kN == 16) {
    TILESTEP_FROM_REGISTERS(16, 8, 8, 9, 10, 11, 12, 13);
  } else if constexpr (kN == 32) {
    TILESTEP_FROM_REGISTERS(32, 16, 16, 17, 18, 19, 20, 21);
  } else if constexpr (kN == 64) {
    TILESTEP_FROM_REGISTERS(64, 32, 32, 33, 34, 35, 36, 37);
  } else if constexpr (kN == 96) {
    TILESTEP_FROM_REGISTERS(96, 48, 48, 49, 50, 51, 52, 53);
  } else if constexpr (kN == 128) {
    TILESTEP_FROM_REGISTERS(128, 64, 64, 65, 66, 67, 68, 69);
  } else if constexpr (kN == 160) {
    TILESTEP_FROM_REGISTERS(160, 80, 80, 81, 82, 83, 84, 85);
  } else if constexpr (kN == 176) {
    TILESTEP_FROM_REGISTERS(176, 88, 88, 89, 90, 91, 92, 93);
  } else if constexpr (kN == 192) {
    TILESTEP_FROM_REGISTERS(192, 96, 96, 97, 98, 99, 100, 101);
  } else if constexpr (kN == 256) {
    TILESTEP_FROM_REGISTERS(256, 128, 128, 129, 130, 131, 132, 133);
  }
}
// clang-format on
#undef TILESTEP_FROM_REGISTERS
#undef TILESTEP_FROM_SHARED
#undef TILESTEP_WGMMA_OF_REGISTERS
#undef TILESTEP_WGMMA_SHARED
#undef TILESTEP_WGMMA_FORMATS
#undef TILESTEP_WGMMA_REGISTERS
#undef TILESTEP_WGMMA
#undef TILESTEP_SUMS_128
#undef TILESTEP_LIST_128
#undef TILESTEP_SUMS_96
#undef TILESTEP_LIST_96
#undef TILESTEP_SUMS_88
#undef TILESTEP_LIST_88
#undef TILESTEP_SUMS_80
#undef TILESTEP_LIST_80
#undef TILESTEP_SUMS_64
#undef TILESTEP_LIST_64
#undef TILESTEP_SUMS_48
#undef TILESTEP_LIST_48
#undef TILESTEP_SUMS_32
#undef TILESTEP_LIST_32
#undef TILESTEP_SUMS_16
#undef TILESTEP_LIST_16
#undef TILESTEP_SUMS_8
#undef TILESTEP_LIST_8
#undef TILESTEP_SUMS_4
#undef TILESTEP_LIST_4

__device__ __forceinline__ void wgmma_begin() {
  TILESTEP_PTX("wgmma.fence.sync.aligned;\n" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  TILESTEP_PTX("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  TILESTEP_PTX("wgmma.wait_group.sync.aligned %0;\n" ::"n"(kPending) : "memory");
}
template <class T, int kCount>
__device__ __forceinline__ void settle(T (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if constexpr (std::is_same_v<T, float>) {
      asm volatile("" : "+f"(d[i])::"memory");
    } else {
      asm volatile("" : "+r"(d[i])::"memory");
    }
  }
}

// ---- shared memory by ordinary accesses ---------------------------------------------------------

/// An array in shared memory of which the emulation watches each access.
template <class T>
using Staged = T*;

template <class T>
__device__ __forceinline__ T* staged(unsigned address, [[maybe_unused]] std::size_t count,
                                     [[maybe_unused]] const char* name = nullptr) {
  return static_cast<T*>(__cvta_shared_to_generic(address));
}
/// The same of the memory that another block of the cluster has at that address.
template <class T>
__device__ __forceinline__ T* remote([[maybe_unused]] unsigned address,
                                     [[maybe_unused]] unsigned block,
                                     [[maybe_unused]] std::size_t count,
                                     [[maybe_unused]] const char* name = nullptr) {
  const std::uint64_t mine = reinterpret_cast<std::uint64_t>(__cvta_shared_to_generic(address));
  std::uint64_t there = 0;
  TILESTEP_PTX("mapa.u64 %0, %1, %2;\n" : "=l"(there) : "l"(mine), "r"(block));
  return reinterpret_cast<T*>(there);
}
/// How the emulation's reports call these bytes: "stage 2".
__device__ __forceinline__ void name_shared(unsigned, int, const char*, int) {}

__device__ __forceinline__ void ldmatrix_x4(unsigned (&r)[4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&r)[4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
}
__device__ __forceinline__ void stmatrix_x4([[maybe_unused]] unsigned row,
                                            [[maybe_unused]] const unsigned (&r)[4]) {
  TILESTEP_PTX("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(row),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}
__device__ __forceinline__ void stmatrix_x4_trans([[maybe_unused]] unsigned row,
                                                  [[maybe_unused]] const unsigned (&r)[4]) {
  TILESTEP_PTX(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(row),
      "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
      : "memory");
}

}  // namespace tilestep::simt::hopper

#undef TILESTEP_PTX
