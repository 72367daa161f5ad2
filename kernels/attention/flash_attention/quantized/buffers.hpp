#pragma once

#include <span>
#include <vector>

#include "kernels/attention/flash_attention/quantized/problem.hpp"
#include "kernels/attention/shared/problem.hpp"

namespace tilestep::flash_attention {

/// The arrays of a launch with scores of 8 bits, for tiles of `sizes`. Those of K's mean are there where it is taken
/// away; what kernels write is NaN until they do.
class QuantizedBuffers {
 public:
  QuantizedBuffers(simt::Device& device, const QuantizedProblem& problem,
                   const QuantizedSizes& sizes, const Inputs& inputs);

  QuantizedArrays arrays();
  std::vector<float> o() const;
  std::vector<float> lse() const { return lse_.download(); }
  /// What the kernels made of Q and K.
  QuantizedNumbers numbers() const;

 private:
  QuantizedProblem problem_;
  QuantizedSizes sizes_;
  simt::Buffer<std::uint16_t> q_, k_, v_, o_;
  simt::Buffer<int> begins_;
  simt::Buffer<float> lse_;
  simt::Buffer<std::uint8_t> q_8_, k_8_;
  simt::Buffer<float> q_scales_, k_scales_, k_mean_, q_mean_;
};

}  // namespace tilestep::flash_attention
