#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/base/lab/names.hpp"
#include "kernels/base/simt/resources.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/lessons.hpp"
#include "kernels/systems/fusion/gemm/gemm.hpp"
#include "kernels/systems/fusion/sampling/sampling.hpp"

/// The kernels' interface for the lesson's driver; implemented by launch.cu, once per backend.
namespace tilestep::fusion {

/// The format of rows in memory. Sums are always FP32.
enum class Dtype { bf16, fp16, fp32 };
constexpr auto names_of(Dtype) {
  return std::to_array<std::string_view>({"bf16", "fp16", "fp32"});
}
constexpr int bytes_of(Dtype type) {
  return type == Dtype::fp32 ? 4 : 2;
}

/// The start of a launch's work on a row.
enum class First {
  load,   ///< it is there: h = first
  add,    ///< the residual: h = first + second, which is stored too
  swiglu  ///< h = silu(first) · second
};
/// The work of one launch: steps of the chain that follow each other. Without norm and quantize, h is the output.
struct Parts {
  First first = First::load;
  bool norm = false, quantize = false;
  bool operator==(const Parts&) const = default;
};
/// The combinations that are compiled.
inline constexpr Parts kAdd{First::add, false, false}, kNorm{First::load, true, false},
    kQuantize{First::load, false, true}, kAddNorm{First::add, true, false},
    kNormQuantize{First::load, true, true}, kAddNormQuantize{First::add, true, true},
    kSwiglu{First::swiglu, false, false}, kSwigluQuantize{First::swiglu, false, true};

/// An error made on purpose in an explained launch.
enum class Break {
  none,
  stats_before_residual,  ///< the norm's sum is of the first operand, before the residual is added
  fp16_sum                ///< the squares are summed in FP16
};
constexpr auto names_of(Break) {
  return std::to_array<std::string_view>({"none", "stats-before-residual", "fp16-sum"});
}

/// Rows of `width` numbers, and the threads that a row has in a block.
struct RowShape {
  Dtype type = Dtype::bf16;
  int rows = 0;
  int width = 0;
  int threads = 256;  ///< 32, 64, … 1024
  /// The most packs of 16 bytes that a thread holds in registers: 1, 2 or 4; in a stream of at most 512 threads also 8.
  /// 0: the row is held in shared memory.
  int packs = 4;
  int least_cluster = 1;  ///< blocks of a row: no fewer
  /// Whether blocks stay for many rows and fetch the next one early (is_streamed). Rows of whole packs, in registers.
  bool stream = false;
};
/// The launches that can: those with a sum or a maximum, which memory would wait for.
constexpr bool is_streamed(const RowShape& shape, const Parts& parts) {
  return shape.stream && parts.first != First::swiglu && (parts.norm || parts.quantize);
}
inline constexpr int kMostThreads = 1024, kMostCluster = 8;
inline constexpr int kMostWidth = 262144;
/// Bytes of a row that a block holds in shared memory: so many if the cluster is large enough, and at most so many.
inline constexpr int kHeldBytes = 65536, kMostHeldBytes = 131072;
/// Numbers of a pack: rows that are not multiples of 16 bytes are read one by one.
constexpr int pack_of(Dtype type, int width) {
  const int numbers = 16 / bytes_of(type);
  return width % numbers == 0 ? numbers : 1;
}
/// The most numbers of a thread in registers. Rows that are read one by one have two for each pack.
constexpr int held_by_thread(const RowShape& shape) {
  const int numbers = pack_of(shape.type, shape.width);
  return shape.packs * (numbers == 1 ? 2 : numbers);
}
/// The number of blocks that share a row: 1, 2, 4 or 8; 0: not even eight hold it.
constexpr int cluster_of(const RowShape& shape) {
  const auto width = static_cast<std::int64_t>(shape.width);
  for (int blocks = shape.least_cluster; blocks <= kMostCluster; blocks *= 2) {
    const std::int64_t room = shape.packs > 0
                                  ? static_cast<std::int64_t>(shape.threads) * held_by_thread(shape)
                                  : kHeldBytes / bytes_of(shape.type);
    if (blocks * room >= width) return blocks;
  }
  return shape.packs == 0 && kMostCluster * kMostHeldBytes >= width * bytes_of(shape.type)
             ? kMostCluster
             : 0;
}
/// A shape that holds the row in the registers of one block if there is room, otherwise in shared memory.
constexpr RowShape held_by_block(RowShape shape) {
  shape.packs = 4;
  if (cluster_of(shape) != 1) shape.packs = 0;
  return shape;
}

inline constexpr std::size_t kTurns = 2;
/// The arrays of a launch, row-major; those that its parts do not use are empty. Numbers are bit patterns of the
/// shape's type; `second` is rows × width too, except that swiglu has both in `first`, rows × 2·width: a row's gates
/// before its values.
struct RowArrays {
  simt::Span<const unsigned char> first, second;
  simt::Span<const unsigned char> gain;  ///< width
  simt::Span<unsigned char> sum;         ///< of add
  simt::Span<unsigned char> out;         ///< without quantize
  simt::Span<std::uint8_t> codes;        ///< E4M3
  simt::Span<float> scale;               ///< rows: a code times this is the number
  simt::Span<int> turns;                 ///< of a stream: kTurns, zero before a launch and after it
};

/// In the norm, beside the mean of the squares.
inline constexpr float kEpsilon = 1e-5f;
/// The largest number of E4M3.
inline constexpr float kLargestCode = 448;

/// The first numbers of a row that an explained launch notes.
inline constexpr int kShownNumbers = 6;
/// The kernel's record of a row: sites of its tape.
enum Site : std::uint32_t {
  kFirst,
  kSecond,
  kGain,
  kSum,
  kOut,
  kCodes,
  kScale,
  kHeld,
  kNormed,
  kStats
};
/// The statistics of a row, known to all of its threads.
struct RowStats {
  float squares;  ///< their sum; 0 without norm
  float inverse;  ///< 1 / √(mean of the squares + ε); 1 without norm
  float largest;  ///< magnitude of the numbers that are quantized; 0 without quantize
  float scale;    ///< of the codes
};

/// Logits [rows × vocabulary].
struct LossShape {
  Dtype type = Dtype::bf16;
  int rows = 0;
  int vocabulary = 0;
  int threads = 512;
};

/// A row kernel that holds ever more values in a thread: add, norm and quantize of BF16, in one block.
inline constexpr int kHeldValues[] = {16, 32, 64, 128, 256, 512};

class Kernels : public simt::KernelSet {
 public:
  /// A launch over all rows. Asynchronous. Throws Error for a shape or parts that are not compiled.
  virtual void rows(simt::Device& device, const RowShape& shape, const Parts& parts,
                    const RowArrays& arrays) const = 0;
  /// The same for one row (`shape.rows` is 1), recorded; `broken` only with norm.
  virtual void explained_row(simt::Device& device, const RowShape& shape, const Parts& parts,
                             const RowArrays& arrays, Break broken,
                             const simt::Tape& tape) const = 0;
  /// Add, norm and quantize with `values` (one of kHeldValues) in each thread: width / values threads, a multiple of
  /// 32 up to 1024. BF16.
  virtual void rows_holding(simt::Device& device, int values, const RowShape& shape,
                            const RowArrays& arrays) const = 0;
  virtual simt::Resources resources_holding(int values, int width) const = 0;
  /// Softmax and cross entropy: loss[row] = log Σ exp(logits) − logits[target]. Each logit is read once. Asynchronous.
  virtual void cross_entropy(simt::Device& device, const LossShape& shape,
                             simt::Span<const unsigned char> logits, simt::Span<const int> targets,
                             simt::Span<float> loss) const = 0;
  /// A token of each row, in one kernel: logits [rows × vocabulary] of `type` are read once. Asynchronous. Throws Error for
  /// a rule or shape that is not allowed.
  virtual void sample(simt::Device& device, Dtype type, const SampleShape& shape,
                      const SampleRule& rule, simt::Span<const unsigned char> logits,
                      simt::Span<int> tokens) const = 0;
  /// The same in a kernel for each step, `scratch` [rows × (vocabulary + 1)] between them: scaled logits become
  /// probabilities, and a threshold for each row. Not for greedy rules.
  virtual void sample_apart(simt::Device& device, Dtype type, const SampleShape& shape,
                            const SampleRule& rule, simt::Span<const unsigned char> logits,
                            simt::Span<float> scratch, simt::Span<int> tokens) const = 0;
  /// out = epilogue(X · W^T); for SwiGLU W is in the order of swiglu_row. Asynchronous. Throws Error for a shape that is
  /// not allowed, and Error (unavailable) on a GPU other than Hopper.
  virtual void multiply(simt::Device& device, Epilogue epilogue, TileSize size,
                        const ProductShape& shape, const ProductArrays& arrays) const = 0;
  /// out = x + second, a bias: x and out m × n.
  virtual void add_bias(simt::Device& device, const ProductShape& shape,
                        const ProductArrays& arrays) const = 0;
};

}  // namespace tilestep::fusion
