#pragma once

#include <cstdint>

#include "kernels/base/simt/hopper.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/numbers/low_bit/codes.hpp"
#include "kernels/numbers/low_bit/kernels.hpp"
#include "kernels/numbers/low_bit/linear/sizes.hpp"

/// Launches that launch.cu calls, once per backend, and what their kernels are given.
namespace tilestep::low_bit::SIMT_BACKEND {

/// Calls `launch` with the format as a constant.
template <class Launch>
void with_format(Format format, const Launch& launch) {
  switch (format) {
    case Format::int8:
      return launch(std::integral_constant<Format, Format::int8>{});
    case Format::int4:
      return launch(std::integral_constant<Format, Format::int4>{});
    case Format::int4_zero:
      return launch(std::integral_constant<Format, Format::int4_zero>{});
    case Format::fp8_e4m3:
      return launch(std::integral_constant<Format, Format::fp8_e4m3>{});
    case Format::fp8_e5m2:
      return launch(std::integral_constant<Format, Format::fp8_e5m2>{});
    case Format::mxfp4:
      return launch(std::integral_constant<Format, Format::mxfp4>{});
    case Format::nvfp4:
      return launch(std::integral_constant<Format, Format::nvfp4>{});
    case Format::ternary:
      return launch(std::integral_constant<Format, Format::ternary>{});
    case Format::q4_k:
      return launch(std::integral_constant<Format, Format::q4_k>{});
  }
}

inline Scales<std::uint8_t> written_scales(const Quantized& w) {
  return {simt::global(w.scales, "scales"), simt::global(w.zeros, "zero points")};
}
inline simt::Global<const Range> ranges_of(const Quantized& w) {
  return simt::global(simt::Span<const Range>(w.ranges), "ranges");
}

struct GemvMaps {
  simt::hopper::TensorMap codes, scales;
};
/// W in ternary, with its one scale, or in Q4_K.
struct GemvArrays {
  simt::Global<const uint4> codes;
  simt::Global<const float> scale;
  simt::Global<const std::uint16_t> x;
};
struct LinearMaps {
  simt::hopper::TensorMap codes, x;
};
/// `y` is for the persistent kernel, which stores by TMA.
struct EightMaps {
  simt::hopper::TensorMap w, x, y;
};

void start_quantize_wide(simt::Device& device, const Matrix& matrix,
                         simt::Span<const std::uint16_t> weights, const Quantized& out);
void start_arrange(simt::Device& device, const Matrix& matrix, const Quantized& from,
                   const Arranged& to);
void start_read(simt::Device& device, simt::Span<const std::uint32_t> words,
                simt::Span<std::uint32_t> sums);
void start_linear(simt::Device& device, const Matrix& matrix, const Arranged& w,
                  const LinearPlan& plan, int batch, simt::Span<const std::uint16_t> x,
                  simt::Span<std::uint16_t> y);
void start_linear_eight(simt::Device& device, const Matrix& matrix, const EightBits& w,
                        const LinearPlan& plan, int batch, const EightBits& x,
                        simt::Span<std::uint16_t> y);
void start_gemv(simt::Device& device, const Matrix& matrix, const Quantized& w,
                const GemvPlan& plan, simt::Span<const std::uint16_t> x,
                simt::Span<std::uint16_t> y);
void start_dequantize_bf16(simt::Device& device, const Matrix& matrix, const Quantized& w,
                           simt::Span<std::uint16_t> numbers);

}  // namespace tilestep::low_bit::SIMT_BACKEND
