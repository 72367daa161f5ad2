#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/attention/decode/params.hpp"

/// \file
/// The cost of decoding by formula: bytes of cache, floating-point operations, and a GPU's time for both.
namespace tilestep::decode {

/// Floating-point operations per token that a query of each head attends to: 2 · (key + value) per head.
double token_flops(const LayerShape& layer);
/// Floating-point operations per byte of cache read.
double intensity(const LayerShape& layer, KvType type, Scales scales);

/// NVIDIA's H200 SXM data sheet, 2023: dense BF16 and memory.
inline constexpr double kPeakFlops = 989e12;
inline constexpr double kPeakBytes = 4.8e12;
/// The ridge point, FLOP per byte: left of it memory is the limit.
inline constexpr double kRidge = kPeakFlops / kPeakBytes;
/// The lower of both roofs, FLOP/s.
double roof_at(double flop_per_byte);

/// A published model's attention.
struct Model {
  std::string_view name;
  std::string_view source;
  int layers;
  LayerShape layer;
};
std::span<const Model> models();
using kv_cache::token_bytes;
/// Bytes of the cache of one token, all layers.
double token_bytes(const Model& model, KvType type);

/// The batch from which on a step reads at least as many bytes of cache as weights.
double crossing_batch(double weight_bytes, double bytes_per_token, double context);

/// The model that stands for weights: 8.03 billion parameters in BF16, 32 layers, 32 heads of 128 (Llama 3.1 8B).
inline constexpr int kModelLayers = 32;
inline constexpr double kModelWeights = 8.03e9;
inline constexpr double kModelWeightBytes = 2 * kModelWeights;
/// The same layer with each scheme's cache.
LayerShape model_layer(Scheme scheme);
/// Tokens per request and requests per batch of the model's step that is shown: the knobs', or these where the knobs
/// are smaller.
inline constexpr int kRealContext = 8192;
inline constexpr int kRealBatch = 32;
int model_context(const Params& params);
int model_batch(const Params& params);
/// Bytes of the model's cache of one token, all layers, in the knobs' format without scales; for mla in 16 bits.
double model_token_bytes(const Params& params, Scheme scheme);

/// Attention of `rows` query rows of one request to `context` tokens: operations, and bytes with K and V fetched from
/// memory once, since blocks that need the same keys share them in L2. mla's prefill is not absorbed: each head has
/// keys of head_dim + rope and values of head_dim.
struct Phase {
  double bytes = 0, flops = 0;
  double intensity() const { return bytes > 0 ? flops / bytes : 0; }
  /// At an H200's roofs, by its data sheet: the longer of the two.
  double seconds() const;
};
Phase attention_of(const LayerShape& layer, int rows, double context);
/// Query rows for which the same attention is shown: a decoding request has one, a prompt up to the last number.
inline constexpr std::array<int, 6> kRows{1, 64, 256, 512, 1024, 4096};

/// A step of the model in which model_batch() requests decode and `rows` rows of a prompt ride along: Agrawal et al.,
/// "Sarathi-Serve", 2024 (arXiv:2403.02310). Seconds at an H200's roofs, by its data sheet, one part after another.
struct MixedStep {
  double weights = 0;  ///< all weights, read once and multiplied by all rows
  double cache = 0;    ///< attention of the decoding requests
  double chunk = 0;    ///< attention of the prompt's rows to the context before and among them
  double seconds() const { return weights + cache + chunk; }
};
MixedStep mixed_step(const Params& params, int rows);
/// The rows that are multiplied by the weights in the time it takes to read the weights.
inline constexpr double kFreeRows = kRidge;

}  // namespace tilestep::decode
