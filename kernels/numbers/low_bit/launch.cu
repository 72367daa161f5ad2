// Low bits: the shapes that the kernels of quantize.cu and product.cu accept, and their launches.

#include <cassert>
#include <cstddef>

#include "kernels/numbers/low_bit/kernels.hpp"
#include "kernels/numbers/low_bit/linear/launches.hpp"
#include "kernels/numbers/low_bit/product.cu"
#include "kernels/numbers/low_bit/quantize.cu"

namespace tilestep::low_bit::SIMT_BACKEND {

constexpr int kThreads = 256;

/// Throws Error naming the size that is not allowed.
void check_matrix(const Matrix& matrix) {
  simt::require_within("low_bit: rows", matrix.rows, 1, 1 << 20);
  simt::require_within("low_bit: columns", matrix.columns, kSuperBlock, 1 << 20);
  simt::require_multiple("low_bit: columns", matrix.columns, kSuperBlock);
}

/// A thread for eight weights.
simt::Launch over_chunks(const char* name, const Matrix& matrix) {
  const auto chunks = static_cast<std::int64_t>(matrix.rows) * matrix.columns / kWeights;
  return simt::row_of_blocks(name, simt::blocks_for(chunks, kThreads), kThreads);
}

InFewBits read(const Matrix& matrix, const Quantized& w) {
  check_matrix(matrix);
  const auto bytes = [](simt::Span<std::uint8_t> span, const char* name) {
    return simt::global(simt::Span<const std::uint8_t>(span), name);
  };
  return {bytes(w.codes, "codes"),
          {bytes(w.scales, "scales"), bytes(w.zeros, "zero points")},
          simt::global(simt::Span<const Range>(w.ranges), "ranges"),
          matrix,
          w.group};
}

/// A warp for each row.
simt::Launch over_rows(const char* name, const Matrix& matrix) {
  return simt::row_of_blocks(name, simt::blocks_for(matrix.rows, kThreads / 32), kThreads);
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
                const Quantized& out, const Watch& watch) const override {
    check_matrix(matrix);
    assert(out.ranges.count == static_cast<std::size_t>(matrix.rows) + 1);
    assert(out.codes.count == code_bytes(out.format, matrix.rows, matrix.columns));
    const auto start = [&](const auto& tape) {
      using Tape = std::decay_t<decltype(tape)>;
      const auto w = simt::global(weights, "W");
      const auto codes = simt::global(out.codes, "codes");
      with_format(out.format, [&](auto format) {
        if constexpr (format == Format::q4_k) {
          simt::launch(device, over_chunks("quantize_q4_k", matrix), quantize_q4_k<Tape>, w, matrix,
                       codes, tape);
        } else {
          simt::launch(device, over_chunks("quantize", matrix),
                       SIMT_BACKEND::quantize<format, Tape>, w, matrix, out.group, ranges_of(out),
                       codes, written_scales(out), tape);
        }
      });
    };
    watch ? start(watch) : start(simt::NoTape{});
  }

  void quantize_wide(simt::Device& device, const Matrix& matrix,
                     simt::Span<const std::uint16_t> weights, const Quantized& out) const override {
    check_matrix(matrix);
    start_quantize_wide(device, matrix, weights, out);
  }

  void dequantize(simt::Device& device, const Matrix& matrix, const Quantized& in,
                  simt::Span<float> numbers, const Watch& watch) const override {
    const InFewBits w = read(matrix, in);
    with_format(in.format, [&](auto format) {
      simt::launch(device, over_chunks("dequantize", matrix), SIMT_BACKEND::dequantize<format>, w,
                   simt::global(numbers, "numbers"), watch);
    });
  }

  void product(simt::Device& device, const Matrix& matrix, const Quantized& in,
               simt::Span<const std::uint16_t> x, simt::Span<float> y,
               const Watch& watch) const override {
    const InFewBits w = read(matrix, in);
    with_format(in.format, [&](auto format) {
      simt::launch(device, over_rows("product", matrix), SIMT_BACKEND::product<format>, w,
                   simt::global(x, "x"), simt::global(y, "y"), watch);
    });
  }

  void product_of_numbers(simt::Device& device, const Matrix& matrix,
                          simt::Span<const float> numbers, simt::Span<const std::uint16_t> x,
                          simt::Span<float> y, const Watch& watch) const override {
    check_matrix(matrix);
    simt::launch(device, over_rows("product_of_numbers", matrix), SIMT_BACKEND::product_of_numbers,
                 simt::global(numbers, "numbers"), matrix, simt::global(x, "x"),
                 simt::global(y, "y"), watch);
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
  void linear_eight(simt::Device& device, const Matrix& matrix, const EightBits& w,
                    const LinearPlan& plan, int batch, const EightBits& x,
                    simt::Span<std::uint16_t> y) const override {
    start_linear_eight(device, matrix, w, plan, batch, x, y);
  }
  void gemv(simt::Device& device, const Matrix& matrix, const Quantized& w, const GemvPlan& plan,
            simt::Span<const std::uint16_t> x, simt::Span<std::uint16_t> y) const override {
    start_gemv(device, matrix, w, plan, x, y);
  }
  void dequantize_bf16(simt::Device& device, const Matrix& matrix, const Quantized& in,
                       simt::Span<std::uint16_t> numbers) const override {
    start_dequantize_bf16(device, matrix, in, numbers);
  }
};

}  // namespace tilestep::low_bit::SIMT_BACKEND
SIMT_KERNEL_SET(low_bit, KernelsHere)
