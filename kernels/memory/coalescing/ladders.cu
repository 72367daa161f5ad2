// Coalescing: the ladders of the same job done well.
//
// Copies of n floats:
//
//   copy_strided       each thread copies 32 floats in a row: neighbours are 128 bytes apart
//   copy_coalesced     neighbouring threads copy neighbouring floats
//   copy_vectorized    the same with 16 bytes a load and several loads under way at once
//
// Transposes, in [rows × columns] to out [columns × rows], FP32, row-major:
//
//   transpose_naive    reads along rows, writes down columns
//   transpose_tile     through a tile in shared memory, so that both ends run along rows; its rows
//                      are `kPitch` floats apart: the tile's edge, or one more (padded)

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "kernels/base/simt/simt.hpp"
#include "kernels/memory/coalescing/launch.hpp"

namespace tilestep::coalescing::SIMT_BACKEND {

// ---- the ladder of copies -----------------------------------------------------------------------

/// Each thread has its own run of kStridedCopyFloats floats.
template <class In, class Out>
__global__ void copy_strided(In in, Out out, Index count) {
  const Index thread = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int k = 0; k < kStridedCopyFloats; ++k) {
    const Index i = thread * kStridedCopyFloats + k;
    if (i < count) out[i] = in[i];
  }
}

/// Thread i has float i.
template <class In, class Out>
__global__ void copy_coalesced(In in, Out out, Index count) {
  const Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) out[i] = in[i];
}

template <bool kStreaming, class Float4>
__device__ float4 load_pack(Float4& at) {
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

/// 16 bytes a load, `kPacks` loads under way in each thread before the first store. A block takes
/// chunks of kPacks packs a thread, one after the other if there are more chunks than blocks.
template <int kPacks, bool kStreaming, class In, class Out>
__global__ void copy_vectorized(In in, Out out, Index count) {
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
  // Up to 3 floats are no whole pack.
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
template <int kTile, int kThreadRows, class In, class Out>
__global__ void transpose_naive(In in, Out out, int rows, int columns, bool down_columns) {
  const TilePlace place = tile_place(kTile, down_columns);
  const Index column = place.column + threadIdx.x;
  for (int k = 0; k < kTile; k += kThreadRows) {
    const Index row = place.row + threadIdx.y + k;
    if (row < rows && column < columns) out[column * rows + row] = in[row * columns + column];
  }
}

/// The timed kernel's view of shared memory: itself.
struct PlainShared {
  template <class Tile>
  __device__ Tile operator()(Tile tile) const {
    return tile;
  }
};
/// The explained kernel's: every access is written down.
struct TracedShared {
  simt::TraceBuffer buffer;
  __device__ simt::Traced<float> operator()(simt::Shared<float> tile) const {
    return simt::Traced<float>(tile, buffer, 0);
  }
};

/// A tile comes in along the input's rows and leaves along the output's rows; the turn happens in
/// shared memory, whose element (row, column) is at row × kPitch + column.
template <int kTile, int kPitch, int kThreadRows, class SharedView, class In, class Out>
__global__ void transpose_tile(In in, Out out, int rows, int columns, bool down_columns,
                               SharedView view) {
  const auto tile = view(simt::dynamic_shared<float>(kTile * kPitch, 0, "tile"));
  const TilePlace place = tile_place(kTile, down_columns);
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);

  float held[kTile / kThreadRows];  // all loads are under way before the first is needed
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

template <class Words>
__global__ void fill_random(Words words, Index count, unsigned seed) {
  const Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) words[i] = random_word(i, seed);
}

/// Word (column, row) of `out` must be word (row, column) of what fill_random wrote.
template <class Words, class Counter>
__global__ void count_wrong(Words out, Index rows, Index columns, unsigned seed, Counter wrong) {
  const Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= rows * columns) return;
  const Index row = i % rows;
  const Index column = i / rows;
  if (out[i] != random_word(row * columns + column, seed)) atomicAdd(&wrong[0], 1ULL);
}

// ---- launches -----------------------------------------------------------------------------------

/// The accessor that a kernel gets for a Span<T>.
template <class T>
using Accessor = decltype(simt::global(simt::Span<T>{}, ""));

/// Calls `run` with the number of packs as a constant. Throws Error.
template <class Run>
void with_packs(int packs, Run run) {
  switch (packs) {
    case 1:
      return run(std::integral_constant<int, 1>{});
    case 2:
      return run(std::integral_constant<int, 2>{});
    case 4:
      return run(std::integral_constant<int, 4>{});
    case 8:
      return run(std::integral_constant<int, 8>{});
    default:
      throw Error("copy: " + std::to_string(packs) + " packs a thread; allowed: 1, 2, 4, 8");
  }
}

/// Calls `run` with tile edge and thread rows as constants. Throws Error.
template <class Run>
void with_tile(const TransposeShape& shape, Run run) {
  const auto rows = [&](auto tile) {
    switch (shape.thread_rows) {
      case 4:
        return run(tile, std::integral_constant<int, 4>{});
      case 8:
        return run(tile, std::integral_constant<int, 8>{});
      case 16:
        return run(tile, std::integral_constant<int, 16>{});
      default:
        throw Error("transpose: " + std::to_string(shape.thread_rows) +
                    " thread rows; allowed: 4, 8, 16");
    }
  };
  if (shape.tile == 32) return rows(std::integral_constant<int, 32>{});
  if (shape.tile == 64) return rows(std::integral_constant<int, 64>{});
  throw Error("transpose: a tile of " + std::to_string(shape.tile) + "; allowed: 32, 64");
}

