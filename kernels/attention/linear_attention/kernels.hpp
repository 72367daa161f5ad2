#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/base/lab/names.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/lessons.hpp"

/// The kernels' interface for the lesson's driver; implemented by launch.cu, once per backend.
namespace tilestep::linear_attention {

/// The map φ of queries and keys, whose products stand for exp(q·k).
enum class Feature {
  elu,   ///< x + 1 above 0, exp(x) below: Katharopoulos et al., 2020 (arXiv:2006.16236)
  relu,  ///< max(x, 0)
  random,  ///< exp(ω·x − |x|²/2), ω drawn at random: Choromanski et al., 2020 (arXiv:2009.14794)
  none     ///< x itself
};
constexpr auto names_of(Feature) {
  return std::to_array<std::string_view>({"elu", "relu", "random", "none"});
}

/// What a token does to the state S of a head, with its key k (mapped) and its value v.
enum class Rule {
  sum,         ///< S + k v^T
  gate,        ///< α S + k v^T
  delta,       ///< S − β k (S^Tk − v)^T: Schlag et al., 2021 (arXiv:2102.11174)
  gated_delta  ///< the same of α S: Yang et al., 2024 (arXiv:2412.06464)
};
constexpr auto names_of(Rule) {
  return std::to_array<std::string_view>({"sum", "gate", "delta", "gated-delta"});
}
constexpr bool gates(Rule rule) {
  return rule == Rule::gate || rule == Rule::gated_delta;
}
constexpr bool corrects(Rule rule) {
  return rule == Rule::delta || rule == Rule::gated_delta;
}

/// An error made on purpose in an explained run of the chunked kernels.
enum class Break {
  none,
  no_decay,       ///< a chunk hands its state on without the decay of its tokens
  stale_state,    ///< a chunk begins with the state that the chunk before it began with
  unmasked_chunk  ///< a token sees later ones of its chunk
};
constexpr auto names_of(Break) {
  return std::to_array<std::string_view>({"none", "no-decay", "stale-state", "unmasked-chunk"});
}

/// Heads of `tokens` tokens. Keys and values have `dim` numbers each, in BF16.
struct Shape {
  int tokens = 0;
  int heads = 1;
  int dim = 16;  ///< 16, 32, 64 or 128
  Rule rule = Rule::sum;
  int chunk = 16;  ///< 16, 32, 64 or, without the delta rule, 128
};
constexpr int chunks_of(const Shape& shape) {
  return (shape.tokens + shape.chunk - 1) / shape.chunk;
}
/// The rows and columns of a state that an explained run shows, and the keys that it asks for.
inline constexpr int kShown = 16, kMostProbes = 8;

/// On the device, row-major; what a rule does not use may be empty.
struct Arrays {
  simt::Span<const std::uint16_t> q, k, v;  ///< [heads × tokens × dim]; q and k are mapped
  simt::Span<const float> log_gates;        ///< [heads × tokens], ln α ≤ 0
  simt::Span<const float> betas;            ///< [heads × tokens], 0 … 1
  simt::Span<std::uint16_t> o;              ///< [heads × tokens × dim]
  /// Of each head when all tokens have been added: [heads × dim × dim], keys' numbers down, values' across.
  simt::Span<float> state;

  // Between the launches of the chunked kernels.
  simt::Span<float> decays;          ///< [heads × tokens]: ln of all gates of the chunk so far
  simt::Span<std::uint16_t> states;  ///< [heads × chunks × dim × dim], as each chunk begins
  simt::Span<std::uint16_t> values, readers;  ///< [heads × tokens × dim], of the delta rule
};

/// Sites of explained launches' tapes.
enum Site : std::uint32_t {
  kExact,        ///< per key: softmax's weight
  kApproximate,  ///< per key: φ(q)·φ(k), as a share
  kAnswer,       ///< 3 × dim: softmax's, weights first, state first
  kState,        ///< per token: kShown × kShown of S
  kBefore,       ///< per token: kShown numbers of what S held for its key
  kProbe,        ///< per token and probe: kShown numbers of what S holds for that key
  kProduct,      ///< per token: chunk numbers of the masked product
  kHanded,       ///< per chunk: kShown × kShown of the state that it began with
  kInter,        ///< per token: kShown numbers of what the state gave
  kOut           ///< per token: kShown numbers of the output
};

/// φ of rows of numbers.
struct FeatureShape {
  int rows = 0, dim = 16;
  Feature feature = Feature::elu;
  bool unit = false;  ///< whether rows are scaled to length 1, as the delta rule needs
};
/// In a row's length, beside the sum of squares.
inline constexpr float kTiny = 1e-6f;

/// One query, the last token's, against all keys.
struct WeightsArrays {
  simt::Span<const std::uint16_t> q, k, mapped_q, mapped_k, v;  ///< [dim] and [tokens × dim]
  simt::Span<float> answers;                                    ///< [3 × dim]
};
/// Mapped keys whose values an explained recurrence reads after each token: [count × dim].
struct Probes {
  simt::Span<const std::uint16_t> keys;
  int count = 0;
};

/// Launches are asynchronous. Throw Error for a shape that is not allowed.
class Kernels : public simt::KernelSet {
 public:
  /// out = φ(x); `omega` [dim × dim] is what `random` needs.
  virtual void features(simt::Device& device, const FeatureShape& shape,
                        simt::Span<const std::uint16_t> x, simt::Span<const float> omega,
                        simt::Span<std::uint16_t> out) const = 0;
  /// Recorded: exact and approximate weights, and the answers in both orders of multiplication.
  virtual void weights(simt::Device& device, const Shape& shape, const WeightsArrays& arrays,
                       const simt::Tape& tape) const = 0;
  /// Token by token. `resume`: from arrays.state on, and not from zeros. An empty tape records nothing.
  virtual void recurrent(simt::Device& device, const Shape& shape, const Arrays& arrays,
                         bool resume, const Probes& probes, const simt::Tape& tape) const = 0;
  /// Chunk by chunk, in two to four launches. An empty tape records nothing, and nothing is broken.
  virtual void chunked(simt::Device& device, const Shape& shape, const Arrays& arrays, Break broken,
                       const simt::Tape& tape) const = 0;
};

}  // namespace tilestep::linear_attention
