// C = A·B on tensor cores: BF16 inputs, FP32 accumulators and output. One warp instruction,
// mma.sync.m16n8k16, multiplies 16 × 16 of A by 16 × 8 of B: 2048 products where a warp's FMA
// computes 32.
//
//   - cp.async copies tiles of A and B into one of several stages of shared memory, 16 bytes at a
//     time
//   - ldmatrix reads them as the fragments that mma needs, four 8 × 8 matrices at a time
//   - the place of a 16-byte chunk in its row depends on the row (an XOR with its low bits), so that
//     the eight rows of a matrix cover all 32 banks, without padding
//   - the fragments of the next 16 k are read while the current ones are multiplied
//
// A [m × k], B [k × n] are BF16 bit patterns, C [m × n] is FP32, row-major. With kWhole the shape
// is a multiple of the tile; otherwise elements outside are 0 in shared memory. Fragment
// layouts: simt/mma.hpp. Needs compute capability 8.0.

#include "kernels/matmul/tiling/rungs.hpp"

namespace tilestep::tiling::SIMT_BACKEND {

using Bits = std::uint16_t;
constexpr int kChunk = 8;  // elements in 16 bytes

/// kTileM × kTileN of C per block, kWarpM × kWarpN per warp; kDepth along k, kStages in shared
/// memory; kBlocks per multiprocessor.
template <int kM, int kN, int kK, int kWM, int kWN, int kS, int kB>
struct MmaTiling {
  static constexpr int kTileM = kM, kTileN = kN, kDepth = kK;
  static constexpr int kWarpM = kWM, kWarpN = kWN;
  static constexpr int kStages = kS, kBlocks = kB;
  static constexpr int kThreads = kM / kWM * (kN / kWN) * 32;
  static constexpr int kATile = kM * kK;
  static constexpr int kBTile = kK * kN;
  static constexpr std::size_t kSharedBytes = kS * (kATile + kBTile) * sizeof(Bits);
  static constexpr int kRowsOfA = kWM / 16;     // fragments down a warp's tile
  static constexpr int kColumnsOfB = kWN / 16;  // pairs of fragments across it
  static constexpr int kSteps = kK / 16;
  static constexpr int kCopiesA = kATile / kChunk / kThreads;
  static constexpr int kCopiesB = kBTile / kChunk / kThreads;
  static_assert((kK == 32 || kK % 64 == 0) && kN % 64 == 0 && kWM % 16 == 0 && kWN % 16 == 0 &&
                kSteps % 2 == 0);
  static_assert(kATile % (kChunk * kThreads) == 0 && kBTile % (kChunk * kThreads) == 0);

  // Chunk c of row r is stored at chunk c ^ key(r): 8 rows of one chunk number then cover all 32
  // banks. With 4 chunks per row, two rows cover the banks once, so rows pair up.
  __device__ static constexpr int key_a(int row) { return kDepth == 32 ? row / 2 % 4 : row % 8; }
  __device__ static constexpr int key_b(int kk) { return kk % 8; }
};

/// One chunk to shared memory: `row` and `column` of a matrix of rows × columns, 0 for elements
/// outside.
template <bool kWhole, class In>
__device__ __forceinline__ void copy_chunk(simt::Shared<Bits> to, In from, int row, int column,
                                           int rows, int columns) {
  if constexpr (kWhole) {
    copy16(to, from);
  } else if (row < rows && column + kChunk <= columns && columns % kChunk == 0) {
    copy16(to, from);
  } else {
    for (int j = 0; j < kChunk; ++j) {
      const bool inside = row < rows && column + j < columns;
      to[j] = inside ? static_cast<Bits>(from[j]) : Bits{0};
    }
  }
}

/// This thread's share of the copies: where it reads next, and the place in a stage.
template <class T, bool kWhole, class In>
struct ChunkCopies {
  static constexpr int kChunksA = T::kDepth / kChunk;
  static constexpr int kChunksB = T::kTileN / kChunk;
  static constexpr int kRowsAtOnce = T::kThreads / kChunksA;
  static constexpr int kDepthAtOnce = T::kThreads / kChunksB;
  // This gives all chunks of a thread the same key.
  static_assert(kRowsAtOnce % 8 == 0 && kDepthAtOnce % 8 == 0);

