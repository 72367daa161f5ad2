#pragma once

#include <cstdint>

#include "kernels/base/simt/cuda/cublas_lt.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/lessons.hpp"
#include "kernels/numbers/low_bit/formats.hpp"

/// The kernels' interface for the lesson's driver; implemented by launch.cu, once per backend.
namespace tilestep::low_bit {

/// W [rows × columns], BF16, row-major: a row is an output channel. Columns are a multiple of 256.
struct Matrix {
  int rows = 0, columns = 0;
};

/// What a group's weights span. Without initial values: it lies in shared memory too, which is not constructed.
struct Range {
  float low, high;  ///< the lowest and the highest
  float mean;       ///< of the magnitudes; where a whole row or all were gone through
};

/// What a group's codes mean: value = number · step + offset.
struct Scale {
  float wanted = 0;        ///< before it was rounded to its format
  float step = 0;          ///< rounded: what the kernels multiply by
  float inverse = 0;       ///< 1 / step
  float offset = 0;        ///< of code 0, where that is not zero
  std::int32_t zero = 0;   ///< the code of 0 (int4-zero-point)
  std::uint32_t bits = 0;  ///< as it is stored; of Q4_K the scale's 6 bits, then the minimum's
};

/// The note of a group, at its number: kGroupSite.
struct GroupNote {
  Range range = {};
  Scale scale;
};
inline constexpr std::uint32_t kGroupSite = 0;

/// Sites of the kernels that multiply: accesses to arrays, and notes.
enum Site : std::uint32_t {
  kCodesSite,    ///< Quantized::codes
  kScalesSite,   ///< Quantized::scales
  kZerosSite,    ///< Quantized::zeros
  kRangesSite,   ///< Quantized::ranges
  kNumbersSite,  ///< W as numbers in memory
  kFactorsSite,  ///< the Factors of eight weights, at their place among all such
};
/// Eight neighbouring weights as they were multiplied: what a thread has in registers.
struct Factors {
  float w[8] = {};
  float step = 0,
        offset = 0;  ///< of the scale that made them: of what was read from memory 1 and 0
  float after = 1;   ///< what multiplied their sum
};

/// A tape, and what the kernel does wrong on purpose while it is written.
struct Watch : simt::Tape {
  Break broken = Break::none;

  Watch() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a tape alone watches a kernel that does nothing wrong.
  Watch(const simt::Tape& tape, Break to_break = Break::none)
      : simt::Tape(tape), broken(to_break) {}
};

/// W in few bits.
struct Quantized {
  Format format = Format::int4;
  Group group = Group::g32;  ///< as `group_of` has it
  /// Codes, row by row, the first weight in the lowest bits. Of Q4_K whole super-blocks of 144 bytes.
  simt::Span<std::uint8_t> codes;
  simt::Span<std::uint8_t> scales;  ///< one a group, in its own format; Q4_K: none
  simt::Span<std::uint8_t> zeros;   ///< one a group, of int4-zero-point; otherwise none
  /// [rows + 1] of what each row spans, and at the end all of W: `ranges` writes them, and formats whose scales follow
  /// from a row or from all of W read them.
  simt::Span<Range> ranges;
};

/// INT4 with a scale for 128 weights, in the order in which the lanes of W4A16's kernels need it (linear/w4a16.cu).
struct Arranged {
  simt::Span<std::uint32_t> codes;   ///< [rows · columns / 8] words of eight codes
  simt::Span<std::uint32_t> scales;  ///< [rows / 2 · columns / 128] pairs of FP16, of rows 8 apart
};
/// W or X in 8 bits, as `quantize` writes it with Group::row: W8A8's operands.
struct EightBits {
  Format format = Format::int8;           ///< int8 or fp8_e4m3
  simt::Span<const std::uint8_t> codes;   ///< [rows × columns]
  simt::Span<const std::uint8_t> scales;  ///< [rows] of FP16 (int8) or FP32 (fp8_e4m3)
};
/// How W4A16 is launched, and W8A8, which has no GEMV but with tiles of 256 a persistent kernel, for which `splits` is 1.
struct LinearPlan {
  int tile = 0;    ///< rows of X in a tile of the GEMM: 16, 32, 64, 128; 0: the GEMV, up to 8 rows
  int splits = 1;  ///< blocks of the GEMM that share the columns of a tile: 1, 2, 4; W8A8: 8 too
  int stages = 0;  ///< of the GEMV's ring, an even number; 0: as many as shared memory holds
  int blocks = 0;  ///< of the GEMV, which share the tiles of 16 rows of W; 0: one for each
};

/// How the GEMV for ternary and Q4_K is launched: on tensor cores, or for ternary by tables of what four codes make of x,
/// which multiplies by no weight.
struct GemvPlan {
  int rows = 32;   ///< of W in a tile: 16, 32, ternary 64; tables: in a cluster, multiples of 8
  int splits = 8;  ///< that share the columns: 8, 16 warps; tables: 1, 2, 4, 8 blocks of a cluster
  bool tables = false;
};

class Kernels : public simt::KernelSet {
 public:
  /// What each row of W spans, then all of W. Asynchronous, as all here.
  virtual void ranges(simt::Device& device, const Matrix& matrix,
                      simt::Span<const std::uint16_t> weights, simt::Span<Range> ranges) const = 0;
  /// Codes and scales. Watched: each group's GroupNote. Throws Error for columns that are no multiple of 256.
  virtual void quantize(simt::Device& device, const Matrix& matrix,
                        simt::Span<const std::uint16_t> weights, const Quantized& out,
                        const Watch& watch = {}) const = 0;
  /// The same bytes, but for quotients that FP32's rounding makes ties, as fast as memory is read. Throws Error
  /// (unavailable) on GPUs before Hopper.
  virtual void quantize_wide(simt::Device& device, const Matrix& matrix,
                             simt::Span<const std::uint16_t> weights,
                             const Quantized& out) const = 0;
  /// What the codes stand for, FP32 [rows × columns]. Always watched, as all that multiply: each access to what W is
  /// stored in.
  virtual void dequantize(simt::Device& device, const Matrix& matrix, const Quantized& in,
                          simt::Span<float> numbers, const Watch& watch) const = 0;
  /// y [rows] = W · x, with x [columns] in BF16: codes become numbers in registers, sums are FP32. Notes the Factors.
  virtual void product(simt::Device& device, const Matrix& matrix, const Quantized& in,
                       simt::Span<const std::uint16_t> x, simt::Span<float> y,
                       const Watch& watch) const = 0;
  /// The same from W as numbers in memory.
  virtual void product_of_numbers(simt::Device& device, const Matrix& matrix,
                                  simt::Span<const float> numbers,
                                  simt::Span<const std::uint16_t> x, simt::Span<float> y,
                                  const Watch& watch) const = 0;

