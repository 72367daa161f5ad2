#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "kernels/base/lab/names.hpp"
#include "kernels/base/simt/cuda/cublas.hpp"
#include "kernels/base/simt/ranks.hpp"
#include "kernels/lessons.hpp"

/// The kernels' interface for the lesson's driver; implemented by launch.cu, once per backend.
namespace tilestep::parallelism {

using simt::kMostRanks;

constexpr std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

/// What ranks do together.
enum class Op {
  all_reduce,      ///< each rank gets the sum of all
  reduce_scatter,  ///< each gets a part of the sum
  all_gather,      ///< each gets the parts of all
  all_to_all,      ///< each gets its block of every rank
  pass             ///< numbers go from one rank to another
};
constexpr auto names_of(Op) {
  return std::to_array<std::string_view>(
      {"all-reduce", "reduce-scatter", "all-gather", "all-to-all", "send"});
}
/// How an all-reduce goes.
enum class Algorithm { ring, tree, one_shot };
constexpr auto names_of(Algorithm) {
  return std::to_array<std::string_view>({"ring", "tree", "one-shot"});
}
/// A mistake made on purpose in an explained run.
enum class Break {
  none,
  missing_all_reduce,  ///< the ranks go on with what is their own
  sum_twice,           ///< rank 0 adds its own numbers twice
  wrong_order,         ///< rank 0 makes two calls in another order than the rest
  stale_gather         ///< nobody waits for the parts that it gathers
};
constexpr auto names_of(Break) {
  return std::to_array<std::string_view>(
      {"none", "missing-all-reduce", "sum-twice", "wrong-order", "stale-gather"});
}

/// FP32 numbers of a pack, what a thread moves at a time; or so many of BF16.
inline constexpr int kPack = 4, kBf16Pack = 8;

/// A call as one rank makes it. Numbers lie in units of `unit` packs, and rank c's part begins at unit c · units / ranks.
struct CallShape {
  Op op = Op::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  int rank = 0, ranks = 1;
  int units = 0, unit = 1;
  int blocks = 1, threads = 32;
  Break broken = Break::none;
  int to = -1, from = -1;  ///< of `pass`; −1: nobody
  bool bf16 = false;       ///< what is added is BF16: a ring without a tape
  bool eager = false;  ///< `pass` does not ask whether the numbers may come: nothing stands there
  /// Of `all_to_all`: units from rank to rank; a block begins every `slot` units.
  std::array<std::array<int, kMostRanks>, kMostRanks> counts = {};
  int slot = 0;

