#pragma once

// One query against all keys, by softmax and by features, and the two orders of multiplication:
//
//   (φ(q)·φ(K)^T)·V   a weight for each key, then the values' sum: the work of all keys, for every query again
//   φ(q)·(φ(K)^T·V)   a matrix of dim × dim first, which serves every query after it
//
// One block; a thread has a key, then a number of the answer.

#include "kernels/attention/linear_attention/features.cu"

namespace tilestep::linear_attention::SIMT_BACKEND {

struct Compared {
  simt::Global<const std::uint16_t> q, k, mapped_q, mapped_k, v;
  simt::Global<float> answers;
};

__global__ void weights_kernel(Compared a, int tokens, int dim, simt::Tape tape) {
  const auto exact = simt::dynamic_shared<float>(tokens, 0, "softmax's weights");
  const auto approximate = simt::dynamic_shared<float>(tokens, tokens * sizeof(float), "weights");
  const int me = static_cast<int>(threadIdx.x);
  const float scale = rsqrtf(static_cast<float>(dim));
  for (int key = me; key < tokens; key += static_cast<int>(blockDim.x)) {
    float score = 0, product = 0;
    for (int j = 0; j < dim; ++j) {
      score = fmaf(number_of(a.q[j]), number_of(a.k[key * dim + j]), score);
      product = fmaf(number_of(a.mapped_q[j]), number_of(a.mapped_k[key * dim + j]), product);
    }
    exact[key] = score * scale;
    approximate[key] = product;  // [step: weight]
  }
  __syncthreads();  // all scores are there

  float most = -INFINITY, sum = 0, size = 0;
  for (int key = 0; key < tokens; ++key) {
    most = fmaxf(most, exact[key]);
    size += fabsf(approximate[key]);
  }
  for (int key = 0; key < tokens; ++key) sum += expf(exact[key] - most);
  const float share = size > 0 ? 1 / size : 0;
  for (int key = me; key < tokens; key += static_cast<int>(blockDim.x)) {
    tape.note(kExact, key, expf(exact[key] - most) / sum);
    tape.note(kApproximate, key, approximate[key] * share);
  }
  if (me >= dim) return;
  // Number `me` of the answers: softmax's, weights first, state first.
  float answer[3] = {};
  for (int key = 0; key < tokens; ++key) {
    const float value = number_of(a.v[key * dim + me]);
    answer[0] = fmaf(expf(exact[key] - most) / sum, value, answer[0]);
    answer[1] = fmaf(approximate[key] * share, value, answer[1]);
  }
  for (int j = 0; j < dim; ++j) {
    float entry = 0;  // of φ(K)^T·V, row j, column `me`
    for (int key = 0; key < tokens; ++key)
      entry = fmaf(number_of(a.mapped_k[key * dim + j]), number_of(a.v[key * dim + me]), entry);
    answer[2] = fmaf(number_of(a.mapped_q[j]) * share, entry, answer[2]);  // [step: order]
  }
  for (int i = 0; i < 3; ++i) {
    a.answers[i * dim + me] = answer[i];
    tape.note(kAnswer, i * dim + me, answer[i]);
  }
}

}  // namespace tilestep::linear_attention::SIMT_BACKEND
