#pragma once

// The lightning indexer of DeepSeek Sparse Attention: a query's few heads score every token up to its own with FP8
// numbers, score = Σ over heads of weight · max(0, q · k), and the k best go to attention. A block has a query and goes
// through the tokens tile by tile; a thread has a token of the tile. No score leaves the block.

#include "kernels/attention/sparse_attention/top_k.hpp"
#include "kernels/base/simt/packed.hpp"

namespace tilestep::sparse_attention::SIMT_BACKEND {

struct Index {
  simt::Global<const std::uint8_t> q, keys;
  simt::Global<const float> weights, scales;
  simt::Global<int> chosen;
};

__device__ inline float number_of(std::uint8_t e4m3) {
  return simt::unpack_fp16(simt::unpack_e4m3x2(e4m3), 0);
}

/// The index score of a token.
__device__ inline float index_score(const Index& a, const IndexShape& shape, int query, int token) {
  float score = 0;
  for (int head = 0; head < shape.heads; ++head) {
    const int at = query * shape.heads + head;
    float dot = 0;
    for (int i = 0; i < kIndexDim; ++i) {
      dot = fmaf(number_of(a.q[at * kIndexDim + i]), number_of(a.keys[token * kIndexDim + i]), dot);
    }
    score = fmaf(a.weights[at], fmaxf(dot, 0.0f), score);  // [step: relu]
  }
  return score * a.scales[token];  // [step: index]
}

using Best = TopK<WholeBlock>;

template <class Tape>
__global__ void choose_kernel(Index a, IndexShape shape, Break broken, Tape tape) {
  const int query = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const bool later = broken == Break::topk_ties;
  const bool shown = Tape::kRecords && query + 1 == shape.length;
  const auto kept = simt::dynamic_shared<Entry>(static_cast<std::size_t>(shape.room), 0, "kept");
  const auto counts = simt::dynamic_shared<int>(
      Best::kCounts, static_cast<std::size_t>(shape.room) * sizeof(Entry), "counts");
  Best top{kept, counts, shape.top_k, shape.room};
  top.begin();
  for (int first = 0; first <= query; first += shape.tile) {
    const int token = first + thread;
    const bool has = thread < shape.tile && token <= query;
    const float score = has ? index_score(a, shape, query, token) : 0;
    const Entry entry = has ? entry_of(score, token, later) : 0;
    if (shown) {
      if (has) tape.note(kIndex, token, score);
      const unsigned passed = __ballot_sync(0xFFFFFFFFu, has && entry > top.floor);
      if (thread == 0) tape.note(kPassed, first / shape.tile, __popc(passed));
    }
    if (has) top.push(entry);  // [step: choose]
    top.settle(shape.tile);
    if (!shown) continue;
    const int count = min(counts[Best::kCount], shape.top_k);
    for (int i = thread; i < count; i += 32) {
      tape.note(kKept, static_cast<std::int64_t>(first / shape.tile) * shape.top_k + i,
                token_of(kept[i], later));
    }
    __syncthreads();  // noted, before the next ones come
  }
  // Tokens in order: each goes to the place that as many are before it. Neighbours in the cache are then read together.
  const int count = top.finish();
  __syncthreads();  // the last ones are there
  for (int i = thread; i < shape.top_k; i += 32) {
    if (i >= count) a.chosen[query * shape.top_k + i] = -1;
  }
  for (int i = thread; i < count; i += 32) {
    const int token = token_of(kept[i], later);
    int before = 0;
    for (int j = 0; j < count; ++j) before += token_of(kept[j], later) < token ? 1 : 0;
    a.chosen[query * shape.top_k + before] = token;  // [step: chosen]
  }
}

}  // namespace tilestep::sparse_attention::SIMT_BACKEND
