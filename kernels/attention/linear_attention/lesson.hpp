#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/attention/linear_attention/kernels.hpp"

/// The lesson on linear attention: a product of mapped queries and keys stands for softmax's exponential, so that all
/// keys and values so far add up in one matrix, the state. It is written token by token, by one of four rules, and then
/// chunk by chunk.
namespace tilestep::linear_attention {

inline constexpr std::string_view kSourcePath = "kernels/attention/linear_attention/recurrent.cu";
inline constexpr std::string_view kWeightsPath = "kernels/attention/linear_attention/weights.cu";
inline constexpr std::string_view kChunkedPath = "kernels/attention/linear_attention/chunked.cu";

struct Params {
  Feature feature = Feature::none;
  Rule rule = Rule::sum;
  int chunk_choice = 0;  ///< 16 << chunk_choice tokens
  double gate = 0.9;     ///< the mean decay of the state per token
  double beta = 1;       ///< the part of what is new that the delta rule writes
  int dim_choice = 0;    ///< 16 << dim_choice numbers of a key and of a value
  int context = 40;      ///< tokens
  int repeat = 4;        ///< keys, which come in turn
  Break broken = Break::none;
  std::int64_t seed = 1;

  int dim() const { return 16 << dim_choice; }
  int chunk() const { return 16 << chunk_choice; }
  Shape shape() const { return {context, 1, dim(), rule, chunk()}; }
  FeatureShape features(int rows) const { return {rows, dim(), feature, corrects(rule)}; }
};
inline constexpr int kLeastContext = 17, kMostContext = 96;
const lab::KnobTable<Params>& knob_table();

enum class Phase { before, after };
constexpr auto names_of(Phase) {
  return std::to_array<std::string_view>({"before", "after"});
}

/// What went wrong in a broken run.
struct BrokenResult {
  std::string outcome;  ///< empty: nothing was broken
  int wrong = 0;        ///< numbers of the output
  bool operator==(const BrokenResult&) const = default;
};

/// Rows and columns beyond kShown are left out; head 0.
struct Trace {
  Feature feature = Feature::elu;
  Rule rule = Rule::sum;
  Break broken = Break::none;
  int dim = 16, tokens = 40, chunk = 16, repeats = 4;
  double gate = 1, beta = 1;
  std::vector<float> keys, values;  ///< tokens × kShown, the keys mapped
  // The last token's query against all keys.
  std::vector<float> exact, approximate;                ///< tokens: shares of all weights
  std::vector<float> by_softmax, by_weights, by_state;  ///< kShown numbers of the answer
  // Token by token.
  std::vector<float> states;  ///< tokens × kShown × kShown: S after each token
  std::vector<float> before;  ///< tokens × kShown: what S held for the token's key before it
  std::vector<float> held;    ///< tokens × repeats × kShown: what S holds for each key after it
  std::vector<float> out;     ///< tokens × kShown
  // Chunk by chunk.
  std::vector<float> products;          ///< tokens × chunk: the masked product's rows
  std::vector<float> handed;            ///< chunks × kShown × kShown: S as each chunk begins
  std::vector<float> inter, chunk_out;  ///< tokens × kShown: what S says of the output, and all
  std::vector<int> wrong;               ///< tokens: how many shown numbers of the output are wrong
  BrokenResult result;

  int chunks() const { return (tokens + chunk - 1) / chunk; }
  int key_of(int token) const { return token % repeats; }
  // The picture's steps: one for the weights, one per token, one per chunk, one for lengths.
  int step_of_token(int token) const { return token + 2; }
  int step_of_chunk(int number) const { return tokens + 2 + number; }
  int length() const { return tokens + chunks() + 2; }

  float at(const std::vector<float>& list, int row, int column) const {
    return list[static_cast<std::size_t>(row * kShown + column)];
  }
  /// The last token up to `token` that has a key; −1: none.
  int newest(int token, int key) const;
  /// How much of the newest value of `key` is in what the state holds for it after `token`: 1, all of it.
  double strength(int token, int key) const;
  /// How far what the state holds is from that value, relative to the value's length.
  double off(int token, int key) const;
  /// The same before `token` was written, of its own key.
  double strength_before(int token) const;
  bool operator==(const Trace& other) const;
};

/// What attention keeps and does for a token at a length, by formula. Bytes and FLOPs of one head.
double cache_bytes(int dim, double length);
double state_bytes(int dim);
double softmax_flops(int dim, double length);
double state_flops(int dim);

std::vector<lab::Table> tables_of(const Trace& trace);

}  // namespace tilestep::linear_attention
