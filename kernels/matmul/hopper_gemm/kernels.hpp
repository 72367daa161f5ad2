#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/base/simt/cuda/cublas_lt.hpp"
#include "kernels/base/simt/resources.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/matmul/hopper_gemm/lesson.hpp"

/// \file
/// The host interface of the lesson's kernels, the same for both backends.

namespace tilestep::hopper_gemm {

using simt::LibraryStatus;

/// A matrix's rows are a multiple of 16 bytes apart in memory, as TMA requires.
__host__ __device__ constexpr int pitch_bytes(int columns, int element_bytes) {
  return (columns * element_bytes + 15) / 16 * 16;
}
template <class T>
__host__ __device__ constexpr int pitch_of(int columns) {
  return pitch_bytes(columns, sizeof(T)) / static_cast<int>(sizeof(T));
}

/// Dynamic shared memory of a block: the stages, two barriers each, two tiles of C to be stored for each
/// consumer (64 rows of 128 bytes), and padding for alignment to the swizzle's pattern.
inline constexpr int kStoreBytes = 2 * 64 * 128;
constexpr int shared_bytes_of(int stage_bytes, int stages, int consumers) {
  return stages * (stage_bytes + 16) + consumers * kStoreBytes + 1024;
}
/// A block's limit on Hopper: 227 KB.
inline constexpr int kMostSharedBytes = 227 * 1024;

/// A tile's row and column, in elements of C or in tiles.
struct TilePlace {
  int row, column;
};

/// K-tiles that mma-sync copies ahead, if its ring has enough stages.
inline constexpr int kMmaAhead = 2;

/// The order of C's tiles. `grouped` takes 2048 rows of C column by column: with 256 columns per tile, the
/// tiles computed at the same time then form nearly a square, and share most of A and B.
struct TileOrder {
  int down, across;
  Raster raster;
  int group;  ///< rows of tiles that `grouped` takes at a time

  __host__ __device__ constexpr int count() const { return down * across; }
  __host__ __device__ constexpr TilePlace place(int number) const {
    if (raster == Raster::rows) return {number / across, number % across};
    if (raster == Raster::columns) return {number % down, number / down};
    const int first = number / (group * across) * group;
    const int high = down - first < group ? down - first : group;
    const int in_group = number - first * across;
    return {first + in_group % high, in_group / high};
  }
};
inline constexpr int kGroupRows = 2048;
__host__ __device__ constexpr TileOrder tiles_of(const GemmShape& shape, int rows, int columns,
                                                 Raster raster) {
  return {(shape.m + rows - 1) / rows, (shape.n + columns - 1) / columns, raster,
          kGroupRows / rows};
}

// ---- records of an explained kernel ---------------------------------------------------------------

/// An explained kernel notes the clocks of its events in rows, its sites: one a kind, for the thread that copies (0,
/// which has the row of the thread that watches, too) and for each consumer (1, 2). The number is that of the k-tile among
/// all that the block multiplies; for stores, of the block's tile.
constexpr int site_of(What what, int who = 0) {
  return who * kWhats + static_cast<int>(what);
}
inline constexpr int kSites = 3 * kWhats;
/// The row with the waits that were given up: by site, the k-tile waited for.
inline constexpr int kGivenUp = kSites;
/// An explained kernel's omission or mistake: those of the knob `break`, and under emulation every other
/// wait, fence and release, for tests.
enum class Fault {
  none,
  skip_full_wait,
  skip_empty_wait,
  missing_fence,
  wrong_bytes,
  last_of_knob = wrong_bytes,
  no_publish,        ///< TMA is not told of the barriers
  no_meeting,        ///< threads do not wait for the barriers' initialization
  no_release,        ///< a stage is never released
  early_release,     ///< it is released before its products are waited for
  no_product_wait,   ///< sums are read while products are in flight
  no_store_wait,     ///< a tile of C is overwritten while TMA reads it
  no_store_meeting,  ///< TMA's store is issued before all threads have written
  no_write_meeting,  ///< a tile of C is written before the store's wait is over
  no_last_meeting,   ///< a block of a cluster exits while the other may still access it
};
constexpr Fault fault_of(Break knob) {
  return static_cast<Fault>(knob);
}
static_assert(fault_of(Break::wrong_bytes) == Fault::wrong_bytes);

/// A broken kernel's wait is abandoned after this many cycles.
inline constexpr long long kPatience = 2'000'000;

// ---- the interface --------------------------------------------------------------------------------

/// A and B as 16-bit words: a BF16 or FP16 each, or two E4M3. Rows are pitch_bytes(k) apart.
struct Operands {
  simt::Span<const std::uint16_t> a, b;
};

/// A launch of an explained kernel, with any plan. C is FP32 with rows of pitch_of<float>(n).
struct Explanation : Plan {
  Fault fault = Fault::none;
  int block = 0;    ///< the block whose steps are noted
  int numbers = 0;  ///< a row of `clocks`: k-tiles of a block, kSites at least
};

/// A kernel compiled for one plan, for timing. C is BF16 with rows of pitch_of<uint16>(n).
struct Configuration {
  Variant variant;
  std::string_view name;  ///< "128x256x64, 2 consumers, 4 stages, cluster of 2"
  DataType dtype;
  int rows, columns;  ///< of a block's tile
  int stages, consumers, cluster;
  bool persistent, stored_by_tma;
  bool block_scaled = false;
  bool any_stages = false;    ///< `stages` is the maximum; fewer can be requested
  bool plain_stores = false;  ///< C's tiles are stored without a swizzle: only counted
};
/// The scales of a block-scaled product: of A [k / 128][m], of B [n / 128][k / 128]. k is a multiple of 128.
struct ScaleArrays {
  simt::Span<const float> a, b;
};

/// The lesson's kernels on one backend. All calls are asynchronous on a GPU; they throw Error for shapes that
/// a kernel does not support, and Error (unavailable) on a GPU other than Hopper.
class Kernels : public simt::KernelSet {
 public:
  /// `clocks`: kSites rows of what.numbers clocks of the chosen block, and one of abandoned waits, by site;
  /// entries of events that did not happen are left unchanged.
  virtual void explain(simt::Device& device, const Explanation& what, const Operands& operands,
                       simt::Span<float> c, simt::Span<long long> clocks) const = 0;

