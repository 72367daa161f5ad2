#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/base/lab/names.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/lessons.hpp"

/// The kernels' interface for the lesson's driver; implemented by launch.cu, once per backend.
namespace tilestep::positions {

/// Which two of a head's numbers turn together: i and its neighbour, or i and i + dim / 2.
enum class Pairs { interleaved, half_split };
constexpr auto names_of(Pairs) {
  return std::to_array<std::string_view>({"interleaved", "half-split"});
}
/// The index of a pair's first or second number.
constexpr int number_of(Pairs pairs, int dim, int pair, int which) {
  return pairs == Pairs::interleaved ? 2 * pair + which : pair + which * (dim / 2);
}
/// The pair that a number belongs to.
constexpr int pair_with(Pairs pairs, int dim, int number) {
  return pairs == Pairs::interleaved ? number / 2 : number % (dim / 2);
}

/// An error made on purpose in an explained run.
enum class Break {
  none,
  swapped_pairs,        ///< keys are turned in the other layout than queries
  rotate_values,        ///< values are turned too
  position_off_by_one,  ///< tokens after a cache hit count from the hit's last token, not from the next
  fp16_angles           ///< positions, rates and their products are FP16
};
constexpr auto names_of(Break) {
  return std::to_array<std::string_view>(
      {"none", "swapped-pairs", "rotate-values", "position-off-by-one", "fp16-angles"});
}

/// What a launch does with the heads of its tokens. The last four are what the first replaces.
enum class Stage {
  fused,         ///< queries and keys are normed and turned, keys and values stored in the cache
  norm_queries,  ///< the other stages: a launch each
  norm_keys,
  rotate,  ///< queries and keys, in place
  store    ///< keys and values, into the cache
};
constexpr auto names_of(Stage) {
  return std::to_array<std::string_view>({"fused", "norm q", "norm k", "rotate", "store"});
}

/// Tokens with so many heads. Numbers are BF16.
struct HeadsShape {
  int tokens = 0;
  int heads = 1, kv_heads = 1;
  int dim = 128;  ///< 16, 32, 64, 128 or 256
  int page_size = 16;
  Pairs pairs = Pairs::half_split;
  float size = 1;     ///< of turned numbers: size_of
  int rows_each = 2;  ///< heads that a thread holds at once: 1, 2, 3 or 4
  int threads = 128;  ///< of a block: 64, 128, 256, 512
  bool early =
      false;  ///< whether the launch may begin before the one ahead of it has ended (Hopper)
};
constexpr int rows_of(const HeadsShape& shape) {
  return shape.heads + 2 * shape.kv_heads;
}
/// A thread has two packs of eight numbers of a head.
inline constexpr int kNumbersEach = 16;

/// On the device, row-major.
struct HeadsArrays {
  simt::Span<const std::uint16_t> qkv;         ///< [tokens × (heads + 2·kv_heads) × dim]
  simt::Span<std::uint16_t> q;                 ///< [tokens × heads × dim]
  simt::Span<std::uint16_t> keys;              ///< [tokens × kv_heads × dim]: between launches
  simt::Span<std::uint16_t> k_cache, v_cache;  ///< [pages × kv_heads × page_size × dim]
  simt::Span<const std::uint16_t> q_gain, k_gain;  ///< [dim], of the norms
  simt::Span<const int> positions;                 ///< [tokens]
  simt::Span<const int> slots;  ///< [tokens]: page · page_size + place; below 0: not stored
  simt::Span<const std::uint64_t> rates;  ///< [dim / 2]: rates_of
};
/// In the norm, beside the mean of the squares.
inline constexpr float kEpsilon = 1e-6f;
inline constexpr int kMostPosition = 1 << 20;

/// Sites of an explained launch's tape.
enum Site : std::uint32_t { kQkv, kQ, kKeys, kKCache, kVCache, kNormed, kTerm };

/// The query of one head against keys in the cache.
struct ScoresShape {
  int keys = 0;
  int kv_heads = 1, kv_head = 0;
  int dim = 128, page_size = 16;
  Pairs pairs = Pairs::half_split;
  float scale = 1;   ///< 1 / √dim
  float slope = 0;   ///< what a score loses per token of distance
  int position = 0;  ///< of the query
};
struct ScoresArrays {
  simt::Span<const std::uint16_t> q;  ///< [dim]
  simt::Span<const std::uint16_t> k_cache;
  simt::Span<const int> positions, slots;  ///< [keys]
  simt::Span<float> scores;                ///< [keys]
};

class Kernels : public simt::KernelSet {
 public:
  /// One launch over all tokens. Asynchronous. Throws Error for a shape that is not allowed.
  virtual void heads(simt::Device& device, Stage stage, const HeadsShape& shape,
                     const HeadsArrays& arrays) const = 0;
  /// The same, recorded: accesses, and of the last token the normed query and key of the first head.
  virtual void explained_heads(simt::Device& device, Stage stage, const HeadsShape& shape,
                               const HeadsArrays& arrays, Break broken,
                               const simt::Tape& tape) const = 0;
  /// scores[key] = scale · q·k − slope · distance; a tape gets the terms of the pairs. Asynchronous.
  virtual void scores(simt::Device& device, const ScoresShape& shape, const ScoresArrays& arrays,
                      const simt::Tape& tape) const = 0;
  /// A kernel that does nothing: the least that a launch takes.
  virtual void nothing(simt::Device& device) const = 0;
};

}  // namespace tilestep::positions
