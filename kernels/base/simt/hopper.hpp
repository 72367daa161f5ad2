#pragma once

/// \file
/// Hopper's own operations, with two implementations: on a GPU of compute capability 9.0 (sm_90a) each is
/// one or two PTX instructions (hopper_cuda.hpp; elsewhere it traps), and under emulation it follows the PTX
/// ISA (hopper_emulated.hpp). The host refuses other GPUs (launch.hpp, `refuse_device`) and makes the
/// tensor maps (tensor_map.hpp).
///
/// Addresses are in the shared-memory window, as the instructions take them: `unsigned`, from
/// `simt::shared_address(dynamic_shared<T>(…))`. Under emulation they count bytes of the block's dynamic
/// shared memory from kSharedBase, which is only 16-byte aligned: a tile that needs more must align
/// itself.
///
///     mbarriers (PTX ISA, "mbarrier"): 8 bytes, aligned to 8. A phase ends when all expected arrivals
///     and all expected bytes are in; the phase before the first counts as ended.
///       barrier_init(barrier, arrivals)       by one thread, before any other use
///       publish_barriers()                    by that thread: then visible to TMA and the cluster, and to
///                                             the block's other threads after the next __syncthreads()
///       arrive(barrier)                       one arrival
///       arrive_expecting(barrier, bytes)      one arrival, and expect this many more bytes of copies
///       expect_bytes(barrier, bytes)          only the bytes
///       try_wait(barrier, parity)             whether the phase of that parity (0 or 1) has ended
///       wait_for(barrier, parity)             until it has
///       wait_at_most(barrier, parity, cycles) the same; false after this many multiprocessor cycles
///       watch(barrier, parity, cycles)        the same for a thread that only observes, and uses no data of
///                                             the phase; false after this many cycles. Emulated:
///                                             the next phase that the thread has not seen; false when
///                                             only observing threads could still make progress
///       cycles()                              a clock, long long: the multiprocessor's; emulated: a Lamport
///                                             clock, the longest chain of these operations so far (copies,
///                                             products and stores take 1). Order, not time
///     TMA (PTX ISA, "cp.async.bulk.tensor"): boxes of a tensor map, by one thread
///       fetch(map, to, barrier, column, row)  global to shared memory, `to` aligned to 128; its bytes,
///                                             including those outside the array, count at the barrier
///       store(map, from, column, row)         shared to global memory; parts outside are skipped
///       reduce_add(map, from, column, row)    the same, but adds to memory: FP32 or BF16
///       fetch(map, to, barrier, column, row, matrix), store(map, from, column, row, matrix)   if the map has
///                                             several consecutive matrices: for one of them, so that its
///                                             rows end where the next matrix begins
///       prefetch(map)                         prefetches the map itself, ahead of its first use
///       store_commit(), store_wait<N>()       closes a group of the thread's stores; waits until all but
///                                             the newest N groups have read their shared memory
///     fences
///       publish_to_async_proxy()              makes this thread's ordinary stores to shared memory visible to
///                                             TMA and wgmma, once a barrier orders them
///     named barriers (PTX ISA, "bar"): id 1 … 15, `threads` a multiple of 32, including arriving threads
///       named_barrier_sync(id, threads), named_barrier_arrive(id, threads)
///     wgmma (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions"), by the 128 threads of a
///     warpgroup: d = A·Bᵀ (+ d unless `fresh`), A 64 × k and B n × k in shared memory, k fastest. k is 32
///     bytes: 16 numbers of BF16 or FP16, 32 of E4M3 or S8 (which accumulates in int). Warp w has rows 16w … 16w+15
///     of d, its lanes as in mma.m16n8: d[4j], d[4j+1] = D[16w + lane / 4][8j + lane % 4 * 2 …], d[4j+2],
///     d[4j+3] eight rows below
///       wgmma<Format::bf16, n>(d, a, b, fresh)   n = 8, 16, 32, 64, 96, 128, 160, 176, 192 or 256; a thread
///                                                has n / 2 accumulators, the first of d. Asynchronous
///       wgmma<format, n, Major::n>(…)            the same, with n fastest in B: BF16 and FP16
///       wgmma<format, n>(d, registers, b, fresh) the same with A in registers, unsigned[4], as mma's A
///       wgmma_begin()                            before the first, and after every other access to d
///       wgmma_commit(), wgmma_wait<N>()          closes a group; waits for all but the newest N groups
///       settle(d)                                keeps the compiler from reading d before this point
///     launches that overlap (PTX ISA, "griddepcontrol"; Launch::early)
///       others_may_begin()                    the next launch's blocks may begin where there is room
///       await_launch_before()                 until the launch before has ended and its stores are visible
///     registers: keep_registers<N>(), take_registers<N>()   "setmaxnreg", by all warps of a warpgroup
///     pack_bf16(low, high), pack_fp16(low, high)   two numbers, rounded to nearest even, in one register
///     pack_e4m3(a, b, c, d), pack_s8(a, b, c, d)   four numbers, a in the lowest byte; saturates to the
///                                             format's largest number
///     exp2_approximate(x)  2^x in one instruction (PTX ISA, "ex2.approx.ftz"): error at most 2 ulp; results and
///                          arguments below 2^-126 are 0
///     moving fragments (PTX ISA, "ldmatrix", "stmatrix"), by a whole warp as simt::ldmatrix_x4
///       ldmatrix_x4(r, row), ldmatrix_x4_trans(r, row), stmatrix_x4(row, r), stmatrix_x4_trans(row, r)
///                                             `row` an address, 16-aligned
///     ordinary accesses: staged<T>(address, count, name) is a T*; the emulation watches it
///     clusters (PTX ISA, "Cluster of Cooperative Thread Arrays"): Launch::cluster blocks, neighbours along x,
///     that access each other's dynamic shared memory, with the same layout in every block. After
///     barrier_init: publish_barriers(), then cluster_barrier(); no block may end while others access it
///       rank_in_cluster()                     this block's index in its cluster, from 0
///       cluster_barrier()                     waits for all threads of all blocks that have not ended
///       arrive_at(barrier, block)             one arrival at the barrier with the same address in `block`
///       store_at(address, barrier, block, x)  8 bytes to that address in `block`, asynchronous; they count at the
///                                             barrier there, as those of a copy (PTX ISA, "st.async")
///       fetch<2>(map, to, barrier, column, row)   one copy to both blocks of a cluster of two (also 4, 8),
///                                             to the same address and the same barrier in each
///       remote<T>(address, block, count, name)   as staged<T>, in the memory of that block
///
/// The emulation completes asynchronous work as EmulationOptions::completion says, by default as late as
/// the program allows, and reports accesses that a missing wait, fence or release makes unsafe, whether or
/// not the numbers came out right (async_engine.hpp).

