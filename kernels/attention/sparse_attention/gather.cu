#pragma once

// Attention over chosen rows of a paged latent cache: a row is the key of all heads, and its first numbers are their
// value. A block is a warp, with a query and a head; a lane looks a token's page up and scores its row.

#include "kernels/attention/sparse_attention/attend.cu"

namespace tilestep::sparse_attention::SIMT_BACKEND {

struct Gather {
  simt::Global<const float> q, cache;
  simt::Global<const int> table, chosen;
  simt::Global<float> o;
};

template <class Tape>
__global__ void gather_kernel(Gather a, GatherShape shape, Break broken, Tape tape) {
  const int query = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y);
  const int lane = static_cast<int>(threadIdx.x), at = query * shape.heads + head;
  const bool shown = Tape::kRecords && query + 1 == shape.length && head == 0;
  // Whose choice? Its own; the one of the token before is that token's.
  const int whose = broken == Break::stale_top_k && query > 0 ? query - 1 : query;
  const auto values = simt::dynamic_shared<float>(32 * kValue, 0, "values");
  Row row;
  for (int first = 0; first < shape.top_k; first += 32) {
    const int place = first + lane;
    const int token = place < shape.top_k ? a.chosen[whose * shape.top_k + place] : -1;
    float score = -INFINITY;
    if (token >= 0) {
      const int page = token / shape.page_size;
      const int slot = a.table[page] * shape.page_size + token % shape.page_size;
      const int line = broken == Break::scattered_keys ? token : slot;  // [step: page]
      const auto key = a.cache + line * kKey;
      score = shape.scale * product(a.q + at * kKey, key);  // [step: gather]
      for (int i = 0; i < kValue; ++i) values[lane * kValue + i] = key[i];
      if (shown) {
        tape.note(kRow, place, line);
        tape.note(kReached, token, score);
      }
    }
    __syncwarp();  // all values are there
    const unsigned there = __ballot_sync(kAllLanes, token >= 0);
    row.add(score, __popc(there), values);  // [step: weigh]
    __syncwarp();                           // all are done with them
  }
  if (lane < kValue) a.o[at * kValue + lane] = row.output();
}

}  // namespace tilestep::sparse_attention::SIMT_BACKEND
