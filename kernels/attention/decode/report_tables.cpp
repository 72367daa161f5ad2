// Tables by formula: what the cache of real models weighs, what batches, splits, pages and formats come to.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/attention/decode/run.hpp"

namespace tilestep::decode {
namespace {

using lab::real, lab::whole;

constexpr double kKibi = 1024;
constexpr double kGiga = 1e9;

/// The scheme with the knobs' heads; mla with theirs.
LayerShape with_scheme(const Params& params, Scheme scheme) {
  Params other = params;
  other.scheme = scheme;
  return layer_shape(other);
}

}  // namespace

lab::Table schemes_table(const Params& params) {
  lab::Table table{
      "schemes",
      "The same query heads with each scheme's cache, in 16 bits",
      {"scheme", whole("cached_heads", "K/V heads"), whole("stored", "numbers a head and token"),
       whole("bytes", "bytes a token and layer", "B"), real("less", "of mha's", "%", 1),
       real("intensity", "", "FLOP/B", 1), lab::column("limit", "what limits it")}};
  const double mha = token_bytes(with_scheme(params, Scheme::mha), KvType::bf16);
  for (const Scheme scheme : all_of<Scheme>()) {
    const LayerShape layer = with_scheme(params, scheme);
    const double bytes = token_bytes(layer, KvType::bf16);
    const double point = intensity(layer, KvType::bf16, Scales::token);
    table.add({scheme, layer.cached_heads, layer.row.stored, bytes, 100 * bytes / mha, point,
               point < kRidge ? "memory" : "arithmetic"});
  }
  return table;
}

lab::Table models_table() {
  lab::Table table{
      "models",
      "Cache of published models: layers · K/V heads · numbers a head and token · 2 bytes",
      {"model", "scheme", whole("layers"), whole("cached_heads", "K/V heads"),
       whole("stored", "numbers a head and token"), real("kib", "cache a token", "KiB", 1),
       real("gb", "of 131 072 tokens", "GB", 2), real("intensity", "", "FLOP/B", 1), "source"}};
  for (const Model& model : models()) {
    const double bytes = token_bytes(model, KvType::bf16);
    table.add({model.name, model.layer.scheme, model.layers, model.layer.cached_heads,
               model.layer.row.stored, bytes / kKibi, bytes * kMostContext / kGiga,
               intensity(model.layer, KvType::bf16, Scales::token), model.source});
  }
  return table;
}

lab::Table batches_table(const Params& params) {
  const int context = model_context(params);
  lab::Table table{
      "batches",
      fmt::format("A step of a model of 8 billion weights in BF16, {} tokens of context each",
                  context),
      {"scheme", whole("batch"), real("weights", "weights read", "GB", 2),
       real("cache", "cache read", "GB", 2), real("share", "of it cache", "%", 1),
       real("crossing", "as much as the weights from batch", "", 1)}};
  for (const Scheme scheme : all_of<Scheme>()) {
    const double token = model_token_bytes(params, scheme);
    const double crossing = crossing_batch(kModelWeightBytes, token, context);
    for (int batch = 1; batch <= kMostBatch; batch *= 4) {
      const double cache = token * context * batch;
      table.add({scheme, batch, kModelWeightBytes / kGiga, cache / kGiga,
                 100 * cache / (cache + kModelWeightBytes), crossing});
    }
  }
  return table;
}

lab::Table splits_table(const Params& params) {
  lab::Table table{"splits",
                   fmt::format("What splits come to on {} multiprocessors", kMultiprocessors),
                   {whole("splits"), whole("blocks"), whole("waves"),
                    real("busy", "multiprocessors busy", "%", 1),
                    real("parts", "bytes of parts, written and read", "KB", 1),
                    real("of_cache", "of the cache read", "%", 2)}};
  const LayerShape layer = layer_shape(params);
  const double cache =
      static_cast<double>(params.batch) * params.context * token_bytes(layer, params.kv_dtype);
  for (int splits = 1; splits <= kMostSplits; splits *= 2) {
    const Occupancy all = occupancy_of(params.batch, layer.cached_heads, splits);
    const double parts = splits == 1 ? 0
                                     : 2.0 * params.batch * layer.heads * splits *
                                           (layer.row.value + 2) * sizeof(float);
    table.add({splits, all.blocks, all.waves, 100 * all.busy, parts / 1e3,
               cache > 0 ? 100 * parts / cache : 0.0});
  }
  return table;
}

lab::Table rows_table(const Params& params) {
  const int context = model_context(params);
  lab::Table table{
      "rows",
      fmt::format("The same attention with more query rows, {} tokens of context", context),
      {whole("rows", "query rows"), real("bytes", "bytes read and written", "MB", 3),
       real("gflop", "", "GFLOP", 3), real("intensity", "", "FLOP/B", 1),
       lab::column("limit", "what limits it")}};
  for (const int rows : kRows) {
    const Phase phase = attention_of(layer_shape(params), rows, context);
    table.add({rows, phase.bytes / 1e6, phase.flops / kGiga, phase.intensity(),
               phase.intensity() < kRidge ? "memory" : "arithmetic"});
  }
  return table;
}

lab::Table chunks_table(const Params& params) {
  lab::Table table{
      "chunks",
      fmt::format("A step of the model in which {} requests of {} tokens decode and rows of a "
                  "prompt go along, at an H200's roofs",
                  model_batch(params), model_context(params)),
      {whole("rows", "rows of a prompt"), real("weights", "", "ms", 2),
       real("cache", "cache of those that decode", "ms", 2),
       real("chunk", "attention of the rows", "ms", 2), real("step", "", "ms", 2),
       real("prompt_tokens", "tokens of prompts a second", "1/s", 0)}};
  constexpr double kMilli = 1e3;
  for (const int rows : kRows) {
    const MixedStep step = mixed_step(params, rows);
    table.add({rows, kMilli * step.weights, kMilli * step.cache, kMilli * step.chunk,
               kMilli * step.seconds(), rows / step.seconds()});
  }
  return table;
}

lab::Table formats_table(const Run& run) {
  lab::Table table{"formats",
                   "What formats of the cache cost the chosen request, in double",
                   {"format", "scales", whole("bytes", "bytes a token and layer", "B"),
                    whole("scale_bytes", "and scales", "B"), real("key", "error of K", "%", 2),
                    real("score", "of the scores", "%", 2), real("output", "of O", "%", 2)}};
  if (run.excerpt.params.scheme == Scheme::mla) return table;
  const LayerShape layer = layer_shape(run.params);
  for (const KvType type : all_of<KvType>()) {
    for (const Scales scales : all_of<Scales>()) {
      if (!is_quantized(type) && scales != Scales::token) continue;
      const FormatError error = format_error(run.inputs, run.chosen.request, type, scales);
      table.add({type, is_quantized(type) ? lab::Cell(scales) : lab::Cell(),
                 token_bytes(layer, type), scale_bytes(layer, type, scales), 100 * error.key,
                 100 * error.score, 100 * error.output});
    }
  }
  return table;
}

lab::Table page_sizes_table(const Run& run) {
  lab::Table table{
      "page_sizes",
      "The requests that ran, in pages of other sizes",
      {whole("page_size", "page size", "tokens"), whole("pages"), whole("empty", "empty slots"),
       real("waste", "of the pages empty", "%", 1), whole("table", "block tables", "B"),
       whole("run", "bytes of K in one piece", "B"), real("sectors", "sectors that hold it", "", 2),
       real("used", "of the sectors used", "%", 1), real("lines", "of the lines used", "%", 1)}};
  for (const PageSize size : all_of<PageSize>()) {
    const int tokens = tokens_of(size);
    std::int64_t pages = 0, stored = 0;
    for (const int context : run.inputs.contexts) {
      pages += (context + tokens - 1) / tokens;
      stored += context;
    }
    const std::int64_t slots = pages * tokens;
    const Piece piece = piece_of(run.inputs.layer, run.excerpt.params.kv_dtype, tokens);
    table.add(
        {tokens, pages, slots - stored,
         slots > 0 ? 100.0 * static_cast<double>(slots - stored) / static_cast<double>(slots) : 0.0,
         4 * pages, piece.bytes, piece.sectors, 100 * piece.of_sectors(), 100 * piece.of_lines()});
  }
  return table;
}

}  // namespace tilestep::decode
