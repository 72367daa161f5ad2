#pragma once

/// \file
/// The step of online softmax that kernels share: a row's maximum may rise with each tile of scores, and everything
/// summed so far is rescaled to it. Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018.

#include <cmath>

#include "kernels/base/simt/packed.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::simt {

/// Weights are e^score …
struct NaturalExp {
  static __device__ __forceinline__ float of(float x) { return expf(x); }
};
/// … or 2^score, one instruction: scores, or the scale they are multiplied by, include log2(e).
struct BinaryExp {
  static __device__ __forceinline__ float of(float x) { return exp2_approx(x); }
};

/// What weights are measured from: the maximum; 0 while no key was seen, lest −∞ − (−∞) be NaN.
__device__ __forceinline__ float softmax_reference(float maximum) {
  return maximum == -INFINITY ? 0.0f : maximum;
}

/// What a tile does to a row.
template <class Exp>
struct SoftmaxStep {
  float reference;  ///< what weights are measured from, times the scale
  float rescale;    ///< factor for everything summed so far

  __device__ __forceinline__ float weight(float score) const { return Exp::of(score - reference); }
  /// Of a score that is not multiplied by the scale yet.
  __device__ __forceinline__ float weight(float score, float scale) const {
    return Exp::of(fmaf(score, scale, -reference));
  }
};

/// Raises a row's maximum `m` to the tile's, if that is higher. With kSeen no row's maximum is −∞.
template <class Exp, bool kSeen = false>
__device__ __forceinline__ SoftmaxStep<Exp> raise_maximum(float& m, float tile_max,
                                                          float scale = 1) {
  const float before = m;
  m = fmaxf(before, tile_max);
  const float reference = kSeen || m != -INFINITY ? m * scale : 0.0f;
  return {reference, Exp::of(fmaf(before, scale, -reference))};
}

}  // namespace tilestep::simt
