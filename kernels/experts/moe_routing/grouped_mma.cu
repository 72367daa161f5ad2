// The large grouped product on tensor cores: y[slot] = W[expert of the slot] · x[slot]. BF16 in,
// FP32 accumulated and written. Tokens lie along the n side of mma.sync.m16n8k16, rows of W along
// its m side.
//
//   - both operands have k fastest in memory, so a tile of either is rows of 64 numbers: 128 bytes,
//     the eight 16-byte chunks of which lie where chunk ^ (row % 8) says, so that the eight rows of
//     a matrix that ldmatrix reads lie in all 32 banks
//   - cp.async brings tiles into one of several stages of shared memory, ahead of the product
//   - `packed` runs one launch of persistent blocks over the tiles of all experts. The copies go on
//     into the block's next tile while the current one is still multiplied and stored: there is no
//     gap between two tiles
//   - a tile at an expert's end holds fewer rows than it multiplies: the rows that are missing are
//     zeros in shared memory and are not stored
//
// x [slots × hidden], W [experts × width × hidden], y [slots × width]. Fragment layouts:
// simt/mma.hpp. Needs compute capability 8.0. What Hopper can do besides: grouped_wgmma.cu.

#include <cassert>
#include <string>
#include <vector>

#include "kernels/base/simt/mma.hpp"
#include "kernels/experts/moe_routing/tiles.hpp"

#if defined(__CUDACC__)
#include "kernels/base/simt/cublas.hpp"
#endif

namespace tilestep::moe_routing::SIMT_BACKEND {
namespace {

using Bits = std::uint16_t;
constexpr int kChunk = 8;   // numbers in 16 bytes
constexpr int kDepth = 64;  // numbers of k in a tile: 128 bytes a row
constexpr int kChunks = kDepth / kChunk;
constexpr int kSteps = kDepth / 16;

/// kWidth rows of W by kTokens slots a block, kWarpW × kWarpT a warp; kS stages in shared memory;
/// kB blocks a multiprocessor.
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
  return row * kDepth + (chunk ^ row % 8) * kChunk;
}

/// This thread's part of the copies: a walk of its own over the block's tiles, and along k in each.
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
      TILESTEP_UNROLL
      for (int i = 0; i < T::kTileWidth / T::kRowsAtOnce; ++i) {
        simt::cp_async16(w_tile + (to_ + i * T::kRowsAtOnce * kDepth), w_from_ + i * down);
      }
      TILESTEP_UNROLL
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
    simt::cp_async_commit();  // an empty group too: so the groups can be counted
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

/// Where a lane finds the rows that it names to ldmatrix. Of each 16 × 16 piece of W's tile lane l
/// names row l % 16 and chunk l / 16; of x's, whose rows are the columns of mma, row l / 16 · 8 +
/// l % 8 and chunk l / 8 % 2. XOR takes the place of adding in the chunk's number, because what is
/// put together has no bits in common.
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

/// What a warp multiplies for 16 k.
template <class T>
struct Fragments {
  unsigned w[T::kRowsOfW][4];
  unsigned x[T::kPairsOfX][4];  // two fragments of 8 tokens: registers 0–1 and 2–3

  /// Reads the fragments of k = 16·step … +15.
  __device__ __forceinline__ void read(simt::Shared<Bits> w_tile, simt::Shared<Bits> x_tile,
                                       const LaneRows& rows, int step) {
    TILESTEP_UNROLL
    for (int i = 0; i < T::kRowsOfW; ++i) simt::ldmatrix_x4(w[i], w_tile + rows.of_w(i, step));
    TILESTEP_UNROLL
    for (int j = 0; j < T::kPairsOfX; ++j) simt::ldmatrix_x4(x[j], x_tile + rows.of_x(j, step));
  }
};

/// The sums of a warp's tile.
template <class T>
struct Sums {
  float of[T::kRowsOfW][T::kPairsOfX * 2][4];

  __device__ __forceinline__ void clear() {
    TILESTEP_UNROLL
    for (int i = 0; i < T::kRowsOfW; ++i) {
      TILESTEP_UNROLL
      for (int j = 0; j < T::kPairsOfX * 2; ++j) {
        TILESTEP_UNROLL
        for (int r = 0; r < 4; ++r) of[i][j][r] = 0.0f;
      }
    }
  }