  int a_row, a_kk, b_kk, b_column;  // of the first chunk, in the matrices
  int a_to, b_to;
  In a_from, b_from;

  __device__ __forceinline__ ChunkCopies(In a, In b, const GemmShape& shape, int first_row,
                                         int first_column)
      : a_row(first_row + static_cast<int>(threadIdx.x) / kChunksA),
        a_kk(static_cast<int>(threadIdx.x) % kChunksA * kChunk),
        b_kk(static_cast<int>(threadIdx.x) / kChunksB),
        b_column(first_column + static_cast<int>(threadIdx.x) % kChunksB * kChunk),
        a_to((a_row - first_row) * T::kDepth +
             (a_kk / kChunk ^ T::key_a(a_row - first_row)) * kChunk),
        b_to(b_kk * T::kTileN + ((b_column - first_column) / kChunk ^ T::key_b(b_kk)) * kChunk),
        a_from(a + (a_row * shape.k + a_kk)),
        b_from(b + (b_kk * shape.n + b_column)) {}

  /// Starts the copies of the tiles from k0 on, and moves on by one tile.
  __device__ __forceinline__ void start(const GemmShape& shape, int k0, simt::Shared<Bits> a_tile,
                                        simt::Shared<Bits> b_tile) {
#pragma unroll
    for (int i = 0; i < T::kCopiesA; ++i) {
      const int down = i * kRowsAtOnce;
      copy_chunk<kWhole>(a_tile + (a_to + down * T::kDepth), a_from + down * shape.k, a_row + down,
                         k0 + a_kk, shape.m, shape.k);
    }
#pragma unroll
    for (int i = 0; i < T::kCopiesB; ++i) {
      const int deeper = i * kDepthAtOnce;
      copy_chunk<kWhole>(b_tile + (b_to + deeper * T::kTileN), b_from + deeper * shape.n,
                         k0 + b_kk + deeper, b_column, shape.k, shape.n);
    }
    a_from = a_from + T::kDepth;
    b_from = b_from + T::kDepth * shape.n;
  }
};

/// The rows that a lane passes to ldmatrix: lane l passes row l % 16 and chunk l / 16 of each
/// 16 × 16 part of the warp's tiles. Chunk numbers are combined by XOR instead of addition, because
/// the parts have no bits in common.
template <class T>
struct LaneRows {
  int a_row, a_chunk;  // in elements, from a stage's start
  int b_row, b_chunk;

  __device__ __forceinline__ LaneRows(int row, int column, int lane)
      : a_row((row + lane % 16) * T::kDepth),
        a_chunk((lane / 16 ^ T::key_a(lane % 16)) * kChunk),
        b_row(lane % 16 * T::kTileN),
        b_chunk((column / kChunk ^ lane / 16 ^ T::key_b(lane % 16)) * kChunk) {}

  __device__ __forceinline__ int a(int piece, int step) const {
    return a_row + piece * 16 * T::kDepth + (a_chunk ^ step * 16);
  }
  __device__ __forceinline__ int b(int piece, int step) const {
    return b_row + step * 16 * T::kTileN + (b_chunk ^ piece * 16);
  }
};

/// The operands of a warp for 16 values of k.
template <class T>
struct MmaFragments {
  unsigned a[T::kRowsOfA][4];
  unsigned b[T::kColumnsOfB][4];  // two fragments of 8 columns: registers 0–1 and 2–3

