// Tensor-core GEMMs with different accumulators: C = A·B^T, A [m × k] and B [n × k] row-major, C
// [m × n] FP32. A block of 256 threads computes 128 × 128 of C.
//
//   wgmma_fp8<false>  E4M3 by wgmma.m64n128k32: the sum stays in the tensor core's accumulator
//                     over all of k
//   wgmma_fp8<true>   the same, but every 128 along k the accumulator is added to FP32 registers by
//                     ordinary additions and reset: DeepGEMM's promotion
//   mma_16bit         FP16 with FP16 accumulators, FP16 and BF16 with FP32 ones, by mma.m16n8k16
//
// Both copy 128 rows × 128 bytes of A and of B at a time to shared memory with cp.async, several
// stages ahead. Each of a row's eight 16-byte chunks is stored at chunk ^ (row % 8): that is the
// "128-byte swizzle" of wgmma's descriptors, and it keeps ldmatrix free of bank conflicts.
//
// For nvcc only. wgmma exists only on compute capability 9.0 (sm_90a): elsewhere its kernels compile
// to a trap and are never launched. The instructions are described in simt/mma.hpp, simt/hopper.hpp.

#include <cstdint>

#include "kernels/base/simt/hopper.hpp"
#include "kernels/base/simt/mma.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/numbers/accumulator_precision/kernels.hpp"

namespace tilestep::accumulator_precision::cuda_backend {
namespace {

constexpr int kTile = kGemmTile;  // of C, both ways
constexpr int kThreads = 256;     // two warpgroups
constexpr int kRowBytes = 128;    // of a tile of A or B
constexpr int kChunkBytes = 16;
constexpr int kChunks = kRowBytes / kChunkBytes;
constexpr int kMatrixBytes = kTile * kRowBytes;
constexpr int kStageBytes = 2 * kMatrixBytes;
/// The swizzle's pattern repeats every 8 rows: a tile must be aligned to that.
constexpr int kAlignment = 8 * kRowBytes;

constexpr std::size_t shared_bytes(int stages) {
  return static_cast<std::size_t>(stages) * kStageBytes + kAlignment;
}

/// Byte offset of a chunk in a tile.
__device__ __forceinline__ int chunk_at(int row, int chunk) {
  return simt::swizzled_chunk(row, chunk) * kChunkBytes;
}

/// Dynamic shared memory, from the first address where a tile may start.
__device__ __forceinline__ std::uint8_t* aligned_shared(std::size_t bytes) {
  std::uint8_t* raw = simt::dynamic_shared<std::uint8_t>(bytes);
  const unsigned past = simt::shared_address(raw) % kAlignment;
  return raw + (past == 0 ? 0 : kAlignment - past);
}

/// This thread's source, in rows `pitch` bytes apart, and its place in a stage.
struct Source {
  static constexpr int kRowsAtOnce = kThreads / kChunks;
  static_assert(kRowsAtOnce % 8 == 0, "all rows of a thread have one swizzle");

  const std::uint8_t* a;
  const std::uint8_t* b;
  std::size_t pitch;
  int to;

