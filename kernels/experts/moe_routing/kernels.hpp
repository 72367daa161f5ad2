#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/base/simt/cuda/cublas.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/experts/moe_routing/lesson.hpp"

/// The interface between the lesson's driver and its kernels; launch.cu implements it, once per backend.
namespace tilestep::moe_routing {

/// The router and its results. An assignment is a pair (token, choice), number
/// token·top_k + choice.
struct RouteShape {
  int tokens = 0, experts = 0, top_k = 0;
  int capacity = -1;  ///< −1: no limit
  int tile = 8;
  Scheme scheme = Scheme::packed;
};

/// Rows of the scratch array `chunk_counts`.
constexpr std::size_t chunks_of(std::int64_t assignments) {
  return static_cast<std::size_t>((assignments + 255) / 256);
}

struct RouteArrays {
  simt::Span<const float> logits;       ///< [tokens × experts]
  simt::Span<int> expert;               ///< [tokens × top_k]
  simt::Span<float> probability, gate;  ///< [tokens × top_k]
  simt::Span<int> rank, slot;           ///< [tokens × top_k]; slot −1: dropped
  simt::Span<int> wanted, kept;         ///< [experts]
  simt::Span<int> first_slot;           ///< [experts + 1]; the last is the number of slots laid out
  simt::Span<int> first_tile;           ///< [experts + 1]; the last is the number of tiles that run
  simt::Span<int> chunk_counts;         ///< scratch: chunks_of(assignments) × experts
};

/// y[slot] = W[expert of the slot] · x[slot] for every slot that a tile covers.
struct GroupedShape {
  int experts = 0;
  int hidden = 0;  ///< k: numbers of a token, a multiple of 16
  int width = 0;   ///< m: rows of each W, a multiple of 16
  int tile = 8;    ///< n: token slots of a tile
  int slots = 0;   ///< rows of `x` and `y`
  Scheme scheme = Scheme::packed;
  int blocks = 0;  ///< persistent blocks of `packed`; 0: as many as the device runs at once (the
                   ///< picture's kernel: four)
  int most_tiles = 0;  ///< tiles of the expert that has the most, for the picture's other schemes
};

/// BF16 as bit patterns.
struct GroupedArrays {
  simt::Span<const std::uint16_t> x;        ///< [slots × hidden], rows of padding are zero
  simt::Span<const std::uint16_t> weights;  ///< [experts × width × hidden]
  simt::Span<float> y;                      ///< [slots × width]
  simt::Span<const int> first_slot, first_tile, kept;
  /// Only for the large product with `packed`: the tile numbers in the order in which they are
  /// handed out, [tiles · width / tile_width]. Empty: in the order of the numbers.
  simt::Span<const int> order = {};
};

/// A tile as its block records it, at its number; block −1: no block ran it.
struct TileRun {
  int block = -1, processor = -1;
  int mma = 0;  ///< instructions issued for it; the picture's kernel counts them
  unsigned long long begin = 0, end = 0;
};
inline constexpr std::uint32_t kTileSite = 0;
inline constexpr std::size_t kTileEntries = simt::kNoteEntries<TileRun>;
inline std::vector<TileRun> tile_runs(const simt::Trace& recording, std::size_t tiles) {
  return recording.download().notes<TileRun>(kTileSite, tiles, {});
}

/// One compiled shape of the large grouped product.
struct Configuration {
  std::string_view name;  ///< "128x256x64, 8 warps of 64x64, 3 stages"
  int tile_tokens = 0, tile_width = 0, tile_hidden = 0;
  bool hopper = false;  ///< wgmma: needs compute capability 9.0
};
/// Whether a device runs those: Hopper, and the emulation.
inline bool runs_wgmma(const simt::DeviceInfo& device) {
  return device.compute_capability == 0 || device.compute_capability == 90;
}

/// The position along the tokens of tile number `in_expert` of an expert. Tiles are numbered in
/// groups of 8 down, column by column: tiles that run together share rows of x and W, which L2
/// then holds.
inline constexpr int kTilesInGroup = 8;
constexpr int tile_down(int in_expert, int tiles_down, int tiles_across) {
  const int in_group = kTilesInGroup * tiles_across;
  const int first = in_expert / in_group * kTilesInGroup;
  const int down = tiles_down - first < kTilesInGroup ? tiles_down - first : kTilesInGroup;
  return first + in_expert % in_group % down;
}

using simt::LibraryStatus;

/// All work is asynchronous. Every call throws Error for a shape that the kernel does not accept.
class Kernels : public simt::KernelSet {
 public:
  // The picture's kernels, in routing.cu, on both backends.
  /// Router, histogram, scan and placement: fills everything but `logits`.
  virtual void route(simt::Device& device, const RouteShape& shape,
                     const RouteArrays& arrays) const = 0;
  /// x[slot] = tokens[token] for every kept assignment; other rows are zero.
  virtual void permute(simt::Device& device, const RouteShape& shape, int hidden,
                       simt::Span<const std::uint16_t> tokens, simt::Span<const int> slot,
                       simt::Span<std::uint16_t> x) const = 0;
  /// The grouped product of the picture, one warp per block. Returns the number of blocks launched;
  /// an empty tape records nothing. Throws Error (unavailable) below compute capability 8.0.
  virtual int multiply(simt::Device& device, const GroupedShape& shape, const GroupedArrays& arrays,
                       const simt::Tape& tape) const = 0;
  /// out[token] = Σ over kept choices of gate · y[slot], in the order of the choices.
  virtual void combine(simt::Device& device, const RouteShape& shape, int width,
                       simt::Span<const float> gate, simt::Span<const int> slot,
                       simt::Span<const float> y, simt::Span<float> out) const = 0;

  // The large product of the bench, in grouped_mma.cu and grouped_wgmma.cu.
  virtual std::span<const Configuration> configurations() const = 0;
  /// The same as `multiply` for sizes that are multiples of the configuration's tile (hidden and
  /// width; tokens need not be). `first_tile` counts tiles of `tile_tokens`; a recording has
  /// `first_tile` · width / `tile_width` tiles, expert by expert.
  virtual void grouped_gemm(simt::Device& device, int configuration, const GroupedShape& shape,
                            const GroupedArrays& arrays, const simt::Tape& tape) const = 0;
  virtual LibraryStatus library(simt::Device& device) const = 0;
  /// The library called once for each expert that has tokens, on the same arrays. `kept` and
  /// `first_slot` are on the host here.
  virtual void library_loop(simt::Device& device, const GroupedShape& shape,
                            const GroupedArrays& arrays, std::span<const int> first_slot,
                            std::span<const int> kept) const = 0;
};

}  // namespace tilestep::moe_routing
