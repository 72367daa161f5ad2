#pragma once

// Feature maps: φ of queries and keys, before attention.
//
// Softmax attention weighs a value by exp(q·k). A linear one weighs it by φ(q)·φ(k), a product of two vectors, and so
// may sum over the keys before there is a query. A block maps a row, a thread one number of it.

#include "kernels/attention/linear_attention/kernels.hpp"
#include "kernels/base/numeric/float_format.hpp"
#include "kernels/base/simt/mma.hpp"

namespace tilestep::linear_attention::SIMT_BACKEND {

__device__ inline float number_of(std::uint16_t bits) {
  return numeric::Bf16::value(bits);
}
__device__ inline std::uint16_t bits_of(float number) {
  return static_cast<std::uint16_t>(simt::pack_bf16(number, 0) & 0xFFFFu);
}

__global__ void features_kernel(simt::Global<const std::uint16_t> x,
                                simt::Global<const float> omega, simt::Global<std::uint16_t> out,
                                FeatureShape shape) {
  __shared__ simt::Array<float, 128> row;
  __shared__ simt::Array<float, 128> mapped;
  const int i = static_cast<int>(threadIdx.x), dim = shape.dim;
  const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(blockIdx.x) * dim + i;
  row[i] = number_of(x[at]);
  __syncthreads();  // the whole row is there

  float f = row[i];
  if (shape.feature == Feature::elu) f = f > 0 ? f + 1 : expf(f);  // [step: map]
  if (shape.feature == Feature::relu) f = fmaxf(f, 0);
  if (shape.feature == Feature::random) {
    // x is divided by dim^(1/4), so that φ(q)·φ(k) is exp(q·k / √dim) on average over all ω.
    const float scale = rsqrtf(sqrtf(static_cast<float>(dim)));
    float along = 0, squares = 0;
    for (int j = 0; j < dim; ++j) {
      const float scaled = row[j] * scale;
      along = fmaf(omega[i * dim + j], scaled, along);
      squares = fmaf(scaled, scaled, squares);
    }
    f = expf(along - 0.5f * squares) * rsqrtf(static_cast<float>(dim));
  }
  if (shape.unit) {
    mapped[i] = f;
    __syncthreads();  // all numbers are mapped
    float squares = kTiny;
    for (int j = 0; j < dim; ++j) squares = fmaf(mapped[j], mapped[j], squares);
    f *= rsqrtf(squares);
  }
  out[at] = bits_of(f);
}

}  // namespace tilestep::linear_attention::SIMT_BACKEND
