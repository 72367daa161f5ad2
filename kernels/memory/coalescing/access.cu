// Coalescing: the kernel of the lesson. Each thread copies one element.
//
//   gather    out[i] = in[…]: loads follow the pattern, stores are in order
//   scatter   out[…] = in[i]: loads are in order, stores follow the pattern
//
// The patterns differ only in the element that thread i accesses. The pattern is a compile-time
// constant, so only its line of the switch remains. The same lines with several loads per thread are
// in sweep.cu, the ladders of copies and transposes in ladders.cu. The accessors are defined in
// simt/simt.hpp: compiled by nvcc, an accessor is a plain pointer.

#include <cstdint>

#include "kernels/base/simt/simt.hpp"
#include "kernels/memory/coalescing/patterns.hpp"

namespace tilestep::coalescing::SIMT_BACKEND {

using Index = std::int64_t;

/// The warp's own 32 elements in another order.
__device__ inline Index permuted_in_warp(Index i, const PatternShape& s) {
  const Index lane = i % 32;
  return i - lane + (lane * s.lane_multiplier + s.lane_addend) % 32;  // [step: permuted-warp]
}

/// All elements in another order. Each step is invertible, so no two threads get the same element; an
/// index past the end is permuted again.
__device__ inline Index permuted(Index i, const PatternShape& s) {
  unsigned x = static_cast<unsigned>(i);
  do {
    for (int round = 0; round < 3; ++round) {
      x = (x * s.multiplier + round) & s.mask;  // [step: permuted]
      x ^= x >> s.shift;
    }
  } while (x >= s.elements);
  return x;
}

template <class Which, class In, class Out>
__device__ inline void gather_element(In in, Out out, Index i, const PatternShape& s,
                                      Which pattern) {
  switch (pattern) {
    case Pattern::sequential:
      out[i] = in[i];  // [step: load sequential]
      break;
    case Pattern::strided:
      out[i] = in[i * s.stride];  // [step: load strided]
      break;
    case Pattern::offset:
      out[i] = in[i + s.offset];  // [step: load offset]
      break;
    case Pattern::reversed:
      out[i] = in[s.elements - 1 - i];  // [step: load reversed]
      break;
    case Pattern::permuted_warp:
      out[i] = in[permuted_in_warp(i, s)];  // [step: load permuted-warp]
      break;
    case Pattern::permuted:
      out[i] = in[permuted(i, s)];  // [step: load permuted]
      break;
    case Pattern::broadcast:
      out[i] = in[i / 32];  // [step: load broadcast]
      break;
    case Pattern::aos:                // field 1 of structure i, in an array of structures
      out[i] = in[i * s.fields + 1];  // [step: load aos]
      break;
    case Pattern::soa:               // field 1 of structure i, in a structure of arrays
      out[i] = in[1 * s.pitch + i];  // [step: load soa]
      break;
    case Pattern::matrix_row: {
      const Index row = i / s.columns;
      const Index column = i % s.columns;
      out[i] = in[row * s.columns + column];  // [step: load matrix-row]
      break;
    }
    case Pattern::matrix_column: {
      const Index row = i % s.rows;
      const Index column = i / s.rows;
      out[i] = in[row * s.columns + column];  // [step: load matrix-column]
      break;
    }
    case Pattern::custom:
      out[i] = in[i / 32 * 256 + s.lane_element[i % 32]];  // [step: load custom]
      break;
  }
}

template <class Which, class In, class Out>
__device__ inline void scatter_element(In in, Out out, Index i, const PatternShape& s,
                                       Which pattern) {
  switch (pattern) {
    case Pattern::sequential:
      out[i] = in[i];  // [step: store sequential]
      break;
    case Pattern::strided:
      out[i * s.stride] = in[i];  // [step: store strided]
      break;
    case Pattern::offset:
      out[i + s.offset] = in[i];  // [step: store offset]
      break;
    case Pattern::reversed:
      out[s.elements - 1 - i] = in[i];  // [step: store reversed]
      break;
    case Pattern::permuted_warp:
      out[permuted_in_warp(i, s)] = in[i];  // [step: store permuted-warp]
      break;
    case Pattern::permuted:
      out[permuted(i, s)] = in[i];  // [step: store permuted]
      break;
    case Pattern::broadcast:
      out[i / 32] = in[i];  // [step: store broadcast]
      break;
    case Pattern::aos:
      out[i * s.fields + 1] = in[i];  // [step: store aos]
      break;
    case Pattern::soa:
      out[1 * s.pitch + i] = in[i];  // [step: store soa]
      break;
    case Pattern::matrix_row: {
      const Index row = i / s.columns;
      const Index column = i % s.columns;
      out[row * s.columns + column] = in[i];  // [step: store matrix-row]
      break;
    }
    case Pattern::matrix_column: {
      const Index row = i % s.rows;
      const Index column = i / s.rows;
      out[row * s.columns + column] = in[i];  // [step: store matrix-column]
      break;
    }
    case Pattern::custom:
      out[i / 32 * 256 + s.lane_element[i % 32]] = in[i];  // [step: store custom]
      break;
  }
}

template <class Which, class In, class Out>
__global__ void gather(In in, Out out, PatternShape s, Which pattern) {
  const Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < s.elements) gather_element(in, out, i, s, pattern);
}

template <class Which, class In, class Out>
__global__ void scatter(In in, Out out, PatternShape s, Which pattern) {
  const Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < s.elements) scatter_element(in, out, i, s, pattern);
}

}  // namespace tilestep::coalescing::SIMT_BACKEND