  virtual std::span<const Configuration> configurations() const = 0;
  /// `stages`: 0: the configuration's. `scales` only for block-scaled ones.
  virtual void multiply(simt::Device& device, int configuration, const GemmShape& shape,
                        Raster raster, const Operands& operands, simt::Span<std::uint16_t> c,
                        const ScaleArrays& scales = {}, int stages = 0) const = 0;
  /// The block-scaled product with C in FP32, rows of pitch_of<float>(n).
  virtual void multiply_scaled(simt::Device& device, const GemmShape& shape,
                               const Operands& operands, const ScaleArrays& scales,
                               simt::Span<float> c) const = 0;
  virtual simt::Resources resources(simt::Device& device, int configuration) const = 0;
  /// Products of a stage that stays in shared memory, `products` times k = 64 of BF16, by two consumers with
  /// 64 x `columns` each (64, 128, 256) on every multiprocessor: the limits of shared memory and the tensor
  /// cores without copies. `out` receives each block's clock cycles.
  virtual void resident(simt::Device& device, int columns, int products,
                        simt::Span<const std::uint16_t> stage, simt::Span<long long> out) const = 0;

  /// The same products from a ring that TMA fills: each block has 128 rows of `a` and `columns` rows of `b`,
  /// of 256 numbers each, whose four k-tiles are fetched over and over from L2.
  virtual void fed(simt::Device& device, int columns, int products,
                   simt::Span<const std::uint16_t> a, simt::Span<const std::uint16_t> b,
                   simt::Span<long long> out) const = 0;
  /// A warp reads (ldmatrix) or writes (stmatrix) four matrices of 8 × 8 16-bit numbers, `repeats` times, in
  /// rows of `row_bytes` (32, 64, 128). `places` receives the offset of each of its 32 lanes' 16 bytes.
  virtual void access_matrices(simt::Device& device, bool stores, int row_bytes, bool swizzled,
                               int repeats, simt::Span<int> places) const = 0;
  /// out[0] / out[1]: a multiprocessor's clock cycles per nanosecond, over the next 0.2 ms.
  virtual void probe_clock(simt::Device& device, simt::Span<long long> out) const = 0;

  virtual LibraryStatus library(simt::Device& device) const = 0;
  /// See simt::cuda::CublasLt.
  virtual int library_algorithms(simt::Device& device, const simt::LibraryProduct& product,
                                 const simt::LibraryArrays& arrays) const = 0;
  virtual void library_multiply(simt::Device& device, const simt::LibraryProduct& product,
                                int algorithm, const simt::LibraryArrays& arrays) const = 0;
};

}  // namespace tilestep::hopper_gemm
