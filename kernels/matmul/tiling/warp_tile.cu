// C = A·B: the top FP32 rung. Changes from `double_buffered`:
//
//   - a block's tile of C is divided among its warps, and a warp's among its lanes, so that the
//     lanes of a warp share their reads: of 32 lanes, 4 read the same rows of A and 8 the same
//     columns of B, and the order of the lanes lets the hardware serve such a read in two passes
//   - 8 × 16 elements of C per thread: 24 numbers read for 128 products
//   - more than two stages of tiles, so that a copy has several steps to arrive
//   - the operands of the next k are read from shared memory while the current k is multiplied
//   - blocks start in groups of tiles that share rows of A and columns of B, which stay in L2
//
// A [m × k], B [k × n], C [m × n], FP32, row-major. With kWhole the shape is a multiple of the
// tile; otherwise elements outside are copied as 0 and not stored.

#include "kernels/matmul/tiling/rungs.hpp"

namespace tilestep::tiling::SIMT_BACKEND {

/// kTileM × kTileN of C per block, kWarpM × kWarpN per warp, kThreadM × kThreadN per thread; tiles of
/// kDepth along k, kStages of them in shared memory; kBlocks per multiprocessor.
template <int kM, int kN, int kK, int kWM, int kWN, int kTM, int kTN, int kS, int kB>
struct WarpTiling {
  static constexpr int kTileM = kM, kTileN = kN, kDepth = kK;
  static constexpr int kWarpM = kWM, kWarpN = kWN;
  static constexpr int kThreadM = kTM, kThreadN = kTN;
  static constexpr int kStages = kS, kBlocks = kB;
  static constexpr int kThreads = kM / kWM * (kN / kWN) * 32;
  // A's tile is transposed (k down, rows across); 4 floats of padding keep its rows aligned to 16
  // bytes and spread a warp's transposed stores over all banks.
  static constexpr int kPitch = kM + 4;
  static constexpr int kATile = kK * kPitch;
  static constexpr int kBTile = kK * kN;
  static constexpr std::size_t kSharedBytes = kS * (kATile + kBTile) * sizeof(float);
  // A warp is 8 lanes down and 4 across; each lane has groups of 4 rows and 4 columns.
  static_assert(kWM == 8 * kTM && kWN == 4 * kTN && kTM % 4 == 0 && kTN % 4 == 0);
  static_assert(kK % 8 == 0 && kM * kK % kThreads == 0 && kK * kN % (4 * kThreads) == 0);
  static constexpr int kCopiesA = kM * kK / kThreads;      // of 4 bytes, per thread
  static constexpr int kCopiesB = kK * kN / 4 / kThreads;  // of 16 bytes
};

/// This thread's share of the copies: where it reads next, and the place in a stage.
template <class T, bool kWhole, class In>
struct FloatCopies {
  // A: 8 adjacent elements of a row, then the next row, so that a warp fills 32 different banks;
  // after all rows the next 8 of k.
  static constexpr int kRowsAtOnce = T::kThreads / 8;
  static constexpr int kPassesDown = T::kTileM / kRowsAtOnce;
  // B: 4 adjacent elements per thread, row by row.
  static constexpr int kThreadsAcross = T::kTileN / 4;
  static constexpr int kDepthAtOnce = T::kThreads / kThreadsAcross;
  static_assert(T::kTileM % kRowsAtOnce == 0 && T::kThreads % kThreadsAcross == 0);

  int a_kk, b_kk;       // of the first copy in the tile
  int a_row, b_column;  // in the matrix
  int a_to, b_to;
  In a_from, b_from;

  __device__ __forceinline__ FloatCopies(In a, In b, const GemmShape& shape, int first_row,
                                         int first_column)
      : a_kk(static_cast<int>(threadIdx.x) % 8),
        b_kk(static_cast<int>(threadIdx.x) / kThreadsAcross),
        a_row(first_row + static_cast<int>(threadIdx.x) / 8),
        b_column(first_column + static_cast<int>(threadIdx.x) % kThreadsAcross * 4),
        a_to(a_kk * T::kPitch + a_row - first_row),
        b_to(b_kk * T::kTileN + b_column - first_column),
        a_from(a + (a_row * shape.k + a_kk)),
        b_from(b + (b_kk * shape.n + b_column)) {}

  /// Starts the copies of the tiles from k0 on, and moves on by one tile.
  __device__ __forceinline__ void start(const GemmShape& shape, int k0, simt::Shared<float> a_tile,
                                        simt::Shared<float> b_tile) {
#pragma unroll
    for (int i = 0; i < T::kCopiesA; ++i) {
      const int down = i % kPassesDown * kRowsAtOnce;
      const int deeper = i / kPassesDown * 8;
      const bool inside = kWhole || (a_row + down < shape.m && k0 + a_kk + deeper < shape.k);
      copy4(a_tile + (a_to + deeper * T::kPitch + down), a_from + (down * shape.k + deeper),
            inside);
    }
#pragma unroll
    for (int i = 0; i < T::kCopiesB; ++i) {
      const int deeper = i * kDepthAtOnce;
      const auto from = b_from + deeper * shape.n;
      const auto to = b_tile + (b_to + deeper * T::kTileN);
      if constexpr (kWhole) {
        copy16(to, from);
      } else {
        for (int j = 0; j < 4; ++j) {
          copy4(to + j, from + j, k0 + b_kk + deeper < shape.k && b_column + j < shape.n);
        }
      }
    }
    a_from = a_from + T::kDepth;
    b_from = b_from + T::kDepth * shape.n;
  }
};

/// The operands of a thread at one k.
template <class T>
struct Fragments {
  float a[T::kThreadM];
  float b[T::kThreadN];