  /// Starts the copies of both tiles number `tile` along k. All threads call it.
  __device__ __forceinline__ void start(std::uint8_t* stage, int tile) const {
    const std::size_t along = static_cast<std::size_t>(tile) * kRowBytes;
#pragma unroll
    for (int i = 0; i < kTile / kRowsAtOnce; ++i) {
      const std::size_t from = along + i * kRowsAtOnce * pitch;
      std::uint8_t* place = stage + to + i * kRowsAtOnce * kRowBytes;
      simt::cp_async16(place, a + from);
      simt::cp_async16(place + kMatrixBytes, b + from);
    }
  }
};

template <class T>
__device__ __forceinline__ Source source_of(const T* a, const T* b, const GemmShape& shape) {
  const std::size_t pitch = static_cast<std::size_t>(shape.k) * sizeof(T);
  const int row = static_cast<int>(threadIdx.x) / kChunks;
  const int chunk = static_cast<int>(threadIdx.x) % kChunks;
  const std::size_t first = row * pitch + chunk * kChunkBytes;
  return {reinterpret_cast<const std::uint8_t*>(a) + blockIdx.y * kTile * pitch + first,
          reinterpret_cast<const std::uint8_t*>(b) + blockIdx.x * kTile * pitch + first, pitch,
          chunk_at(row, chunk)};
}

/// Two neighbouring elements of a row of C.
__device__ __forceinline__ void store_pair(float* c, const GemmShape& shape, int row, int column,
                                           float x, float y) {
  const std::size_t at = (static_cast<std::size_t>(blockIdx.y) * kTile + row) * shape.n +
                         static_cast<std::size_t>(blockIdx.x) * kTile + column;
  *reinterpret_cast<float2*>(c + at) = make_float2(x, y);
}

// ---- FP8 on Hopper ------------------------------------------------------------------------------

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

using namespace simt::hopper;

template <bool kPromoted, int kStages>
__device__ __forceinline__ void wgmma_fp8_tile(const std::uint8_t* a, const std::uint8_t* b,
                                               float* c, const GemmShape& shape) {
  std::uint8_t* stages = aligned_shared(shared_bytes(kStages));
  const Source source = source_of(a, b, shape);
  const int tiles = shape.k / kRowBytes;
  const int group = static_cast<int>(threadIdx.x) / 128;  // 64 rows of the tile each
  // A stage can be refilled once no warpgroup's products read it. At a barrier all have waited for
  // the products of the previous tile (promoted), or of the one before that.
  constexpr int kAhead = kPromoted ? kStages - 1 : kStages - 2;
#pragma unroll
  for (int tile = 0; tile < kAhead; ++tile) {
    if (tile < tiles) source.start(stages + tile * kStageBytes, tile);
    simt::cp_async_commit();  // an empty group too, so that groups can be counted
  }
  float sums[64];
  float totals[kPromoted ? 64 : 1] = {};
#pragma unroll
  for (int i = 0; i < 64; ++i) sums[i] = 0.0f;
  for (int tile = 0; tile < tiles; ++tile) {
    simt::cp_async_wait<kAhead - 1>();
    publish_to_async_proxy();
    // All threads' parts of this tile must have arrived before it is multiplied, and all products
    // that read the stage filled next must be done.
    __syncthreads();
    const int ahead = tile + kAhead;
    if (ahead < tiles) source.start(stages + ahead % kStages * kStageBytes, ahead);
    simt::cp_async_commit();

    const std::uint8_t* stage = stages + tile % kStages * kStageBytes;
    const std::uint64_t a_tile = descriptor(simt::shared_address(stage + group * 64 * kRowBytes));
    const std::uint64_t b_tile = descriptor(simt::shared_address(stage + kMatrixBytes));
    settle(sums);
    wgmma_begin();
#pragma unroll
    for (int step = 0; step < kRowBytes / 32; ++step) {
      // 32 bytes further along k: the hardware applies the swizzle to the resulting address.
      const auto further = static_cast<std::uint64_t>(step * 32 / 16);
      wgmma<Format::e4m3, 128>(sums, a_tile + further, b_tile + further,
                               step == 0 && (kPromoted || tile == 0));
    }
    wgmma_commit();
    if constexpr (kPromoted) {
      wgmma_wait<0>();
      settle(sums);
#pragma unroll
      for (int i = 0; i < 64; ++i) totals[i] += sums[i];
    } else {
      wgmma_wait<1>();
    }
  }
  wgmma_wait<0>();
  settle(sums);

  // Warp w of a warpgroup has rows 16w … 16w+15; lanes as in mma.m16n8.
  const int row = static_cast<int>(threadIdx.x) / 32 * 16 + static_cast<int>(threadIdx.x) % 32 / 4;
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int j = 0; j < 16; ++j) {
    const auto at = [&](int i) {
      if constexpr (kPromoted) {
        return totals[4 * j + i];
      } else {
        return sums[4 * j + i];
      }
    };
    store_pair(c, shape, row, column + 8 * j, at(0), at(1));
    store_pair(c, shape, row + 8, column + 8 * j, at(2), at(3));
  }
}

#endif

/// Without promotion a block needs half the registers, so two blocks fit.
template <bool kPromoted>
constexpr int kWgmmaStages = kPromoted ? 4 : 3;

template <bool kPromoted>
__global__ void __launch_bounds__(kThreads, kPromoted ? 1 : 2)
    wgmma_fp8(const std::uint8_t* a, const std::uint8_t* b, float* c, GemmShape shape) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  wgmma_fp8_tile<kPromoted, kWgmmaStages<kPromoted>>(a, b, c, shape);
#else
  (void)a, (void)b, (void)c, (void)shape;
  asm volatile("trap;");
#endif
}