#include <cstdint>
#include <type_traits>

#include "kernels/base/simt/mma.hpp"

namespace tilestep::simt::hopper {

/// The operand format of wgmma.
enum class Format { bf16, fp16, e4m3, s8 };
/// The fastest dimension of B in shared memory.
enum class Major { k, n };

/// Bytes along k of one wgmma.
inline constexpr int kWgmmaBytes = 32;
/// Rows of d.
inline constexpr int kWgmmaRows = 64;
/// The pattern of the 128-byte swizzle repeats after 8 rows of 128 bytes: a tile must start at a
/// multiple of that.
inline constexpr int kSwizzleBytes = 8 * 128;

/// Whether such a wgmma exists: accumulators of type T, float or for s8 int, kSums per thread.
template <Format kFormat, int kN, Major kMajorB, class T, int kSums>
constexpr bool allowed_product() {
  static_assert(kN == 8 || kN == 16 || kN == 32 || kN == 64 || kN == 96 || kN == 128 || kN == 160 ||
                kN == 176 || kN == 192 || kN == 256);
  static_assert(kSums >= kN / 2);
  static_assert(std::is_same_v<T, std::conditional_t<kFormat == Format::s8, int, float>>);
  static_assert(kMajorB == Major::k || kFormat == Format::bf16 || kFormat == Format::fp16,
                "numbers of a byte must have k fastest");
  return true;
}

/// The address of a byte of a tile under a swizzle of 0 (none), 32, 64 or 128 bytes, from its unswizzled
/// address: the 16-byte chunk (address bits 4 …) is XORed with bits 7 …, which moves rows of the
/// swizzle's length to different banks. CUDA driver API, "CUtensorMapSwizzle".
__host__ __device__ constexpr unsigned swizzled_address(unsigned address, int swizzle) {
  const unsigned chunks = static_cast<unsigned>(swizzle) / 16;  // that change places: 0, 2, 4, 8
  return chunks == 0 ? address : address ^ ((address >> 7 & (chunks - 1)) << 4);
}

/// A shared-memory descriptor (PTX ISA, "Matrix Descriptor Format"): start, leading and stride byte
/// offset in units of 16, and the swizzle.
__host__ __device__ constexpr std::uint64_t make_descriptor(unsigned tile, int leading, int stride,
                                                            int swizzle) {
  const auto field = [](unsigned bytes) { return std::uint64_t{bytes / 16 & 0x3FFF}; };
  const std::uint64_t mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
  return field(tile) | field(static_cast<unsigned>(leading)) << 16 |
         field(static_cast<unsigned>(stride)) << 32 | mode << 62;
}
/// Describes the tile at a shared address, k fastest, whose rows have the length of the swizzle (32, 64 or
/// 128 bytes) and follow each other: eight rows are the stride. `tile` is aligned to eight rows; a step
/// along k inside them adds 32 / 16 to the descriptor.
template <int kSwizzle = 128>
__host__ __device__ constexpr std::uint64_t descriptor(unsigned tile) {
  static_assert(kSwizzle == 32 || kSwizzle == 64 || kSwizzle == 128);
  return make_descriptor(tile, 16, 8 * kSwizzle, kSwizzle);
}
/// Describes a tile without swizzle, k fastest: blocks of 8 rows × 16 bytes, each 128 bytes in one piece;
/// the next block along k is `leading` bytes further, the next eight rows `stride`.
__host__ __device__ constexpr std::uint64_t plain_descriptor(unsigned tile, int leading,
                                                             int stride = 128) {
  return make_descriptor(tile, leading, stride, 0);
}

/// Describes a tile of B with n fastest, whose rows along n have the length of the swizzle and follow each
/// other along k: eight of them are the stride; the next columns of n are `leading` bytes further. A step of 16
/// along k adds 16 * kSwizzle / 16 to the descriptor.
template <int kSwizzle = 128>
__host__ __device__ constexpr std::uint64_t turned_descriptor(unsigned tile, int leading) {
  static_assert(kSwizzle == 32 || kSwizzle == 64 || kSwizzle == 128);
  return make_descriptor(tile, leading, 8 * kSwizzle, kSwizzle);
}

}  // namespace tilestep::simt::hopper

#if defined(__CUDACC__)
#include "kernels/base/simt/cuda/hopper_cuda.hpp"
#else
#include "kernels/base/simt/emulator/hopper_emulated.hpp"
#endif
