#pragma once

#include <cstdint>

#include "kernels/base/simt/simt.hpp"
#include "kernels/lessons.hpp"

/// The kernels' interface for the lesson's driver; implemented by launch.cu, once per backend.
namespace tilestep::launches {

/// The part of a decoder layer that has no cache: RMSNorm, gate and up, SwiGLU, down, residual, for the tokens of one
/// decode step. A token has `width` numbers, and `inner` between up and down.
struct StepShape {
  int width = 64, inner = 128;
  int batch = 1;   ///< tokens
  int layers = 1;  ///< persistent kernel
};
/// Tokens that a product is compiled for: a launch takes the next one.
inline constexpr int kMostBatch = 8;
inline constexpr float kEpsilon = 1e-5f;

/// How a product reads its weights.
enum class Loads {
  vectors,  ///< 8 BF16 numbers, 16 bytes, which must be aligned to them
  single    ///< one number, wherever it lies
};

/// Y = X · W^T, for `batch` tokens: W is rows × k, in BF16.
struct ProductShape {
  int rows = 0, k = 0, batch = 1;
};
struct ProductArrays {
  simt::Span<const std::uint16_t> w;
  simt::Span<const float> x;  ///< batch × k
  simt::Span<float> y;        ///< batch × rows
};

/// Where a launch notes when its first block began and its last one ended, in nanoseconds; empty: nowhere.
struct Stamps {
  simt::Span<unsigned long long> begins, ends;  ///< begins start at the largest number, ends at 0
  int slot = 0;
};

/// All layers' weights and the arrays of the persistent kernel.
struct ModelArrays {
  simt::Span<const int> tokens;
  simt::Span<const float> table;             ///< embeddings
  simt::Span<const float> gains;             ///< layers × width
  simt::Span<const std::uint16_t> gate, up;  ///< layers × inner × width
  simt::Span<const std::uint16_t> down;      ///< layers × width × inner
  simt::Span<float> h;                       ///< batch × width
  simt::Span<float> a;                       ///< batch × inner
  simt::Span<unsigned> arrived;              ///< one counter, 0 at the start
};
/// Notes of the persistent kernel: the first number that block 0 made in a phase.
enum Site : std::uint32_t { kPhaseSite = 1 };
inline constexpr int kPhases = 2;  ///< of a layer: norm to SwiGLU; down and residual

class Kernels : public simt::KernelSet {
 public:
  /// h = the tokens' rows of the table.
  virtual void embed(simt::Device& device, const StepShape& shape, simt::Span<const int> tokens,
                     simt::Span<const float> table, simt::Span<float> h,
                     const Stamps& stamps) const = 0;
  /// n = h · gain / √(mean of h² + ε), row by row.
  virtual void norm(simt::Device& device, const StepShape& shape, simt::Span<const float> h,
                    simt::Span<const float> gain, simt::Span<float> n,
                    const Stamps& stamps) const = 0;
  /// `name`, a literal, names the launch. Throws Error for vectors that the weights are not aligned to.
  virtual void product(simt::Device& device, const char* name, Loads loads,
                       const ProductShape& shape, const ProductArrays& arrays,
                       const Stamps& stamps) const = 0;
  /// a = silu(gate) · up.
  virtual void act(simt::Device& device, const StepShape& shape, simt::Span<const float> gate,
                   simt::Span<const float> up, simt::Span<float> a, const Stamps& stamps) const = 0;
  /// h += d.
  virtual void add(simt::Device& device, const StepShape& shape, simt::Span<const float> d,
                   simt::Span<float> h, const Stamps& stamps) const = 0;

  /// The whole step in one launch. Stamps: a slot per layer and phase. `barriers`: without the barrier behind SwiGLU,
  /// down reads what is not written yet.
  virtual void persistent(simt::Device& device, const StepShape& shape, const ModelArrays& arrays,
                          const Stamps& stamps, bool barriers) const = 0;
  /// The same with a tape, which is never timed.
  virtual void persistent_noted(simt::Device& device, const StepShape& shape,
                                const ModelArrays& arrays, bool barriers,
                                const simt::Tape& tape) const = 0;
  /// Does nothing: what a launch costs.
  virtual void nothing(simt::Device& device, const Stamps& stamps) const = 0;
};

}  // namespace tilestep::launches
