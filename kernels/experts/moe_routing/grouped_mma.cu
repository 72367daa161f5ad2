// The large grouped product on tensor cores: y[slot] = W[expert of the slot] · x[slot]. BF16 in,
// FP32 accumulated and written. Tokens are along the n side of mma.sync.m16n8k16, rows of W along
// its m side.
//
//   - both operands have k fastest in memory, so a tile of either is rows of 64 numbers: 128 bytes,
//     whose eight 16-byte chunks are stored at chunk ^ (row % 8), so that the eight rows of a
//     matrix that ldmatrix reads span all 32 banks
//   - cp.async brings tiles into one of several stages of shared memory, ahead of the product
//   - `packed` runs one launch of persistent blocks over the tiles of all experts. The copies run
//     ahead into the block's next tile while the current one is still multiplied and stored: there
//     is no gap between tiles
//   - a tile at an expert's end holds fewer rows than it multiplies: the missing rows are zeros in
//     shared memory and are not stored
//
// x [slots × hidden], W [experts × width × hidden], y [slots × width]. Fragment layouts:
// simt/mma.hpp. Needs compute capability 8.0. With Hopper's instructions: grouped_wgmma.cu.

#include <cstddef>
#include <cstdint>

#include "kernels/base/simt/mma.hpp"
#include "kernels/experts/moe_routing/tiles.hpp"

namespace tilestep::moe_routing::SIMT_BACKEND::grouped_mma {

using Bits = std::uint16_t;
constexpr int kChunk = 8;   // numbers in 16 bytes
constexpr int kDepth = 64;  // numbers of k in a tile: 128 bytes per row
constexpr int kChunks = kDepth / kChunk;
constexpr int kSteps = kDepth / 16;

/// kWidth rows of W by kTokens slots per block, kWarpW × kWarpT per warp; kS stages in shared
/// memory; kB blocks per multiprocessor.
template <int kWidth, int kTokens, int kWarpW, int kWarpT, int kS, int kB>
struct GroupedTiling {
  static constexpr int kTileWidth = kWidth, kTileTokens = kTokens;
  static constexpr int kWarpWidth = kWarpW, kWarpTokens = kWarpT;
  static constexpr int kStages = kS, kBlocks = kB;
  static constexpr int kThreads = kWidth / kWarpW * (kTokens / kWarpT) * 32;
  static constexpr int kWTile = kWidth * kDepth;
  static constexpr int kXTile = kTokens * kDepth;
  static constexpr std::size_t kSharedBytes = kS * (kWTile + kXTile) * sizeof(Bits);
  static constexpr int kRowsOfW = kWarpW / 16;   // fragments down a warp's tile
  static constexpr int kPairsOfX = kWarpT / 16;  // pairs of fragments across it
  static constexpr int kRowsAtOnce = kThreads / kChunks;
  static_assert(kWidth % kRowsAtOnce == 0 && kTokens % kRowsAtOnce == 0);
  static_assert(kRowsAtOnce % 8 == 0, "all rows of a thread have one swizzle");
};

/// Element offset of a chunk in a tile.
__device__ constexpr int chunk_at(int row, int chunk) {
  return simt::swizzled_chunk(row, chunk) * kChunk;
}

/// This thread's part of the copies: its own walk over the block's tiles, and along k in each.
template <class T>
class Copies {
 public:
  __device__ __forceinline__ Copies(const GroupedOperands& operands, const GroupedShape& shape)
      : walk_(operands, shape),
        to_(chunk_at(first_row(), static_cast<int>(threadIdx.x) % kChunks)) {
    aim(operands, shape);
  }

  /// Starts the copies of the next 64 of k, if there is a tile left, and closes the group.
  __device__ __forceinline__ void start(const GroupedOperands& operands, const GroupedShape& shape,
                                        simt::Shared<Bits> w_tile, simt::Shared<Bits> x_tile) {
    if (walk_.there()) {
      const int down = T::kRowsAtOnce * shape.hidden;
#pragma unroll
      for (int i = 0; i < T::kTileWidth / T::kRowsAtOnce; ++i) {
        simt::cp_async16(w_tile + (to_ + i * T::kRowsAtOnce * kDepth), w_from_ + i * down);
      }
#pragma unroll
      for (int i = 0; i < T::kTileTokens / T::kRowsAtOnce; ++i) {
        simt::cp_async16(x_tile + (to_ + i * T::kRowsAtOnce * kDepth), x_from_ + i * down,
                         first_row() + i * T::kRowsAtOnce < rows_);
      }
      w_from_ = w_from_ + kDepth;
      x_from_ = x_from_ + kDepth;
      k_ += kDepth;
      if (k_ == shape.hidden) {
        walk_.advance(operands, shape);
        aim(operands, shape);
      }
    }
    simt::cp_async_commit();  // empty groups too, so that groups can be counted
  }

