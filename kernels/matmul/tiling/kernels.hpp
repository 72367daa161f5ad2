#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/base/simt/cuda/cublas.hpp"
#include "kernels/base/simt/resources.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/matmul/tiling/lesson.hpp"

/// The kernels' interface to the lesson's driver; launch.cu implements it, once for each backend.
namespace tilestep::tiling {

using simt::LibraryStatus;
using simt::Resources;

/// C [m × n] = A [m × k] · B [k × n], row-major.
struct GemmShape {
  int m = 0, n = 0, k = 0;
};

/// One compiled shape of a rung. Rungs with one shape have one configuration, number 0.
struct Configuration {
  std::string_view name;       ///< "128x128x16, 8x8 a thread, 3 stages"
  int tile_m, tile_n, tile_k;  ///< that a block computes at a time
  bool any_size;               ///< false: m, n and k must be multiples of the tile
};

/// Edge of the tiles of the rungs with a picture when they are timed.
inline constexpr int kTimedTile = 32;

/// The operands of an FP32 rung. With `loads` (one number) each element of A and B that is loaded
/// from global memory is counted there.
struct Operands {
  simt::Span<const float> a, b;
  simt::Span<float> c;
  simt::Span<unsigned long long> loads;
};
/// The same for the tensor-core rung: A and B as BF16 bit patterns.
struct OperandsBf16 {
  simt::Span<const std::uint16_t> a, b;
  simt::Span<float> c;
  simt::Span<unsigned long long> loads;
};

/// A run of one of the three variants with a picture, with tile × tile threads per block.
struct PictureRun {
  Variant variant = Variant::shared_tile;
  int tile = 8;
  int padding = 0;  ///< floats added to a row of the A tile
  RemovedBarrier removed = RemovedBarrier::none;
  int block_row = 0, block_col = 0;  ///< first block
  int blocks_down = 0, blocks_across = 0;
};

/// Sites on a tape: the arrays, and each thread's sum after each k-tile (note number k-tile · threads
/// + thread). All kernels with tiles in shared memory record their stores to C.
enum Site : std::uint32_t { kSiteA, kSiteB, kSiteTileA, kSiteTileB, kSumSite, kSiteC };

/// How the library computes. Both FP32 ways use FP32 arithmetic alone; the pedantic one also
/// forbids algorithms that add in an unusual order.
enum class Precision { fp32, fp32_pedantic, bf16 };

/// All work is asynchronous. Every call throws Error for a shape that the kernel does not take.
class Kernels : public simt::KernelSet {
 public:
  virtual std::span<const Configuration> configurations(Variant variant) const = 0;
  /// The one whose block is drawn; for a rung without a drawing the first.
  virtual const Configuration& shown(Variant variant) const = 0;

  /// The FP32 rungs as they are timed. With a tape, which rungs above shared-tile take, the shown
  /// configuration runs, of whose tile the shape is a multiple.
  virtual void gemm(simt::Device& device, Variant variant, int configuration,
                    const GemmShape& shape, const Operands& operands,
                    const simt::Tape& tape = {}) const = 0;
  /// The tensor-core rung. Throws Error (unavailable) below compute capability 8.0.
  virtual void gemm_bf16(simt::Device& device, int configuration, const GemmShape& shape,
                         const OperandsBf16& operands, const simt::Tape& tape = {}) const = 0;
  /// Resources of a configuration's kernel, for a shape that is a multiple of its tile.
  virtual Resources resources(simt::Device& device, Variant variant, int configuration) const = 0;

  /// One of the variants with a picture, with the picture's tile. With a tape the run is of one
  /// block, which records its accesses and partial sums.
  virtual void picture(simt::Device& device, const PictureRun& run, const GemmShape& shape,
                       const Operands& operands, const simt::Tape& tape = {}) const = 0;

  /// cuBLAS in the same process; unavailable under emulation.
  virtual LibraryStatus library(simt::Device& device) const = 0;
  /// C = A·B by the library: FP32 (no TF32, no emulation by other formats), or BF16 in and FP32
  /// accumulated and written. `a` and `b` are float or BF16 bit patterns. Throws Error
  /// (unavailable) with the library's reason.
  virtual void library_gemm(simt::Device& device, Precision precision, const GemmShape& shape,
                            const void* a, const void* b, float* c) const = 0;
};

/// The number of the configuration that `gemm` and `resources` choose themselves.
inline constexpr int kBestConfiguration = -1;

}  // namespace tilestep::tiling