  /// Reads the fragments of k = 16·step … +15.
  template <class Tile>
  __device__ __forceinline__ void read(Tile a_tile, Tile b_tile, const LaneRows<T>& rows,
                                       int step) {
#pragma unroll
    for (int i = 0; i < T::kRowsOfA; ++i) simt::ldmatrix_x4(a[i], row_at(a_tile, rows.a(i, step)));
#pragma unroll
    for (int j = 0; j < T::kColumnsOfB; ++j) {
      simt::ldmatrix_x4_trans(b[j], row_at(b_tile, rows.b(j, step)));
    }
  }
};

template <class T, bool kWhole, class In, class Tape>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    tensor_core(In a, In b, Out c, GemmShape shape, Tape tape) {
  const auto a_tiles = simt::dynamic_shared<Bits>(T::kStages * T::kATile, 0, "A tiles");
  const auto b_tiles = simt::dynamic_shared<Bits>(T::kStages * T::kBTile,
                                                  T::kStages * T::kATile * sizeof(Bits), "B tiles");
  const auto a_read = seen(tape, a_tiles, kSiteTileA);
  const auto b_read = seen(tape, b_tiles, kSiteTileB);
  const auto to = seen(tape, c, kSiteC);
  const TileIndex tile =
      grouped_tile<8>(tiles_of(shape.m, T::kTileM), tiles_of(shape.n, T::kTileN));
  const int first_row = tile.row * T::kTileM;
  const int first_column = tile.column * T::kTileN;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp / (T::kTileN / T::kWarpN) * T::kWarpM;
  const int column = warp % (T::kTileN / T::kWarpN) * T::kWarpN;
  const int tiles = tiles_of(shape.k, T::kDepth);
  const LaneRows<T> rows(row, column, lane);
  ChunkCopies<T, kWhole, In> copies(a, b, shape, first_row, first_column);

#pragma unroll
  for (int stage = 0; stage < T::kStages - 1; ++stage) {
    if (stage < tiles) {
      copies.start(shape, stage * T::kDepth, a_tiles + stage * T::kATile,
                   b_tiles + stage * T::kBTile);
    }
    simt::cp_async_commit();  // empty groups too, so that the groups can be counted
  }
  simt::cp_async_wait<T::kStages - 2>();
  __syncthreads();  // all threads' copies of the first stage must have arrived

  float sums[T::kRowsOfA][T::kColumnsOfB * 2][4] = {};
  MmaFragments<T> fragments[2];
  fragments[0].read(a_read, b_read, rows, 0);
  int reading = 0;
  int writing = T::kStages - 1;
  for (int number = 0; number < tiles; ++number) {
#pragma unroll
    for (int step = 0; step < T::kSteps; ++step) {
      int next = step + 1;
      if (next == T::kSteps) {
        next = 0;
        reading = reading + 1 == T::kStages ? 0 : reading + 1;
        simt::cp_async_wait<T::kStages - 2>();
        // All threads' copies of the next stage must have arrived before it is read, and all threads
        // must have read the current one before the next copies overwrite it.
        __syncthreads();
      }
      fragments[(step + 1) % 2].read(a_read + reading * T::kATile, b_read + reading * T::kBTile,
                                     rows, next);
      if (step == 0) {
        // The stage written now was read for the previous tile, up to the barrier above.
        if (number + T::kStages - 1 < tiles) {
          copies.start(shape, (number + T::kStages - 1) * T::kDepth, a_tiles + writing * T::kATile,
                       b_tiles + writing * T::kBTile);
        }
        simt::cp_async_commit();
        writing = writing + 1 == T::kStages ? 0 : writing + 1;
      }
      const MmaFragments<T>& now = fragments[step % 2];
#pragma unroll
      for (int i = 0; i < T::kRowsOfA; ++i) {
#pragma unroll
        for (int j = 0; j < T::kColumnsOfB * 2; ++j) {
          simt::mma_m16n8k16_bf16(sums[i][j], now.a[i], now.b[j / 2][j % 2 * 2],
                                  now.b[j / 2][j % 2 * 2 + 1]);
        }
      }
    }
  }

  const int to_row = first_row + row + lane / 4;
  const int to_column = first_column + column + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < T::kRowsOfA; ++i) {
#pragma unroll
    for (int j = 0; j < T::kColumnsOfB * 2; ++j) {
      store_pair<kWhole>(to, to_row + i * 16, to_column + j * 8, shape, sums[i][j][0],
                         sums[i][j][1]);
      store_pair<kWhole>(to, to_row + i * 16 + 8, to_column + j * 8, shape, sums[i][j][2],
                         sums[i][j][3]);
    }
  }
}

}  // namespace tilestep::tiling::SIMT_BACKEND