  /// `a_row` and `b_row` point to this thread's first row and column at the wanted k. Its groups of
  /// 4 rows are 32 rows apart and its groups of 4 columns 16 columns apart, so that the groups of
  /// neighbouring lanes are adjacent.
  template <class Tile>
  __device__ __forceinline__ void read(Tile a_row, Tile b_row) {
#pragma unroll
    for (int i = 0; i < T::kThreadM / 4; ++i) {
      read4(&a[i * 4], a_row + i * 32);
    }
#pragma unroll
    for (int j = 0; j < T::kThreadN / 4; ++j) {
      read4(&b[j * 4], b_row + j * 16);
    }
  }
};

template <class T, bool kWhole, class In, class Tape>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    warp_tile(In a, In b, Out c, GemmShape shape, Tape tape) {
  const auto a_tiles = simt::dynamic_shared<float>(T::kStages * T::kATile, 0, "A tiles");
  const auto b_tiles = simt::dynamic_shared<float>(
      T::kStages * T::kBTile, T::kStages * T::kATile * sizeof(float), "B tiles");
  const auto a_read = seen(tape, a_tiles, kSiteTileA);
  const auto b_read = seen(tape, b_tiles, kSiteTileB);
  const auto to = seen(tape, c, kSiteC);
  const TileIndex tile =
      grouped_tile<8>(tiles_of(shape.m, T::kTileM), tiles_of(shape.n, T::kTileN));
  const int first_row = tile.row * T::kTileM;
  const int first_column = tile.column * T::kTileN;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  // Lanes 0 and 1 share rows, 0 and 2 share columns: in this order a 16-byte read, which is served by
  // quarters of a warp, needs two passes instead of four.
  const int lane_row = (lane >> 1 & 1) | (lane >> 3 & 3) << 1;
  const int lane_column = (lane & 1) | (lane >> 2 & 1) << 1;
  const int row = warp / (T::kTileN / T::kWarpN) * T::kWarpM + lane_row * 4;
  const int column = warp % (T::kTileN / T::kWarpN) * T::kWarpN + lane_column * 4;
  const int steps = tiles_of(shape.k, T::kDepth);
  FloatCopies<T, kWhole, In> copies(a, b, shape, first_row, first_column);

#pragma unroll
  for (int stage = 0; stage < T::kStages - 1; ++stage) {
    if (stage < steps) {
      copies.start(shape, stage * T::kDepth, a_tiles + stage * T::kATile,
                   b_tiles + stage * T::kBTile);
    }
    simt::cp_async_commit();  // empty groups too, so that the groups can be counted
  }
  simt::cp_async_wait<T::kStages - 2>();
  __syncthreads();  // all threads' copies of the first stage must have arrived

  float sums[T::kThreadM][T::kThreadN] = {};
  Fragments<T> fragments[2];
  fragments[0].read(a_read + row, b_read + column);
  int reading = 0;
  int writing = T::kStages - 1;
  for (int step = 0; step < steps; ++step) {
    // The stage written now was read in the previous step, up to the barrier below.
    if (step + T::kStages - 1 < steps) {
      copies.start(shape, (step + T::kStages - 1) * T::kDepth, a_tiles + writing * T::kATile,
                   b_tiles + writing * T::kBTile);
    }
    simt::cp_async_commit();
    writing = writing + 1 == T::kStages ? 0 : writing + 1;
#pragma unroll
    for (int kk = 0; kk < T::kDepth; ++kk) {
      int next = kk + 1;
      if (next == T::kDepth) {
        next = 0;
        reading = reading + 1 == T::kStages ? 0 : reading + 1;
        simt::cp_async_wait<T::kStages - 2>();
        // All threads' copies of the next stage must have arrived before it is read, and all threads
        // must have read the current one before the next step overwrites it.
        __syncthreads();
      }
      fragments[(kk + 1) % 2].read(a_read + (reading * T::kATile + next * T::kPitch + row),
                                   b_read + (reading * T::kBTile + next * T::kTileN + column));
      const Fragments<T>& now = fragments[kk % 2];
#pragma unroll
      for (int i = 0; i < T::kThreadM; ++i) {
#pragma unroll
        for (int j = 0; j < T::kThreadN; ++j) sums[i][j] += now.a[i] * now.b[j];
      }
    }
  }
#pragma unroll
  for (int i = 0; i < T::kThreadM; ++i) {
    const int to_row = first_row + row + i % 4 + i / 4 * 32;
#pragma unroll
    for (int j = 0; j < T::kThreadN / 4; ++j) {
      store_row4<kWhole>(to, to_row, first_column + column + j * 16, shape, &sums[i][j * 4]);
    }
  }
}

}  // namespace tilestep::tiling::SIMT_BACKEND
