// Low bits: how the kernels of quantize_wide.cu are launched.

#include "kernels/numbers/low_bit/linear/launches.hpp"
#include "kernels/numbers/low_bit/wide/quantize_wide.cu"

namespace tilestep::low_bit::SIMT_BACKEND {

void start_quantize_wide(simt::Device& device, const Matrix& matrix,
                         simt::Span<const std::uint16_t> weights, const Quantized& out) {
  simt::require_capability(device.info(), "quantize_wide", 90);
  const auto chunks = static_cast<std::int64_t>(matrix.rows) * (matrix.columns / kWide);
  const auto blocks = [&](int rounds) {
    return simt::row_of_blocks("quantize_wide", simt::blocks_for(chunks, rounds * kWideThreads),
                               kWideThreads);
  };
  const auto w = simt::global(weights, "W");
  const auto codes = simt::global(out.codes, "codes");
  with_format(out.format, [&](auto format) {
    if constexpr (format == Format::q4_k) {
      simt::launch(device, blocks(kRounds * kChunks), quantize_q4_k_wide, w, matrix, codes);
    } else {
      simt::launch(device, blocks(kChunks), quantize_wide<format>, w, matrix, out.group,
                   ranges_of(out), codes, written_scales(out));
    }
  });
}

}  // namespace tilestep::low_bit::SIMT_BACKEND
