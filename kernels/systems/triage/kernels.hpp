#pragma once

#include <cstdint>
#include <string>

#include "kernels/base/simt/resources.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/lessons.hpp"
#include "kernels/systems/triage/shape.hpp"

/// The kernels' interface for the lesson's driver; implemented by launch.cu, once per backend.
namespace tilestep::triage {

/// A launch as it was made, and what its kernel takes of a multiprocessor.
struct Launched {
  std::string kernel;
  unsigned blocks = 0, threads = 0;
  std::size_t shared_bytes = 0;
  simt::Resources takes = {};
};
/// What watches a launch: nothing, the device's clock, or counters and a tape. Empty spans: nothing.
struct Watch {
  simt::Span<unsigned long long> begins = {},
                                 ends = {};   ///< in ns; begins start at the largest number
  simt::Span<unsigned long long> bytes = {};  ///< what the launch asked memory for is added
  int slot = 0;
  simt::Tape tape = {};          ///< with `bytes`: loads of the first warp, at the site `slot`
  Launched* launched = nullptr;  ///< is told how it was launched
};

/// How weights lie in memory.
enum class Weights {
  packs,    ///< BF16, rows aligned to 16 bytes
  single,   ///< BF16, rows that begin anywhere
  columns,  ///< BF16, transposed: number (row, i) lies at i · rows + row
  floats,   ///< FP32
  bytes     ///< INT8 with a scale per row
};

/// Y = X · W^T for `tokens` rows of X, FP32: W is rows × k, its rows `pitch` numbers apart.
struct Product {
  int rows = 0, k = 0, pitch = 0, tokens = 1;
  bool adds = false;  ///< Y += …
};
struct ProductArrays {
  simt::Span<const std::uint16_t> w = {};
  simt::Span<const float> w_floats = {};
  simt::Span<const unsigned char> w_bytes = {};
  simt::Span<const float> scales = {};
  simt::Span<const float> x = {};  ///< tokens × k
  simt::Span<float> y = {};        ///< tokens × rows
};

struct AttentionArrays {
  simt::Span<const float> qkv;                   ///< rows × Shape::qkv()
  simt::Span<const std::uint16_t> keys, values;  ///< rows × context × Shape::cached()
  simt::Span<float> parts;                       ///< rows × heads × splits × (dim + 2)
};

struct ExpertArrays {
  simt::Span<const std::uint16_t> gate, up, down;  ///< kExperts matrices each
  simt::Span<const int> chosen;                    ///< the expert of each row
  simt::Span<const float> n;                       ///< rows × width
  simt::Span<float> a;                             ///< rows × inner
  simt::Span<float> d;                             ///< rows × width
};

class Kernels : public simt::KernelSet {
 public:
  /// h = the tokens' rows of the table.
  virtual void embed(simt::Device& device, const Shape& shape, simt::Span<const int> tokens,
                     simt::Span<const float> table, simt::Span<float> h,
                     const Watch& watch) const = 0;
  /// n = h · gain / √(mean of h² + ε), row by row; `quick`: by blocks of twice as many threads.
  virtual void norm(simt::Device& device, const Shape& shape, bool quick, simt::Span<const float> h,
                    simt::Span<const float> gain, simt::Span<float> n,
                    const Watch& watch) const = 0;
  /// The two halves of a norm for one row, as kernels of their own.
  virtual void squares(simt::Device& device, const Shape& shape, int row, simt::Span<const float> h,
                       simt::Span<float> inverse, const Watch& watch) const = 0;
  virtual void scale(simt::Device& device, const Shape& shape, int row, simt::Span<const float> h,
                     simt::Span<const float> gain, simt::Span<const float> inverse,
                     simt::Span<float> n, const Watch& watch) const = 0;
  /// h[row] += d[row] for one row, or for all if `row` is −1.
  virtual void add(simt::Device& device, const Shape& shape, int row, simt::Span<const float> d,
                   simt::Span<float> h, const Watch& watch) const = 0;

  /// `name`, a literal, names the launch. Throws Error for weights that do not lie as `weights` says.
  virtual void product(simt::Device& device, const char* name, Weights weights,
                       const Product& product, const ProductArrays& arrays,
                       const Watch& watch) const = 0;
  /// BF16 = INT8 · scale of its row, for rows × k numbers.
  virtual void dequant(simt::Device& device, int rows, int k, simt::Span<const unsigned char> from,
                       simt::Span<const float> scales, simt::Span<std::uint16_t> to,
                       const Watch& watch) const = 0;

  /// The step's keys and values go to the end of the cache.
  virtual void store(simt::Device& device, const Shape& shape, simt::Span<const float> qkv,
                     simt::Span<std::uint16_t> keys, simt::Span<std::uint16_t> values,
                     const Watch& watch) const = 0;
  /// Attention over splits of the context. `reads`: how often the cache is read, 1 or 2. `room`: bytes of shared memory that
  /// each block takes beyond its own.
  virtual void attend(simt::Device& device, const Shape& shape, int reads, int room,
                      const AttentionArrays& arrays, const Watch& watch) const = 0;
  virtual void merge(simt::Device& device, const Shape& shape, simt::Span<const float> parts,
                     simt::Span<float> attended, const Watch& watch) const = 0;

  /// The expert of each row: of those with room, the one with the largest score. `capacity`: rows that an expert takes.
  virtual void route(simt::Device& device, const Shape& shape, int capacity,
                     simt::Span<const float> n, simt::Span<const float> router,
                     simt::Span<const float> bias, simt::Span<int> chosen,
                     const Watch& watch) const = 0;
  virtual void up(simt::Device& device, const Shape& shape, const ExpertArrays& arrays,
                  const Watch& watch) const = 0;
  virtual void down(simt::Device& device, const Shape& shape, const ExpertArrays& arrays,
                    const Watch& watch) const = 0;

  /// The largest logit's number, for each row.
  virtual void sample(simt::Device& device, const Shape& shape, simt::Span<const float> logits,
                      simt::Span<int> sampled, const Watch& watch) const = 0;
  /// A copy, of a multiple of 8 numbers.
  virtual void move(simt::Device& device, simt::Span<const std::uint16_t> from,
                    simt::Span<std::uint16_t> to, const Watch& watch) const = 0;
};

}  // namespace tilestep::triage