  /// From int4 in groups of 128; done when it returns. Throws Error for rows that are no multiple of 128.
  virtual void arrange(simt::Device& device, const Matrix& matrix, const Quantized& from,
                       const Arranged& to) const = 0;
  /// Adds up the words, a multiple of 4, by as many threads as there are sums, a multiple of 256.
  virtual void add_up(simt::Device& device, simt::Span<const std::uint32_t> words,
                      simt::Span<std::uint32_t> sums) const = 0;
  /// Y [batch × rows] = X [batch × columns] · Wᵀ, both BF16, sums FP32. Throws Error for shapes and plans that there are
  /// not; Error (unavailable) on GPUs before Hopper.
  virtual void linear(simt::Device& device, const Matrix& matrix, const Arranged& w,
                      const LinearPlan& plan, int batch, simt::Span<const std::uint16_t> x,
                      simt::Span<std::uint16_t> y) const = 0;
  /// y [rows] = W · x, both BF16, sums FP32, of ternary or Q4_K as `quantize` writes it, by no launch that may still run.
  /// Throws as `linear`.
  virtual void gemv(simt::Device& device, const Matrix& matrix, const Quantized& w,
                    const GemvPlan& plan, simt::Span<const std::uint16_t> x,
                    simt::Span<std::uint16_t> y) const = 0;
  /// What the codes of int4 in groups of 128 or of nvfp4 stand for, rounded to BF16 [rows × columns]. Throws as `linear`.
  virtual void dequantize_bf16(simt::Device& device, const Matrix& matrix, const Quantized& in,
                               simt::Span<std::uint16_t> numbers) const = 0;

  /// The same from W and X in 8 bits, whose scales multiply a sum of codes' products once: int8's sums are exact, FP8's are
  /// those of the tensor cores. W must have been complete before the launch ahead of this one began: the kernel reads it
  /// while that one runs. Throws Error as `linear`.
  virtual void linear_eight(simt::Device& device, const Matrix& matrix, const EightBits& w,
                            const LinearPlan& plan, int batch, const EightBits& x,
                            simt::Span<std::uint16_t> y) const = 0;

  /// cuBLASLt, the peer; under emulation there is none, and the other two throw Error (unavailable).
  virtual simt::LibraryStatus library() const = 0;
  virtual int library_algorithms(const simt::LibraryProduct& product,
                                 const simt::LibraryArrays& arrays) const = 0;
  virtual void library_multiply(const simt::LibraryProduct& product, int algorithm,
                                const simt::LibraryArrays& arrays) const = 0;
};

}  // namespace tilestep::low_bit
