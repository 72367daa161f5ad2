#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/base/lab/names.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/memory/coalescing/patterns.hpp"

/// The kernels' interface to the lesson's driver; launch.cu implements it, once for each backend.
namespace tilestep::coalescing {

/// Sites on a tape: the two arrays of a launch by pattern, and a transpose's tile.
inline constexpr std::uint32_t kPatternSite = 0;
inline constexpr std::uint32_t kPlainSite = 1;
inline constexpr std::uint32_t kTileSite = 2;

/// The ladder of copies.
enum class CopyRung { strided, coalesced, vectorized };
constexpr auto names_of(CopyRung) {
  return std::to_array<std::string_view>({"strided", "coalesced", "vectorized"});
}
constexpr auto reasons_of(CopyRung) {
  return std::to_array<std::string_view>(
      {"The starting point: each thread copies 32 floats that lie side by side, so that the lanes "
       "of a warp load addresses 128 bytes apart.",
       "Neighbouring threads copy neighbouring floats: a warp's request needs 4 sectors instead of "
       "32.",
       "16 bytes a load: fewer instructions and four times the bytes in flight, so that one load a "
       "thread is enough."});
}
inline constexpr auto kCopyRungs = all_of<CopyRung>();

/// How a copy is launched. `strided` and `coalesced` use `threads` alone.
struct CopyConfig {
  int threads = 256;       ///< of a block: 128, 256, 512 or 1024
  int packs = 4;           ///< 16-byte loads in flight per thread: 1, 2, 4 or 8
  bool streaming = false;  ///< hint to the caches that nothing is read or written again
  int blocks = 0;          ///< 0: as many as there is work for; else each takes chunk after chunk
};
/// Consecutive floats per thread of the strided copy.
inline constexpr int kStridedCopyFloats = 32;

/// The ladder of transposes.
enum class TransposeRung { naive, shared_tile, shared_tile_padded };
constexpr auto names_of(TransposeRung) {
  return std::to_array<std::string_view>({"naive", "shared-tile", "shared-tile-padded"});
}
constexpr auto reasons_of(TransposeRung) {
  return std::to_array<std::string_view>(
      {"The starting point: loads along the rows, stores down the columns, a sector for every "
       "lane.",
       "A tile is transposed in shared memory, so that loads and stores both run along rows; but "
       "the lanes that read a column of the tile all hit the same bank.",
       "One more float in each row of the tile: the words of a column lie in different banks."});
}
inline constexpr auto kTransposeRungs = all_of<TransposeRung>();

/// in [rows × columns] to out [columns × rows], FP32, row-major.
struct TransposeShape {
  int rows = 0;
  int columns = 0;
  int tile = 32;              ///< edge of a block's tile: 32 or 64
  int thread_rows = 8;        ///< rows of the block's threads: 4, 8 or 16; each row has `tile`
  bool down_columns = false;  ///< consecutive blocks are placed below each other
};

/// How a sweep is launched.
struct SweepConfig {
  int loads = 1;            ///< per thread before its first store: 1 or 4
  std::int64_t blocks = 0;  ///< 0: as many as there is work for; else each takes chunk after chunk
};

class Kernels : public simt::KernelSet {
 public:
  /// The timed kernel, asynchronous. `in` and `out` hold elements of `shape.element_bytes` and are
  /// aligned to them: for a load `in` has array_elements and `out` elements, for a store vice
  /// versa. With a tape its accesses are traced, and the first `blocks` blocks run alone.
  virtual void access(simt::Device& device, const PatternShape& shape,
                      simt::Span<const unsigned char> in, simt::Span<unsigned char> out,
                      const simt::Tape& tape = {}, std::int64_t blocks = 0) const = 0;

  /// The same accesses with more loads per thread or fewer blocks. Throws Error for loads that are not compiled.
  virtual void sweep(simt::Device& device, const PatternShape& shape, const SweepConfig& config,
                     simt::Span<const unsigned char> in, simt::Span<unsigned char> out) const = 0;

  /// Fills with random bits that depend only on `seed` and the position.
  virtual void fill_random(simt::Device& device, simt::Span<unsigned> words,
                           unsigned seed) const = 0;

  /// Copies floats, asynchronous. Throws Error for a configuration that is not compiled.
  virtual void copy(simt::Device& device, CopyRung rung, const CopyConfig& config,
                    simt::Span<const float> in, simt::Span<float> out) const = 0;

  /// Transposes, asynchronous. Throws Error for a shape that is not compiled.
  virtual void transpose(simt::Device& device, TransposeRung rung, const TransposeShape& shape,
                         simt::Span<const float> in, simt::Span<float> out) const = 0;

  /// The first block of a transpose with a tile of 32 and 8 thread rows, its accesses to shared
  /// memory traced (kTileSite). Throws Error for the rung without shared memory.
  virtual void transpose_traced(simt::Device& device, TransposeRung rung, int rows, int columns,
                                simt::Span<const float> in, simt::Span<float> out,
                                const simt::Tape& tape) const = 0;

  /// Adds to wrong[0] how many of the words of `out` [columns × rows] differ from the transpose
  /// of fill_random's [rows × columns] array; a copy is a matrix of one row.
  virtual void count_wrong(simt::Device& device, std::int64_t rows, std::int64_t columns,
                           unsigned seed, simt::Span<const unsigned> out,
                           simt::Span<unsigned long long> wrong) const = 0;
};

}  // namespace tilestep::coalescing
