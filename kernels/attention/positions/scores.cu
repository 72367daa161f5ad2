#pragma once

// One query against cached keys, a thread per key, pair by pair: what each frequency adds to the score.

#include "kernels/attention/positions/kernels.hpp"
#include "kernels/base/numeric/float_format.hpp"

namespace tilestep::positions::SIMT_BACKEND {

struct Keys {
  simt::Global<const std::uint16_t> q, k_cache;
  simt::Global<const int> positions, slots;
  simt::Global<float> scores;
};

template <class Tape>
__global__ void scores_kernel(Keys keys, ScoresShape shape, Tape tape) {
  const int key = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (key >= shape.keys) return;
  const int slot = keys.slots[key], page = slot / shape.page_size;
  const std::ptrdiff_t line =
      (static_cast<std::ptrdiff_t>(page) * shape.kv_heads + shape.kv_head) * shape.page_size +
      (slot - page * shape.page_size);
  const auto k = keys.k_cache + line * shape.dim;
  const auto number = [](std::uint16_t bits) { return numeric::Bf16::value(bits); };
  float score = 0;
  for (int pair = 0; pair < shape.dim / 2; ++pair) {
    const int a = number_of(shape.pairs, shape.dim, pair, 0);
    const int b = number_of(shape.pairs, shape.dim, pair, 1);
    const float term =
        shape.scale * (number(keys.q[a]) * number(k[a]) + number(keys.q[b]) * number(k[b]));
    tape.note(kTerm, static_cast<std::int64_t>(key) * (shape.dim / 2) + pair, term);
    score += term;  // [step: score]
  }
  const int distance = shape.position - keys.positions[key];
  keys.scores[key] = score - shape.slope * static_cast<float>(distance);  // [step: bias]
}

}  // namespace tilestep::positions::SIMT_BACKEND
