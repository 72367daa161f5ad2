#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/simt/simt.hpp"
#include "kernels/numbers/accumulator_precision/methods.hpp"

/// The kernels' interface for the lesson's driver; implemented by launch.cu, once per backend.
namespace tilestep::accumulator_precision {

/// Sums [sums] of columns of terms [terms × sums], FP32.
struct SumShape {
  int terms = 0;
  int sums = 0;
};

/// How the sums are kept. FP8 saturates, the other formats overflow to infinity.
struct SumMethod {
  Method method = Method::fp32;
  numeric::FloatSpec format;
  Rounding rounding = Rounding::nearest;
  int promote_every = 1;
  std::uint32_t seed = 0;  ///< of stochastic rounding
};

/// The result of an addition past the largest number.
TILESTEP_HOST_DEVICE constexpr numeric::Overflow overflow_of(numeric::FloatSpec format) {
  return format.bits() == 8 ? numeric::Overflow::saturate : numeric::Overflow::to_infinity;
}

/// The 32 random bits of stochastic rounding: of sum `sum`, for addition `place` of its term `term`
/// (a permuted congruence of the four numbers; Steele, Lea and Flood, "Fast splittable pseudorandom
/// number generators", 2014, for the mixer).
TILESTEP_HOST_DEVICE constexpr std::uint32_t random_bits(std::uint32_t seed, int sum, int term,
                                                         int place) {
  std::uint64_t x = (static_cast<std::uint64_t>(seed) << 32) ^
                    (static_cast<std::uint64_t>(sum) << 24) ^
                    (static_cast<std::uint64_t>(term) * 64 + static_cast<std::uint64_t>(place));
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return static_cast<std::uint32_t>((x ^ (x >> 31)) >> 32);
}
/// `place` in pairwise: 0 rounds the term, 1 … 31 are the merges from the lowest level up, and from
/// here on the merges that give the sum of the terms so far.
inline constexpr int kAnswerPlace = 32;
/// Levels of pairwise: enough for 2^20 terms.
inline constexpr int kLevels = 21;
inline constexpr int kMaxTerms = 65536;

/// The site of the notes: a Step for each term.
inline constexpr std::uint32_t kStepSite = 0;

/// C [m × n] = A [m × k] · Bᵀ, with B [n × k]: both row-major with k fastest, C FP32 row-major.
struct GemmShape {
  int m = 0, n = 0, k = 0;
};
/// The operands as E4M3 bits, and the same numbers as FP16 and BF16 bits.
struct GemmOperands {
  simt::Span<const std::uint8_t> a, b;
  simt::Span<const std::uint16_t> a_fp16, b_fp16;
  simt::Span<const std::uint16_t> a_bf16, b_bf16;
  simt::Span<float> c;
};
/// m, n and k of a tensor-core GEMM must be multiples of this.
inline constexpr int kGemmTile = 128;

/// Scaled blocks: element (row, kk) of a matrix has scale[row / rows][kk / columns].
struct ScaleBlock {
  int rows = 1;
  int columns = 1;
};
/// C = (scaled A) · (scaled B)ᵀ: E4M3 bits, each with its FP32 scale. [rows / block.rows rounded
/// up] × [k / block.columns rounded up] scales.
struct ScaledOperands {
  simt::Span<const std::uint8_t> a, b;
  simt::Span<const float> a_scales, b_scales;
  ScaleBlock a_block, b_block;
  simt::Span<float> c;
};

/// The number of scales of a matrix [rows × k].
inline std::size_t scale_count(const ScaleBlock& block, int rows, int k) {
  const auto blocks = [](int extent, int size) {
    return static_cast<std::size_t>((extent + size - 1) / size);
  };
  return blocks(rows, block.rows) * blocks(k, block.columns);
}

inline bool needs_hopper(GemmVariant variant) {
  return variant == GemmVariant::wgmma_fp8 || variant == GemmVariant::wgmma_fp8_promoted;
}

/// Whether `device` has the instruction of `variant`. wgmma exists only on compute capability 9.0.
inline bool can_run(const simt::DeviceInfo& device, GemmVariant variant) {
  return needs_hopper(variant) ? device.compute_capability == 90 : device.compute_capability >= 80;
}

class Kernels : public simt::KernelSet {
 public:
  /// The timed kernel: every column's sum, nothing recorded. Asynchronous. Throws Error for an
  /// unsupported shape (terms 1–65536, sums 1–65536, promote_every at least 1). With a tape it is
  /// explained: it computes only sum 0 and notes each of its steps.
  virtual void sums(simt::Device& device, const SumShape& shape, const SumMethod& method,
                    simt::Span<const float> terms, simt::Span<float> sums,
                    const simt::Tape& tape = {}) const = 0;

  /// Scaled FP8 product, asynchronous: FP32 sums over 128 of k, each multiplied by its two scales
  /// and added into an FP32 total. Blocks of scales must not end inside 128 of k.
  virtual void scaled_gemm(simt::Device& device, const GemmShape& shape,
                           const ScaledOperands& operands) const = 0;
  /// The same product of E4M3 bits in FP64, exact while sums stay below 2^35: the tensor cores'
  /// reference.
  virtual void exact_gemm(simt::Device& device, const GemmShape& shape,
                          simt::Span<const std::uint8_t> a, simt::Span<const std::uint8_t> b,
                          simt::Span<double> c) const = 0;
  /// E4M3 bits as FP16 and as BF16, which hold every one of them exactly.
  virtual void widen(simt::Device& device, simt::Span<const std::uint8_t> bits,
                     simt::Span<std::uint16_t> fp16, simt::Span<std::uint16_t> bf16) const = 0;

  /// A tensor-core GEMM, asynchronous. Throws Error (unavailable) if `device` lacks the instruction,
  /// and Error for a shape that is not a multiple of kGemmTile.
  virtual void tensor_core_gemm(simt::Device& device, GemmVariant variant, const GemmShape& shape,
                                const GemmOperands& operands) const = 0;
};

}  // namespace tilestep::accumulator_precision
