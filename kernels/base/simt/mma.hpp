#pragma once

/// \file
/// Tensor-core operations of the dialect: one PTX instruction each on a GPU of compute capability 8.0 or
/// newer, emulated with the documented fragment layout otherwise:
///
///     simt::mma_m16n8k16_bf16(d, a, b)       d += a·b, BF16 in, FP32 accumulators, by a whole warp
///     simt::mma_m16n8k16_fp16(d, a, b)       the same, FP16 in
///     simt::mma_m16n8k32_s8(d, a, b)         the same of whole numbers of a byte, int accumulators: four in a register,
///                                            4·(lane % 4) in place of `pair`, and k + 16 in place of k + 8
///     simt::pack_bf16(low, high)             two floats, rounded to nearest even, in a register
///     simt::pack_fp16(low, high)             the same
///     simt::unpack_bf16(pair, half)          the number in the low (0) or high (1) half of a register
///     simt::unpack_fp16(pair, half)          the same
///     simt::exp2_approx(x)                   2^x to 2 ulp; subnormal results are 0
///     simt::ldmatrix_x4(r, row)              four 8×8 matrices of 16-bit elements from shared memory
///     simt::ldmatrix_x4_trans(r, row)        the same, with each matrix transposed
///     simt::cp_async16(to, from)             16 bytes from global to shared memory, no register
///     simt::cp_async16(to, from, inside)     the same; zeros instead where `inside` is false
///     simt::cp_async4(to, from, inside)      4 bytes; zeros instead where `inside` is false
///     simt::cp_async_commit(), simt::cp_async_wait<N>()   closes a group of the thread's copies; waits
///                                            until all but its newest N groups have landed
///
/// Fragments (PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type"), with group =
/// lane / 4 and pair = 2·(lane % 4); each register holds two BF16 or FP16, the lower index in the low half:
///
///     a[0] = A[group][pair…]   a[1] = A[group+8][pair…]   a[2] = A[group][pair+8…]
///     a[3] = A[group+8][pair+8…]                           A is 16 × 16
///     b[0] = B[pair…][group]   b[1] = B[pair+8…][group]    B is 16 × 8
///     d[0], d[1] = D[group][pair, pair+1]   d[2], d[3] = D[group+8][pair, pair+1]   D is 16 × 8
///
/// ldmatrix: lanes 8i … 8i+7 give the addresses of the eight rows of matrix i (16 bytes each,
/// aligned to 16); r[i] is row `group`, elements `pair` and `pair`+1 of matrix i, or of its
/// transpose. Rows of A then load as A's fragment; rows of B (k down, n across) load with `_trans`.

#include "kernels/base/simt/simt.hpp"

namespace tilestep::simt {

/// The 128-byte swizzle: the position in a tile, in chunks, of chunk 0 … 7 (16 bytes) of a 128-byte
/// row. The eight rows of one chunk, which ldmatrix and wgmma read together, then cover all 32 banks
/// of shared memory.
__host__ __device__ constexpr int swizzled_chunk(int row, int chunk) {
  return row * 8 + (chunk ^ row % 8);
}

}  // namespace tilestep::simt

#if defined(__CUDACC__)
#include "kernels/base/simt/cuda/mma_cuda.hpp"
#else
#include "kernels/base/simt/emulator/mma_emulated.hpp"
#endif