  std::int64_t packs() const { return std::int64_t{units} * unit; }
};
/// The first unit of a rank's part.
constexpr int part_begin(int units, int ranks, int rank) {
  return static_cast<int>(std::int64_t{units} * rank / ranks);
}
/// Levels of a tree of so many ranks.
constexpr int levels_of(int ranks) {
  int levels = 0;
  while ((1 << levels) < ranks) ++levels;
  return levels;
}
/// Beats of an all-reduce: what happens at the same time in all ranks that nothing delays.
constexpr int beats_of(Algorithm algorithm, int ranks) {
  return algorithm == Algorithm::ring   ? 2 * (ranks - 1)
         : algorithm == Algorithm::tree ? 2 * levels_of(ranks)
                                        : 1;
}
/// Packs that a rank needs for what others leave there.
inline std::int64_t room_of(const CallShape& shape) {
  if (shape.op == Op::reduce_scatter) return shape.packs();
  if (shape.op != Op::all_reduce) return 0;
  switch (shape.algorithm) {
    case Algorithm::ring:
      return shape.packs();
    case Algorithm::tree:
      return levels_of(shape.ranks) * shape.packs();
    default:
      return 2 * shape.ranks * shape.packs();
  }
}

/// The arrays of a call; those with one per rank are each in that rank's memory.
struct CallArrays {
  simt::Span<const float> in;  ///< all numbers; of `all_gather`: the rank's part
  std::array<simt::Span<float>, kMostRanks>
      out;  ///< of `reduce_scatter` only the rank's part is written
  std::array<simt::Span<float>, kMostRanks> room;  ///< room_of
  std::array<simt::Span<unsigned>, kMostRanks>
      flags;                    ///< blocks × ranks, zeros before the first call
  simt::Span<unsigned> epochs;  ///< blocks, zeros before the first call
};

/// Tape sites. An access to memory of rank r has kRoom or kOut plus r.
enum Site : std::uint32_t { kIn, kRoom = 8, kOut = 16, kEvent = 24 };

/// A note: something that a rank has done in an all-reduce. Its index is its place among the rank's.
struct Event {
  std::int16_t beat = 0;
  std::int8_t sent = 0;   ///< 1: sent to `peer`; 0: has now got what `peer` sent
  std::int8_t chunk = 0;  ///< −1: all of them
  std::int32_t peer = 0;  ///< −1: all others
  float value = 0;        ///< the first of its numbers, as sent or as it is now
  float unused = 0;
};

/// C = op(A) · op(B), or C += it: m × n from m × k and k × n, or turned. Rows are `lda`, `ldb`, `ldc` numbers apart.
struct Product {
  int m = 0, n = 0, k = 0;
  int lda = 0, ldb = 0, ldc = 0;
  bool turn_a = false, turn_b = false, adds = false;
};
/// Causal attention of query rows on key rows, whose places in the sequence are q_at and k_at. Heads are side by side.
inline constexpr int kLongest = 1024;  ///< a place is sequence · kLongest + position
struct AttendShape {
  int queries = 0, keys = 0, heads = 0, dim = 0;
};
struct AttendArrays {
  simt::Span<const float> q, k, v;
  simt::Span<const int> q_at, k_at;
  simt::Span<float> o, m,
      l;  ///< merged into: the weighted sum, the largest score, the sum of weights; m −∞: nothing yet
  // Backward.
  simt::Span<const float> d_o,
      delta;  ///< gradient of the output; its product with the output, by row and head
  simt::Span<float> d_q, d_k, d_v;  ///< added to
};
/// Steps that go number by number.
enum class Each {
  add,        ///< a += b
  relu,       ///< a = max(b, 0)
  relu_back,  ///< a = 0 where b ≤ 0
  copy,       ///< a = b
  fill        ///< a = value
};

struct ComingShape;
struct ComingArrays;

inline constexpr float kRate = 1e-3f, kAdamEpsilon = 1e-2f;

struct Kernels : simt::KernelSet {
  /// The ranks for a device: GPUs where there are enough, otherwise streams of one; emulated ones under emulation.
  virtual std::unique_ptr<simt::Ranks> make_ranks(simt::Device& device, int count,
                                                  std::uint64_t seed,
                                                  simt::ThreadOrder order) const = 0;
  /// GPUs of this machine; 2 under emulation.
  virtual int gpus() const = 0;
  virtual void call(simt::Ranks& ranks, int number, const CallShape& shape,
                    const CallArrays& arrays, const simt::Tape& tape) const = 0;
  virtual void multiply(simt::Ranks& ranks, int rank, const Product& shape,
                        simt::Span<const float> a, simt::Span<const float> b,
                        simt::Span<float> c) const = 0;
  /// The same in BF16, with sums in FP32: by cuBLAS, or where it is not by a thread for each number.
  virtual void multiply_bf16(simt::Ranks& ranks, int rank, const Product& shape,
                             simt::Span<const std::uint16_t> a, simt::Span<const std::uint16_t> b,
                             simt::Span<std::uint16_t> c) const = 0;
  /// A product that begins before all rows of A are there: gather/gather.hpp. Only a Hopper GPU has it, and the emulation.
  virtual bool multiplies_coming(simt::Device& device) const = 0;
  virtual void multiply_coming(simt::Ranks& ranks, int rank, const ComingShape& shape,
                               const ComingArrays& arrays) const = 0;
  virtual simt::LibraryStatus library() const = 0;  ///< that multiply_bf16 uses
  virtual void attend(simt::Ranks& ranks, int rank, const AttendShape& shape,
                      const AttendArrays& arrays) const = 0;
  /// o /= l, once all keys are merged.
  virtual void finish(simt::Ranks& ranks, int rank, const AttendShape& shape,
                      const AttendArrays& arrays) const = 0;
  /// delta of a backward pass, from d_o and o.
  virtual void products_of_rows(simt::Ranks& ranks, int rank, const AttendShape& shape,
                                simt::Span<const float> d_o, simt::Span<const float> o,
                                simt::Span<float> delta) const = 0;
  virtual void attend_back(simt::Ranks& ranks, int rank, const AttendShape& shape,
                           const AttendArrays& arrays) const = 0;
  virtual void each(simt::Ranks& ranks, int rank, Each what, simt::Span<float> a,
                    simt::Span<const float> b, float value) const = 0;
  /// A first step of Adam, from moments of zero: weights −= kRate · gradient / (|gradient| + kAdamEpsilon).
  virtual void adam(simt::Ranks& ranks, int rank, simt::Span<float> weights,
                    simt::Span<const float> gradients, simt::Span<float> moments) const = 0;
  /// to[i] = from[rows[i]], or to[rows[i]] = from[i]: rows of `width` numbers.
  virtual void take_rows(simt::Ranks& ranks, int rank, int width, simt::Span<const int> rows,
                         bool back, simt::Span<const float> from, simt::Span<float> to) const = 0;
};

}  // namespace tilestep::parallelism
