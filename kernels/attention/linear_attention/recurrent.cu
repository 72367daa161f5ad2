#pragma once

// Linear attention token by token: the state is all that is left of the tokens before.
//
//   S ← α S                    a gate lets all of it fade
//   u = v, or β (v − S^Tk)      the delta rule writes what the state does not say yet
//   S ← S + k u^T               [dim × dim], of whatever length the text is
//   o = S^Tq
//
// A block per head; a thread has a column of S in registers, and so a number of v and of o. The columns do not need
// each other.

#include "kernels/attention/linear_attention/features.cu"

namespace tilestep::linear_attention::SIMT_BACKEND {

/// The arrays of a launch as its kernel has them.
struct Recurrence {
  simt::Global<const std::uint16_t> q, k, v;
  simt::Global<const float> log_gates, betas;
  simt::Global<std::uint16_t> o;
  simt::Global<float> state;
  simt::Global<const std::uint16_t> probes;
};

/// What the state holds for a key: of values written once with it, the value itself.
template <int kDim>
__device__ float held_for(const float (&s)[kDim], simt::Global<const std::uint16_t> key) {
  float product = 0, squares = 0;
  for (int j = 0; j < kDim; ++j) {
    const float k = number_of(key[j]);
    product = fmaf(k, s[j], product);
    squares = fmaf(k, k, squares);
  }
  return squares > 0 ? product / squares : 0;
}

template <int kDim, class Tape>
__global__ void recurrent_kernel(Recurrence a, int tokens, Rule rule, bool resume, int probes,
                                 Tape tape) {
  __shared__ simt::Array<float, 2, 2, kDim> rows;  // of q and k, for one token and the next
  const int column = static_cast<int>(threadIdx.x);
  const std::ptrdiff_t head = blockIdx.x;
  float s[kDim];
#pragma unroll
  for (int j = 0; j < kDim; ++j) s[j] = resume ? a.state[(head * kDim + j) * kDim + column] : 0;

  for (int token = 0; token < tokens; ++token) {
    const std::ptrdiff_t at = head * tokens + token, row = at * kDim;
    const auto now = rows[token % 2];
    now[0][column] = number_of(a.q[row + column]);
    now[1][column] = number_of(a.k[row + column]);
    // q and k are there; the buffers of the token before may still be read, those of the one before it are free.
    __syncthreads();
    const bool shown = Tape::kRecords && head == 0 && column < kShown;
    if (shown) tape.note(kBefore, token * kShown + column, held_for<kDim>(s, a.k + row));

    const float alpha = gates(rule) ? expf(a.log_gates[at]) : 1.0f;
    float u = number_of(a.v[row + column]);
    if (corrects(rule)) {
      float held = 0;
#pragma unroll
      for (int j = 0; j < kDim; ++j) held = fmaf(now[1][j], s[j], held);
      u = a.betas[at] * (u - alpha * held);  // [step: delta]
    }
    float out = 0;
#pragma unroll
    for (int j = 0; j < kDim; ++j) {
      s[j] = fmaf(now[1][j], u, alpha * s[j]);  // [step: write]
      out = fmaf(now[0][j], s[j], out);         // [step: read]
    }
    a.o[row + column] = bits_of(out);

    if constexpr (Tape::kRecords) {
      for (int j = 0; j < kShown && shown; ++j)
        tape.note(kState, (token * kShown + j) * kShown + column, s[j]);
      for (int i = 0; i < probes && shown; ++i)
        tape.note(kProbe, (token * probes + i) * kShown + column,
                  held_for<kDim>(s, a.probes + i * kDim));
      if (shown) tape.note(kOut, token * kShown + column, out);
    }
  }
#pragma unroll
  for (int j = 0; j < kDim; ++j) a.state[(head * kDim + j) * kDim + column] = s[j];
}

}  // namespace tilestep::linear_attention::SIMT_BACKEND