 private:
  static __device__ __forceinline__ int first_row() {
    return static_cast<int>(threadIdx.x) / kChunks;
  }
  /// To the start of the walk's tile.
  __device__ __forceinline__ void aim(const GroupedOperands& operands, const GroupedShape& shape) {
    if (!walk_.there()) return;
    k_ = 0;
    const TilePlace place = walk_.place(operands, shape);
    rows_ = place.rows;
    const int chunk = static_cast<int>(threadIdx.x) % kChunks * kChunk;
    const std::ptrdiff_t w_row =
        static_cast<std::ptrdiff_t>(walk_.expert()) * shape.width + place.first_width + first_row();
    const std::ptrdiff_t x_row = static_cast<std::ptrdiff_t>(place.first_slot) + first_row();
    w_from_ = operands.weights + (w_row * shape.hidden + chunk);
    x_from_ = operands.x + (x_row * shape.hidden + chunk);
  }

  TileWalk<T::kTileTokens, T::kTileWidth> walk_;
  int to_;  // in a tile
  int k_ = 0;
  int rows_ = 0;  // of the tile that is copied
  simt::Global<const Bits> w_from_, x_from_;
};

/// The rows that a lane addresses for ldmatrix. In each 16 × 16 part of W's tile lane l addresses
/// row l % 16 and chunk l / 16; in x's, whose rows are the columns of mma, row l / 16 · 8 + l % 8
/// and chunk l / 8 % 2. XOR replaces addition in the chunk's number, because the operands have no
/// bits in common.
struct LaneRows {
  int w, w_chunk;  // in elements, from a stage's start
  int x, x_chunk;

  __device__ __forceinline__ LaneRows(int first_width, int first_token, int lane)
      : w((first_width + lane % 16) * kDepth),
        w_chunk((lane / 16 ^ lane % 8) * kChunk),
        x((first_token + lane / 16 * 8 + lane % 8) * kDepth),
        x_chunk((lane / 8 % 2 ^ lane % 8) * kChunk) {}

  __device__ __forceinline__ int of_w(int piece, int step) const {
    return w + piece * 16 * kDepth + (w_chunk ^ step * 16);
  }
  __device__ __forceinline__ int of_x(int piece, int step) const {
    return x + piece * 16 * kDepth + (x_chunk ^ step * 16);
  }
};

/// A warp's operands for 16 k.
template <class T>
struct Fragments {
  unsigned w[T::kRowsOfW][4];
  unsigned x[T::kPairsOfX][4];  // two fragments of 8 tokens: registers 0–1 and 2–3