/// One block for each tile.
inline simt::Launch transpose_launch(const TransposeShape& shape, const char* name, int pitch) {
  const auto tiles = [&](int size) {
    return static_cast<unsigned>((size + shape.tile - 1) / shape.tile);
  };
  const unsigned across = tiles(shape.columns);
  const unsigned down = tiles(shape.rows);
  return {
      .name = name,
      .grid = shape.down_columns ? dim3(down, across) : dim3(across, down),
      .block = dim3(static_cast<unsigned>(shape.tile), static_cast<unsigned>(shape.thread_rows)),
      .shared_bytes = static_cast<std::size_t>(shape.tile) * pitch * sizeof(float)};
}

void launch_fill_random(simt::Device& device, simt::Span<unsigned> words, unsigned seed) {
  const auto count = static_cast<Index>(words.count);
  simt::launch(device,
               simt::Launch{.name = "fill_random", .grid = blocks_for(count, 256), .block = 256},
               fill_random<Accessor<unsigned>>, simt::global(words, "words"), count, seed);
}

void launch_copy(simt::Device& device, CopyRung rung, const CopyConfig& config,
                 simt::Span<const float> in, simt::Span<float> out) {
  using In = Accessor<const float>;
  using Out = Accessor<float>;
  assert(in.count == out.count && config.threads >= 32);
  const auto count = static_cast<Index>(in.count);
  const auto start = [&](const char* name, dim3 blocks, auto kernel) {
    simt::launch(
        device,
        simt::Launch{
            .name = name, .grid = blocks, .block = dim3(static_cast<unsigned>(config.threads))},
        kernel, simt::global(in, "in"), simt::global(out, "out"), count);
  };
  if (rung == CopyRung::strided) {
    const Index threads = (count + kStridedCopyFloats - 1) / kStridedCopyFloats;
    return start("copy_strided", blocks_for(threads, config.threads), copy_strided<In, Out>);
  }
  if (rung == CopyRung::coalesced) {
    return start("copy_coalesced", blocks_for(count, config.threads), copy_coalesced<In, Out>);
  }
  with_packs(config.packs, [&](auto packs) {
    constexpr int kPacks = decltype(packs)::value;
    const dim3 all = blocks_for((count + 3) / 4, config.threads * kPacks);
    const auto most = static_cast<unsigned>(config.blocks);
    start("copy_vectorized", config.blocks > 0 && most < all.x ? dim3(most) : all,
          config.streaming ? copy_vectorized<kPacks, true, In, Out>
                           : copy_vectorized<kPacks, false, In, Out>);
  });
}

void launch_transpose(simt::Device& device, TransposeRung rung, const TransposeShape& shape,
                      simt::Span<const float> in, simt::Span<float> out) {
  using In = Accessor<const float>;
  using Out = Accessor<float>;
  with_tile(shape, [&](auto tile, auto thread_rows) {
    constexpr int kTile = decltype(tile)::value;
    constexpr int kRows = decltype(thread_rows)::value;
    if (rung == TransposeRung::naive) {
      simt::launch(device, transpose_launch(shape, "transpose_naive", 0),
                   transpose_naive<kTile, kRows, In, Out>, simt::global(in, "in"),
                   simt::global(out, "out"), shape.rows, shape.columns, shape.down_columns);
      return;
    }
    const bool padded = rung == TransposeRung::shared_tile_padded;
    simt::launch(device,
                 transpose_launch(shape, padded ? "transpose_tile_padded" : "transpose_tile",
                                  kTile + (padded ? 1 : 0)),
                 padded ? transpose_tile<kTile, kTile + 1, kRows, PlainShared, In, Out>
                        : transpose_tile<kTile, kTile, kRows, PlainShared, In, Out>,
                 simt::global(in, "in"), simt::global(out, "out"), shape.rows, shape.columns,
                 shape.down_columns, PlainShared{});
  });
}

void launch_transpose_traced(simt::Device& device, TransposeRung rung, int rows, int columns,
                             simt::Span<const float> in, simt::Span<float> out,
                             const simt::TraceBuffer& trace) {
  using In = Accessor<const float>;
  using Out = Accessor<float>;
  if (rung == TransposeRung::naive) throw Error("the naive transpose uses no shared memory");
  const bool padded = rung == TransposeRung::shared_tile_padded;
  simt::Launch launch =
      transpose_launch(TransposeShape{rows, columns},
                       padded ? "transpose_tile_padded" : "transpose_tile", padded ? 33 : 32);
  launch.grid = dim3(1);
  simt::launch(device, launch,
               padded ? transpose_tile<32, 33, 8, TracedShared, In, Out>
                      : transpose_tile<32, 32, 8, TracedShared, In, Out>,
               simt::global(in, "in"), simt::global(out, "out"), rows, columns, false,
               TracedShared{trace});
}

void launch_count_wrong(simt::Device& device, std::int64_t rows, std::int64_t columns,
                        unsigned seed, simt::Span<const unsigned> out,
                        simt::Span<unsigned long long> wrong) {
  assert(out.count == static_cast<std::size_t>(rows * columns));
  simt::launch(
      device,
      simt::Launch{.name = "count_wrong", .grid = blocks_for(rows * columns, 256), .block = 256},
      count_wrong<Accessor<const unsigned>, Accessor<unsigned long long>>, simt::global(out, "out"),
      rows, columns, seed, simt::global(wrong, "wrong"));
}

}  // namespace tilestep::coalescing::SIMT_BACKEND