// ---- 16-bit formats -----------------------------------------------------------------------------

/// FP16 in, FP16 accumulators: two registers of two numbers.
struct Fp16Acc16 {
  unsigned d[2] = {0, 0};

  __device__ __forceinline__ void multiply(const unsigned (&a)[4], unsigned b0, unsigned b1) {
    simt::mma_m16n8k16_fp16_acc16(d, a, b0, b1);
  }
  /// Element i, numbered as in an FP32 fragment.
  __device__ __forceinline__ float at(int i) const {
    const unsigned bits = (d[i / 2] >> (i % 2 * 16)) & 0xFFFFu;
    return static_cast<float>(numeric::decode(numeric::kFp16, bits));
  }
};

struct Fp16Acc32 {
  float d[4] = {0, 0, 0, 0};

  __device__ __forceinline__ void multiply(const unsigned (&a)[4], unsigned b0, unsigned b1) {
    simt::mma_m16n8k16_fp16(d, a, b0, b1);
  }
  __device__ __forceinline__ float at(int i) const { return d[i]; }
};

struct Bf16Acc32 {
  float d[4] = {0, 0, 0, 0};

  __device__ __forceinline__ void multiply(const unsigned (&a)[4], unsigned b0, unsigned b1) {
    simt::mma_m16n8k16_bf16(d, a, b0, b1);
  }
  __device__ __forceinline__ float at(int i) const { return d[i]; }
};

constexpr int kMmaStages = 3;
constexpr int kWarpRows = 64;  // of C per warp: 2 warps down, 4 across
constexpr int kWarpColumns = 32;

template <class Accumulator>
__global__ void __launch_bounds__(kThreads, 2)
    mma_16bit(const std::uint16_t* a, const std::uint16_t* b, float* c, GemmShape shape) {
  std::uint8_t* stages = aligned_shared(shared_bytes(kMmaStages));
  const Source source = source_of(a, b, shape);
  const int tiles = shape.k * static_cast<int>(sizeof(std::uint16_t)) / kRowBytes;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_row = warp / 4 * kWarpRows;
  const int warp_column = warp % 4 * kWarpColumns;
  constexpr int kAhead = kMmaStages - 1;
#pragma unroll
  for (int tile = 0; tile < kAhead; ++tile) {
    if (tile < tiles) source.start(stages + tile * kStageBytes, tile);
    simt::cp_async_commit();
  }
  Accumulator sums[4][4];
  for (int tile = 0; tile < tiles; ++tile) {
    simt::cp_async_wait<kAhead - 1>();
    // All threads' parts of this tile must have arrived, and all must have read the previous tile,
    // whose stage is filled next.
    __syncthreads();
    const int ahead = tile + kAhead;
    if (ahead < tiles) source.start(stages + ahead % kMmaStages * kStageBytes, ahead);
    simt::cp_async_commit();
    const std::uint8_t* stage = stages + tile % kMmaStages * kStageBytes;
    const auto load = [&](unsigned(&r)[4], const std::uint8_t* matrix, int row, int chunk) {
      simt::ldmatrix_x4(r, reinterpret_cast<const std::uint16_t*>(matrix + chunk_at(row, chunk)));
    };
#pragma unroll
    for (int step = 0; step < kChunks / 2; ++step) {
      unsigned rows[4][4];
      unsigned columns[2][4];  // two fragments of 8 columns each
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        load(rows[i], stage, warp_row + i * 16 + lane % 16, 2 * step + lane / 16);
      }
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        load(columns[j], stage + kMatrixBytes, warp_column + j * 16 + lane / 16 * 8 + lane % 8,
             2 * step + lane / 8 % 2);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          sums[i][j].multiply(rows[i], columns[j / 2][j % 2 * 2], columns[j / 2][j % 2 * 2 + 1]);
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int row = warp_row + i * 16 + lane / 4;
      const int column = warp_column + j * 8 + lane % 4 * 2;
      store_pair(c, shape, row, column, sums[i][j].at(0), sums[i][j].at(1));
      store_pair(c, shape, row + 8, column, sums[i][j].at(2), sums[i][j].at(3));
    }
  }
}

}  // namespace
}  // namespace tilestep::accumulator_precision::cuda_backend
