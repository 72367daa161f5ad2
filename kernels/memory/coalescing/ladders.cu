// Coalescing: the ladders, each doing one job better and better.
//
// Copies of n floats:
//
//   copy_strided       each thread copies 32 consecutive floats: neighbours are 128 bytes apart
//   copy_coalesced     neighbouring threads copy neighbouring floats
//   copy_vectorized    the same with 16 bytes per load and several loads in flight
//
// Transposes, in [rows × columns] to out [columns × rows], FP32, row-major:
//
//   transpose_naive    reads along rows, writes down columns
//   transpose_tile     through a tile in shared memory, so that both ends run along rows; its rows
//                      are `kPitch` floats apart: the tile's edge, or one more (padded)

#include <cstdint>

#include "kernels/base/simt/simt.hpp"
#include "kernels/memory/coalescing/kernels.hpp"

namespace tilestep::coalescing::SIMT_BACKEND {

using Index = std::int64_t;

// ---- the ladder of copies -----------------------------------------------------------------------

/// Each thread has its own run of kStridedCopyFloats floats.
__global__ void copy_strided(simt::Global<const float> in, simt::Global<float> out, Index count) {
  const Index thread = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int k = 0; k < kStridedCopyFloats; ++k) {
    const Index i = thread * kStridedCopyFloats + k;
    if (i < count) out[i] = in[i];
  }
}

/// Thread i has float i.
__global__ void copy_coalesced(simt::Global<const float> in, simt::Global<float> out, Index count) {
  const Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) out[i] = in[i];
}

template <bool kStreaming>
__device__ float4 load_pack(const float4& at) {
  if constexpr (kStreaming) {
    return __ldcs(&at);
  } else {
    return at;
  }
}
template <bool kStreaming>
__device__ void store_pack(float4& at, const float4& value) {
  if constexpr (kStreaming) {
    __stcs(&at, value);
  } else {
    at = value;
  }
}

/// 16 bytes per load, `kPacks` loads in flight per thread before the first store. A block copies
/// chunks of kPacks packs per thread, several in turn if there are more chunks than blocks.
template <int kPacks, bool kStreaming>
__global__ void copy_vectorized(simt::Global<const float> in, simt::Global<float> out,
                                Index count) {
  const auto from = simt::as<const float4>(in);
  const auto to = simt::as<float4>(out);
  const Index packs = count / 4;
  const Index threads = blockDim.x;
  const Index chunk = threads * kPacks;
  for (Index begin = blockIdx.x * chunk; begin < packs; begin += gridDim.x * chunk) {
    const Index first = begin + threadIdx.x;
    float4 held[kPacks];
    if (begin + chunk <= packs) {
      for (int k = 0; k < kPacks; ++k) held[k] = load_pack<kStreaming>(from[first + k * threads]);
      for (int k = 0; k < kPacks; ++k) store_pack<kStreaming>(to[first + k * threads], held[k]);
    } else {
      for (Index i = first; i < packs; i += threads) to[i] = from[i];
    }
  }
  // Up to 3 floats do not fill a pack.
  const Index rest = packs * 4 + threadIdx.x;
  if (blockIdx.x == 0 && rest < count) out[rest] = in[rest];
}

// ---- the ladder of transposes -------------------------------------------------------------------

/// The tile that the calling block works on, by its place in the grid.
struct TilePlace {
  Index row, column;  ///< of the tile's first element in the input
};
__device__ inline TilePlace tile_place(int tile, bool down_columns) {
  const Index along = blockIdx.x;
  const Index across = blockIdx.y;
  return {(down_columns ? along : across) * tile, (down_columns ? across : along) * tile};
}

/// Lanes read neighbours in a row and write to neighbouring rows: `rows` floats apart.
template <int kTile, int kThreadRows>
__global__ void transpose_naive(simt::Global<const float> in, simt::Global<float> out, int rows,
                                int columns, bool down_columns) {
  const TilePlace place = tile_place(kTile, down_columns);
  const Index column = place.column + threadIdx.x;
  for (int k = 0; k < kTile; k += kThreadRows) {
    const Index row = place.row + threadIdx.y + k;
    if (row < rows && column < columns) out[column * rows + row] = in[row * columns + column];
  }
}

/// A tile is read along the input's rows and written along the output's rows; it is transposed in
/// shared memory, where element (row, column) is at row × kPitch + column.
template <int kTile, int kPitch, int kThreadRows, class Tape>
__global__ void transpose_tile(simt::Global<const float> in, simt::Global<float> out, int rows,
                               int columns, bool down_columns, Tape tape) {
  const auto tile = tape.traced(simt::dynamic_shared<float>(kTile * kPitch, 0, "tile"), kTileSite);
  const TilePlace place = tile_place(kTile, down_columns);
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);

  float held[kTile / kThreadRows];  // all loads are in flight before the first is needed
  for (int k = 0; k < kTile / kThreadRows; ++k) {
    const Index row = place.row + y + k * kThreadRows;
    const Index column = place.column + x;
    held[k] = row < rows && column < columns ? in[row * columns + column] : 0.0f;
  }
  for (int k = 0; k < kTile / kThreadRows; ++k) tile[(y + k * kThreadRows) * kPitch + x] = held[k];
  __syncthreads();  // the whole tile must be written before any thread reads a column of it

  for (int k = 0; k < kTile / kThreadRows; ++k) {
    const int tile_column = y + k * kThreadRows;
    const Index out_row = place.column + tile_column;
    const Index out_column = place.row + x;
    // Lanes read down a column of the tile: kPitch floats apart.
    const float value = tile[x * kPitch + tile_column];
    if (out_row < columns && out_column < rows) out[out_row * rows + out_column] = value;
  }
}

// ---- data and its check -------------------------------------------------------------------------

/// 32 random bits for position i.
__device__ inline unsigned random_word(Index i, unsigned seed) {
  unsigned x = static_cast<unsigned>(i) * 0x9E3779B1u + static_cast<unsigned>(i >> 32) + seed;
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  return x ^ (x >> 16);
}

__global__ void fill_random(simt::Global<unsigned> words, Index count, unsigned seed) {
  const Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) words[i] = random_word(i, seed);
}

/// Word (column, row) of `out` must be fill_random's word (row, column).
__global__ void count_wrong(simt::Global<const unsigned> out, Index rows, Index columns,
                            unsigned seed, simt::Global<unsigned long long> wrong) {
  const Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= rows * columns) return;
  const Index row = i % rows;
  const Index column = i / rows;
  if (out[i] != random_word(row * columns + column, seed)) atomicAdd(&wrong[0], 1ULL);
}

}  // namespace tilestep::coalescing::SIMT_BACKEND
