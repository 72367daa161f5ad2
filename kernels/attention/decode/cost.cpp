#include "kernels/attention/decode/cost.hpp"

#include <algorithm>
#include <cmath>

namespace tilestep::decode {
namespace {

constexpr int kBytes16 = 2;

constexpr RowShape kRows128{128, 128, 256, 0, 0};
constexpr RowShape kLatentRows{576, 512, 576, 512, 64};

constexpr Model kModels[] = {
    {"Llama 2 7B", "Touvron et al., 2023", 32, {Scheme::mha, 32, 32, kRows128}},
    {"Llama 3.1 8B", "Grattafiori et al., 2024", 32, {Scheme::gqa, 32, 8, kRows128}},
    {"Llama 3.1 70B", "Grattafiori et al., 2024", 80, {Scheme::gqa, 64, 8, kRows128}},
    {"Falcon 7B", "Almazrouei et al., 2023", 32, {Scheme::mqa, 71, 1, {64, 64, 128, 0, 0}}},
    {"DeepSeek-V3", "DeepSeek-AI, 2024", 61, {Scheme::mla, 128, 1, kLatentRows}},
    // What its 128 heads would store without the latent row: keys of 128 + 64 and values of 128.
    {"DeepSeek-V3 with mha", "by formula", 61, {Scheme::mha, 128, 128, {192, 128, 320, 0, 0}}},
};

}  // namespace

double token_flops(const LayerShape& layer) {
  return 2.0 * layer.heads * (layer.row.key + layer.row.value);
}

double intensity(const LayerShape& layer, KvType type, Scales scales) {
  return token_flops(layer) / (token_bytes(layer, type) + scale_bytes(layer, type, scales));
}

double roof_at(double flop_per_byte) {
  return std::min(kPeakFlops, flop_per_byte * kPeakBytes);
}

std::span<const Model> models() {
  return kModels;
}

double token_bytes(const Model& model, KvType type) {
  return model.layers * token_bytes(model.layer, type);
}

double crossing_batch(double weight_bytes, double bytes_per_token, double context) {
  const double each = bytes_per_token * context;
  return each > 0 ? weight_bytes / each : HUGE_VAL;
}

LayerShape model_layer(Scheme scheme) {
  switch (scheme) {
    case Scheme::mha:
      return {scheme, 32, 32, kRows128};
    case Scheme::gqa:
      return {scheme, 32, 8, kRows128};
    case Scheme::mqa:
      return {scheme, 32, 1, kRows128};
    case Scheme::mla:
      break;
  }
  return {scheme, 32, 1, kLatentRows};
}

int model_context(const Params& params) {
  return std::max(params.context, kRealContext);
}

int model_batch(const Params& params) {
  return std::max(params.batch, kRealBatch);
}

double model_token_bytes(const Params& params, Scheme scheme) {
  const KvType type = scheme == Scheme::mla ? KvType::bf16 : params.kv_dtype;
  return kModelLayers * token_bytes(model_layer(scheme), type);
}

double Phase::seconds() const {
  return std::max(flops / kPeakFlops, bytes / kPeakBytes);
}

Phase attention_of(const LayerShape& layer, int rows, double context) {
  RowShape row = layer.row;
  int cached = layer.cached_heads;
  // From a few rows on it is cheaper to make each head's own keys and values than to multiply by latent rows.
  if (layer.scheme == Scheme::mla && rows > 1) {
    const int head_dim = row.latent / 4;
    row = {head_dim + row.rope, head_dim, 2 * head_dim + row.rope, 0, 0};
    cached = layer.heads;
  }
  Phase phase;
  phase.flops = 2.0 * layer.heads * rows * context * (row.key + row.value);
  phase.bytes = kBytes16 * (cached * context * row.stored +
                            static_cast<double>(rows) * layer.heads * (row.key + row.value));
  return phase;
}

MixedStep mixed_step(const Params& params, int rows) {
  const int batch = model_batch(params), context = model_context(params);
  const LayerShape layer = model_layer(params.scheme);
  const Phase weights{kModelWeightBytes, 2 * kModelWeights * (batch + rows)};
  const double tokens = static_cast<double>(batch) * context;
  const Phase cache{tokens * model_token_bytes(params, params.scheme),
                    tokens * kModelLayers * token_flops(layer)};
  return {weights.seconds(), cache.seconds(),
          kModelLayers * attention_of(layer, rows, context).seconds()};
}

}  // namespace tilestep::decode
