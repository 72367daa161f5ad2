#pragma once

#include <cstdint>

#include "kernels/base/simt/hopper.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/numbers/low_bit/kernels.hpp"
#include "kernels/numbers/low_bit/linear/sizes.hpp"

/// What W4A16's kernels are given, and their launches: called by launch.cu, once per backend.
namespace tilestep::low_bit::SIMT_BACKEND {

struct LinearArrays {
  simt::Global<const uint4> codes;
  simt::Global<const unsigned> scales;
  simt::Global<const std::uint16_t> x;
};
struct LinearMaps {
  simt::hopper::TensorMap codes, x;
};

void start_arrange(simt::Device& device, const Matrix& matrix, const Quantized& from,
                   const Arranged& to);
void start_read(simt::Device& device, simt::Span<const std::uint32_t> words,
                simt::Span<std::uint32_t> sums);
void start_linear(simt::Device& device, const Matrix& matrix, const Arranged& w,
                  const LinearPlan& plan, int batch, simt::Span<const std::uint16_t> x,
                  simt::Span<std::uint16_t> y);

}  // namespace tilestep::low_bit::SIMT_BACKEND
