// Low bits: the shapes that the kernels of quantize.cu accept, and their launches.

#include <cassert>
#include <cstddef>

#include "kernels/base/numeric/index.hpp"
#include "kernels/numbers/low_bit/kernels.hpp"
#include "kernels/numbers/low_bit/linear/launches.hpp"
#include "kernels/numbers/low_bit/quantize.cu"

namespace tilestep::low_bit::SIMT_BACKEND {

constexpr int kThreads = 256;

/// Throws Error naming the size that is not allowed.
void check_matrix(const Matrix& matrix, const Quantized& w) {
  simt::require_within("low_bit: rows", matrix.rows, 1, 1 << 20);
  simt::require_within("low_bit: columns", matrix.columns, kSuperBlock, 1 << 20);
  simt::require_multiple("low_bit: columns", matrix.columns, kSuperBlock);
  assert(w.ranges.count == static_cast<std::size_t>(matrix.rows) + 1);
  assert(w.codes.count == code_bytes(w.format, matrix.rows, matrix.columns));
  (void)w;
}

simt::Launch over_chunks(const char* name, const Matrix& matrix) {
  const auto chunks =
      static_cast<std::int64_t>(matrix.rows) * matrix.columns / SIMT_BACKEND::kWeights;
  return simt::row_of_blocks(name, simt::blocks_for(chunks, kThreads), kThreads);
}

Scales<std::uint8_t> written(const Quantized& w) {
  return {simt::global(w.scales, "scales"), simt::global(w.zeros, "zero points")};
}
simt::Span<const std::uint8_t> read(simt::Span<std::uint8_t> bytes) {
  return bytes;
}
Scales<const std::uint8_t> scales_of(const Quantized& w) {
  return {simt::global(read(w.scales), "scales"), simt::global(read(w.zeros), "zero points")};
}
simt::Global<const Range> ranges_of(const Quantized& w) {
  return simt::global(simt::Span<const Range>(w.ranges), "ranges");
}

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

class KernelsHere final : public Kernels {
 public:
  void ranges(simt::Device& device, const Matrix& matrix, simt::Span<const std::uint16_t> weights,
              simt::Span<Range> ranges) const override {
    simt::launch(device, simt::row_of_blocks("row_ranges", matrix.rows, kRowThreads), row_ranges,
                 simt::global(weights, "W"), matrix, simt::global(ranges, "ranges"));
    simt::launch(device, simt::row_of_blocks("tensor_range", 1, kRowThreads), tensor_range,
                 simt::global(ranges, "ranges"), matrix);
  }

  void quantize(simt::Device& device, const Matrix& matrix, simt::Span<const std::uint16_t> weights,
                const Quantized& out, const simt::Tape& tape) const override {
    check_matrix(matrix, out);
    const auto w = simt::global(weights, "W");
    const auto codes = simt::global(out.codes, "codes");
    simt::with_tape(tape, [&](const auto& chosen) {
      using Tape = std::decay_t<decltype(chosen)>;
      with_format(out.format, [&](auto format) {
        if constexpr (format == Format::q4_k) {
          simt::launch(device, over_chunks("quantize_q4_k", matrix), quantize_q4_k<Tape>, w, matrix,
                       codes, chosen);
        } else {
          simt::launch(device, over_chunks("quantize", matrix),
                       SIMT_BACKEND::quantize<format, Tape>, w, matrix, out.group, ranges_of(out),
                       codes, written(out), chosen);
        }
      });
    });
  }

  void dequantize(simt::Device& device, const Matrix& matrix, const Quantized& in,
                  simt::Span<float> values) const override {
    check_matrix(matrix, in);
    with_format(in.format, [&](auto format) {
      simt::launch(device, over_chunks("dequantize", matrix), SIMT_BACKEND::dequantize<format>,
                   simt::global(read(in.codes), "codes"), scales_of(in), ranges_of(in), matrix,
                   in.group, simt::global(values, "values"));
    });
  }

  void product(simt::Device& device, const Matrix& matrix, const Quantized& in,
               simt::Span<const std::uint16_t> x, simt::Span<float> y) const override {
    check_matrix(matrix, in);
    const auto launch =
        simt::row_of_blocks("product", simt::blocks_for(matrix.rows, kThreads / 32), kThreads);
    with_format(in.format, [&](auto format) {
      simt::launch(device, launch, SIMT_BACKEND::product<format>,
                   simt::global(read(in.codes), "codes"), scales_of(in), ranges_of(in), matrix,
                   in.group, simt::global(x, "x"), simt::global(y, "y"));
    });
  }

  void arrange(simt::Device& device, const Matrix& matrix, const Quantized& from,
               const Arranged& to) const override {
    start_arrange(device, matrix, from, to);
  }
  void add_up(simt::Device& device, simt::Span<const std::uint32_t> words,
              simt::Span<std::uint32_t> sums) const override {
    start_read(device, words, sums);
  }
  simt::LibraryStatus library() const override { return simt::library_status(); }
  int library_algorithms(const simt::LibraryProduct& product,
                         const simt::LibraryArrays& arrays) const override {
    return simt::library_algorithms(product, arrays);
  }
  void library_multiply(const simt::LibraryProduct& product, int algorithm,
                        const simt::LibraryArrays& arrays) const override {
    simt::library_multiply(product, algorithm, arrays);
  }
  void linear(simt::Device& device, const Matrix& matrix, const Arranged& w, const LinearPlan& plan,
              int batch, simt::Span<const std::uint16_t> x,
              simt::Span<std::uint16_t> y) const override {
    start_linear(device, matrix, w, plan, batch, x, y);
  }
};

}  // namespace tilestep::low_bit::SIMT_BACKEND
SIMT_KERNEL_SET(low_bit, KernelsHere)
