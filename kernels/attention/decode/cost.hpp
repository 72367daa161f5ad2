#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kernels/attention/decode/params.hpp"

/// \file
/// What decoding costs, by formula: bytes of the cache, floating-point operations, and what a GPU makes of both.
namespace tilestep::decode {

/// An attention layer as its cache sees it.
struct LayerShape {
  Scheme scheme = Scheme::gqa;
  int heads = 32;
  int cached_heads = 8;  ///< that have keys and values in the cache
  RowShape row;
};
LayerShape layer_shape(const Params& params);

/// Bytes that one token takes in the cache of one layer, without scales: cached heads × numbers stored × bits / 8.
double token_bytes(const LayerShape& layer, KvType type);
/// Bytes of the scales of one token: FP32, one for K and one for V of each head; with scales by channel V's alone.
double scale_bytes(const LayerShape& layer, KvType type, Scales scales);
/// Multiplications and additions for one token that a query of each head attends to: 2 · (key + value) a head.
double token_flops(const LayerShape& layer);
/// Floating-point operations for each byte of the cache that is read.
double intensity(const LayerShape& layer, KvType type, Scales scales);

/// NVIDIA's H200 SXM data sheet, 2023: dense BF16 and memory.
inline constexpr double kPeakFlops = 989e12;
inline constexpr double kPeakBytes = 4.8e12;
inline constexpr int kMultiprocessors = 132;
/// Where both roofs meet, FLOP a byte: left of it memory is the limit.
inline constexpr double kRidge = kPeakFlops / kPeakBytes;
/// The lower of both roofs, FLOP/s.
double roof_at(double flop_per_byte);

/// A published model's attention.
struct Model {
  std::string_view name;
  std::string_view source;
  int layers;
  LayerShape layer;
  double
      weights;  ///< parameters that a step reads; 0: a mixture of experts, where that hangs on the batch
};
std::span<const Model> models();
/// Bytes of the cache of one token, all layers.
double token_bytes(const Model& model, KvType type);

/// The tokens that a step of `batch` requests reads weigh as much as the weights of `weight_bytes` from this batch on.
double crossing_batch(double weight_bytes, double bytes_per_token, double context);

/// The model that stands for weights: 8.03 billion parameters in BF16, 32 layers, 32 heads of 128 (Llama 3.1 8B).
inline constexpr double kModelWeightBytes = 2 * 8.03e9;
inline constexpr int kModelLayers = 32;
/// The same layer with each scheme's cache.
LayerShape model_layer(Scheme scheme);

/// Attention of `rows` query rows of one request to `context` tokens: bytes with K and V fetched from memory once, since
/// blocks that need the same keys meet in L2, and operations. Of mla prefill is not absorbed: each head has keys of
/// head_dim + rope and values of head_dim.
struct Phase {
  double bytes = 0, flops = 0;
  double intensity() const { return bytes > 0 ? flops / bytes : 0; }
};
Phase attention_of(const LayerShape& layer, int rows, double context);

/// Blocks of a launch with so many splits, and how many waves of multiprocessors they make.
struct Occupancy {
  int blocks = 0, waves = 0;
  double busy = 0;  ///< share of the multiprocessors' time, of blocks that all take as long
};
Occupancy occupancy_of(int batch, int cached_heads, int splits);
/// The fewest splits whose last wave is at least nine tenths full, of those that leave each at least a page.
int filling_splits(int batch, int cached_heads, int pages_a_request);

}  // namespace tilestep::decode