  /// Reads the fragments of k = 16·step … +15.
  __device__ __forceinline__ void read(simt::Shared<Bits> w_tile, simt::Shared<Bits> x_tile,
                                       const LaneRows& rows, int step) {
#pragma unroll
    for (int i = 0; i < T::kRowsOfW; ++i) simt::ldmatrix_x4(w[i], w_tile + rows.of_w(i, step));
#pragma unroll
    for (int j = 0; j < T::kPairsOfX; ++j) simt::ldmatrix_x4(x[j], x_tile + rows.of_x(j, step));
  }
};

/// The accumulators of a warp's tile.
template <class T>
struct Sums {
  float of[T::kRowsOfW][T::kPairsOfX * 2][4];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < T::kRowsOfW; ++i) {
#pragma unroll
      for (int j = 0; j < T::kPairsOfX * 2; ++j) {
#pragma unroll
        for (int r = 0; r < 4; ++r) of[i][j][r] = 0.0f;
      }
    }
  }

  __device__ __forceinline__ void multiply(const Fragments<T>& now) {
#pragma unroll
    for (int i = 0; i < T::kRowsOfW; ++i) {
#pragma unroll
      for (int j = 0; j < T::kPairsOfX * 2; ++j) {
        simt::mma_m16n8k16_bf16(of[i][j], now.w[i], now.x[j / 2][j % 2 * 2],
                                now.x[j / 2][j % 2 * 2 + 1]);
      }
    }
  }

  /// Stores the tokens below `rows`, from y[0] = the warp's first row of W of the tile's first
  /// token. Eight lanes store neighbours of a token: a whole sector.
  __device__ __forceinline__ void store(simt::Global<float> y, int width, int first_token, int rows,
                                        int lane) const {
#pragma unroll
    for (int j = 0; j < T::kPairsOfX * 2; ++j) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int token = first_token + j * 8 + lane % 4 * 2 + r;
        if (token >= rows) continue;
        const auto to = y + (static_cast<std::ptrdiff_t>(token) * width + lane / 4);
#pragma unroll
        for (int i = 0; i < T::kRowsOfW; ++i) {
          to[i * 16] = of[i][j][r];
          to[i * 16 + 8] = of[i][j][2 + r];
        }
      }
    }
  }
};

template <class T, class Tape>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    grouped_gemm(GroupedOperands operands, GroupedShape shape, Tape tape) {
  const auto w_tiles = simt::dynamic_shared<Bits>(T::kStages * T::kWTile, 0, "W tiles");
  const auto x_tiles = simt::dynamic_shared<Bits>(T::kStages * T::kXTile,
                                                  T::kStages * T::kWTile * sizeof(Bits), "x tiles");
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  constexpr int kWarpsDown = T::kTileWidth / T::kWarpWidth;
  const int warp_width = warp % kWarpsDown * T::kWarpWidth;
  const int warp_token = warp / kWarpsDown * T::kWarpTokens;
  const int tiles_of_k = shape.hidden / kDepth;
  const LaneRows rows(warp_width, warp_token, lane);
  TileWalk<T::kTileTokens, T::kTileWidth> walk(operands, shape);
  TileRecorder recorder(T::kTileWidth / 16 * (T::kTileTokens / 8) * (shape.hidden / 16));
  Copies<T> copies(operands, shape);

#pragma unroll
  for (int stage = 0; stage < T::kStages - 1; ++stage) {
    copies.start(operands, shape, w_tiles + stage * T::kWTile, x_tiles + stage * T::kXTile);
  }
  simt::cp_async_wait<T::kStages - 2>();
  __syncthreads();  // all threads' parts of the first stage must have arrived

  Fragments<T> fragments[2];
  fragments[0].read(w_tiles, x_tiles, rows, 0);
  int reading = 0;
  int writing = T::kStages - 1;
  for (; walk.there(); walk.advance(operands, shape)) {
    if (threadIdx.x == 0) recorder.begins(tape);
    Sums<T> sums;
    sums.clear();
    for (int number = 0; number < tiles_of_k; ++number) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        int next = step + 1;
        if (next == kSteps) {
          next = 0;
          reading = reading + 1 == T::kStages ? 0 : reading + 1;
          simt::cp_async_wait<T::kStages - 2>();
          // All threads' parts of the next stage must have arrived before it is read, and all must
          // have read the current one before the next copies overwrite it.
          __syncthreads();
        }
        fragments[(step + 1) % 2].read(w_tiles + reading * T::kWTile, x_tiles + reading * T::kXTile,
                                       rows, next);
        if (step == 0) {
          // The stage written now was read before the barrier above.
          copies.start(operands, shape, w_tiles + writing * T::kWTile,
                       x_tiles + writing * T::kXTile);
          writing = writing + 1 == T::kStages ? 0 : writing + 1;
        }
        sums.multiply(fragments[step % 2]);
      }
    }
    const TilePlace place = walk.place(operands, shape);
    const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(place.first_slot) * shape.width;
    sums.store(operands.y + (first + place.first_width + warp_width), shape.width, warp_token,
               place.rows, lane);
    if (threadIdx.x == 0) recorder.ends(tape, walk.number());
  }
}

}  // namespace tilestep::moe_routing::SIMT_BACKEND::grouped_mma