  __device__ __forceinline__ void multiply(const Fragments<T>& now) {
    TILESTEP_UNROLL
    for (int i = 0; i < T::kRowsOfW; ++i) {
      TILESTEP_UNROLL
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
    TILESTEP_UNROLL
    for (int j = 0; j < T::kPairsOfX * 2; ++j) {
      TILESTEP_UNROLL
      for (int r = 0; r < 2; ++r) {
        const int token = first_token + j * 8 + lane % 4 * 2 + r;
        if (token >= rows) continue;
        const auto to = y + (static_cast<std::ptrdiff_t>(token) * width + lane / 4);
        TILESTEP_UNROLL
        for (int i = 0; i < T::kRowsOfW; ++i) {
          to[i * 16] = of[i][j][r];
          to[i * 16 + 8] = of[i][j][2 + r];
        }
      }
    }
  }
};

template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    grouped_gemm(GroupedOperands operands, GroupedShape shape) {
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

  TILESTEP_UNROLL
  for (int stage = 0; stage < T::kStages - 1; ++stage) {
    copies.start(operands, shape, w_tiles + stage * T::kWTile, x_tiles + stage * T::kXTile);
  }
  simt::cp_async_wait<T::kStages - 2>();
  __syncthreads();  // everybody's part of the first stage must have arrived

  Fragments<T> fragments[2];
  fragments[0].read(w_tiles, x_tiles, rows, 0);
  int reading = 0;
  int writing = T::kStages - 1;
  for (; walk.there(); walk.advance(operands, shape)) {
    if (threadIdx.x == 0) recorder.begins(operands, walk.number());
    Sums<T> sums;
    sums.clear();
    for (int number = 0; number < tiles_of_k; ++number) {
      TILESTEP_UNROLL
      for (int step = 0; step < kSteps; ++step) {
        int next = step + 1;
        if (next == kSteps) {
          next = 0;
          reading = reading + 1 == T::kStages ? 0 : reading + 1;
          simt::cp_async_wait<T::kStages - 2>();
          // Everybody's part of the next stage must have arrived before it is read, and everybody
          // must have read the current one before the next copies overwrite it.
          __syncthreads();
        }
        fragments[(step + 1) % 2].read(w_tiles + reading * T::kWTile, x_tiles + reading * T::kXTile,
                                       rows, next);
        if (step == 0) {
          // The stage that is written now was read before the barrier above.
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
    if (threadIdx.x == 0) recorder.ends(operands, walk.number());
  }
}

// ---- configurations -----------------------------------------------------------------------------

using Wide = GroupedTiling<256, 128, 64, 64, 3, 1>;
using Deep = GroupedTiling<128, 256, 64, 64, 3, 1>;
using Square = GroupedTiling<128, 128, 64, 64, 3, 2>;
using Small = GroupedTiling<64, 64, 32, 32, 3, 3>;

constexpr Configuration kConfigurations[] = {
    {"128 tokens x 256, 8 warps of 64x64, 3 stages", 128, 256, kDepth, false},
    {"256 tokens x 128, 8 warps of 64x64, 3 stages", 256, 128, kDepth, false},
    {"128 tokens x 128, 4 warps of 64x64, 3 stages", 128, 128, kDepth, false},
    {"64 tokens x 64, 4 warps of 32x32, 3 stages", 64, 64, kDepth, false},
};

template <class T>
void launch(simt::Device& device, const Configuration& tile, const GroupedShape& shape,
            const GroupedOperands& operands) {
  simt::Launch launch{.name = "grouped_gemm",
                      .grid = dim3(1),
                      .block = dim3(T::kThreads),
                      .shared_bytes = T::kSharedBytes};
#if defined(__CUDACC__)
  const int persistent =
      shape.scheme == Scheme::packed ? blocks_at_once(device, launch, grouped_gemm<T>) : 0;
#else
  const int persistent = device.info().multiprocessors;
#endif
  launch.grid = grid_of(shape, tile, persistent);
  simt::launch(device, launch, grouped_gemm<T>, operands, shape);
}

/// Throws Error for a shape that the configuration does not take.
void check_grouped(const simt::Device& device, const Configuration& tile,
                   const GroupedShape& shape) {
  const auto multiple = [&](const char* what, int value, int of) {
    if (value >= 1 && value % of == 0) return;
    throw Error("moe-routing: " + std::string(what) + " is " + std::to_string(value) +
                "; the grouped product with tiles of " + std::string(tile.name) +
                " takes multiples of " + std::to_string(of));
  };
  multiple("hidden", shape.hidden, tile.tile_hidden);
  multiple("width", shape.width, tile.tile_width);
  const auto at_least = [](const char* what, int value, int least) {
    if (value >= least) return;
    throw Error("moe-routing: " + std::string(what) + " is " + std::to_string(value) +
                "; it must be " + std::to_string(least) + " or more");
  };
  at_least("experts", shape.experts, 1);
  at_least("slots", shape.slots, 0);
  at_least("blocks", shape.blocks, 0);
  // Under emulation the capability is 0, and all is there.
  const int capability = device.info().compute_capability;
  if (capability == 0) return;
  const bool enough = tile.hopper ? capability == 90 : capability >= simt::kMmaCapability;
  if (enough) return;
  const auto version = [](int number) {
    return std::to_string(number / 10) + "." + std::to_string(number % 10);
  };
  throw Error("moe-routing: the grouped product with tiles of " + std::string(tile.name) +
                  (tile.hopper ? " needs wgmma, which compute capability 9.0 alone has; "
                               : " needs BF16 tensor cores, compute capability 8.0 or higher; ") +
                  device.info().name + " has " + version(capability),
              ExitCode::unavailable);
}

}  // namespace

std::span<const Configuration> gemm_configurations() {
#if defined(__CUDACC__)
  static const std::vector<Configuration> all = [] {
    std::vector<Configuration> list(std::begin(kConfigurations), std::end(kConfigurations));
    const auto hopper = hopper_configurations();
    list.insert(list.end(), hopper.begin(), hopper.end());
    return list;
  }();
  return all;
#else
  return kConfigurations;
#endif
}

void launch_grouped_gemm(simt::Device& device, int configuration, const GroupedShape& shape,
                         const GroupedArrays& arrays, const TileRecording& recording) {
  const auto all = gemm_configurations();
  assert(configuration >= 0 && static_cast<std::size_t>(configuration) < all.size());
  const Configuration& tile = all[static_cast<std::size_t>(configuration)];
  check_grouped(device, tile, shape);
  [[maybe_unused]] const auto numbers = [](int rows, int columns) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  };
  assert(arrays.x.count == numbers(shape.slots, shape.hidden));
  assert(arrays.y.count == numbers(shape.slots, shape.width));
  assert(arrays.weights.count == numbers(shape.experts * shape.width, shape.hidden));
  assert(arrays.first_slot.count == numbers(shape.experts + 1, 1));
  assert(arrays.first_tile.count == numbers(shape.experts + 1, 1));
  if (shape.slots == 0) return;
#if defined(__CUDACC__)
  if (tile.hopper) {
    return launch_hopper(device, configuration - static_cast<int>(std::size(kConfigurations)),
                         shape, arrays, recording);
  }
#endif
  const GroupedOperands operands = operands_of(arrays, recording);
  switch (configuration) {
    case 0:
      return launch<Wide>(device, tile, shape, operands);
    case 1:
      return launch<Deep>(device, tile, shape, operands);
    case 2:
      return launch<Square>(device, tile, shape, operands);
    default:
      return launch<Small>(device, tile, shape, operands);
  }
}

// ---- the peer: cuBLAS once for each expert ------------------------------------------------------

LibraryStatus library_status([[maybe_unused]] simt::Device& device) {
#if defined(__CUDACC__)
  const simt::cuda::Cublas& cublas = simt::cuda::Cublas::loaded();
  return {cublas.available(), cublas.name(), cublas.reason()};
#else
  return {false, "", "cuBLAS runs on an NVIDIA GPU alone; here the kernels run under emulation"};
#endif
}

// Plain calls on the default stream, one after the other: the host's share of a call overlaps with
// the products before it.
void launch_library_loop(simt::Device& device, [[maybe_unused]] const GroupedShape& shape,
                         [[maybe_unused]] const GroupedArrays& arrays,
                         [[maybe_unused]] std::span<const int> first_slot,
                         [[maybe_unused]] std::span<const int> kept) {
  const LibraryStatus status = library_status(device);
  if (!status.available) throw Error(status.reason, ExitCode::unavailable);
#if defined(__CUDACC__)
  const simt::cuda::Cublas& cublas = simt::cuda::Cublas::loaded();
  const auto hidden = static_cast<std::size_t>(shape.hidden);
  const auto width = static_cast<std::size_t>(shape.width);
  for (std::size_t expert = 0; expert < kept.size(); ++expert) {
    if (kept[expert] == 0) continue;
    const auto slot = static_cast<std::size_t>(first_slot[expert]);
    cublas.gemm_bf16_transposed(
        kept[expert], shape.width, shape.hidden, arrays.x.data + slot * hidden,
        arrays.weights.data + expert * width * hidden, arrays.y.data + slot * width);
  }
#endif
}

}  // namespace tilestep::moe_routing::SIMT_BACKEND
