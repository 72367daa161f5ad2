// Few bits: the shapes that the kernels of few_bits.cu and tables.cu accept, and their launches.

#include <cassert>
#include <cstddef>

#include "kernels/base/numeric/index.hpp"
#include "kernels/numbers/low_bit/linear/few_bits.cu"
#include "kernels/numbers/low_bit/linear/launches.hpp"
#include "kernels/numbers/low_bit/linear/tables.cu"

namespace tilestep::low_bit::SIMT_BACKEND {
namespace {

void check_few_bits(simt::Device& device, const Matrix& matrix, const Quantized& w) {
  simt::require_multiple("low_bit: rows", matrix.rows, kLinearRows);
  simt::require_within("low_bit: rows", matrix.rows, kLinearRows, 1 << 16);
  simt::require_multiple("low_bit: columns", matrix.columns, kSuperBlock);
  simt::require_within("low_bit: columns", matrix.columns, kSuperBlock, 1 << 15);
  simt::require_capability(device.info(), "The GEMV for formats of few bits", 90);
  assert(w.codes.count == code_bytes(w.format, matrix.rows, matrix.columns));
  (void)w;
}

[[noreturn]] void refuse_format(Format format, const char* allowed) {
  throw Error("low_bit: format is " + std::string(name_of(format)) + "; allowed: " + allowed);
}

template <class W, int... kRowsAllowed>
void start_on_tensor_cores(simt::Device& device, const GemvArrays& arrays, const LinearShape& shape,
                           const GemvPlan& plan, simt::Span<std::uint16_t> y) {
  simt::with_constant<kRowsAllowed...>("low_bit: rows of W in a tile", plan.rows, [&](auto rows) {
    simt::with_constant<8, 16>("low_bit: warps that share a tile", plan.splits, [&](auto warps) {
      constexpr int kRows = decltype(rows)::value, kWarps = decltype(warps)::value;
      simt::Launch launch = simt::row_of_blocks("gemv_few_bits", shape.rows / kRows, kWarps * 32);
      launch.early = true;
      simt::launch(device, launch, gemv_few_bits<W, kRows / kFragmentRows, kWarps>, arrays, shape,
                   simt::global(y, "y"));
    });
  });
}

void start_by_tables(simt::Device& device, const GemvArrays& arrays, const LinearShape& shape,
                     const GemvPlan& plan, simt::Span<std::uint16_t> y) {
  simt::require_multiple("low_bit: rows of a cluster", plan.rows, kTableBatch);
  simt::require_within("low_bit: rows of a cluster", plan.rows, kTableBatch, kTableRows);
  simt::with_constant<1, 2, 4, 8>("low_bit: blocks of a cluster", plan.splits, [](auto) {});
  simt::Launch launch =
      simt::row_of_blocks("gemv_tables", simt::blocks_for(shape.rows, plan.rows) * plan.splits,
                          kTableWarps * 32, static_cast<std::size_t>(kTableBytes + plan.rows * 4));
  launch.cluster = static_cast<unsigned>(plan.splits);
  launch.early = true;
  simt::launch(device, launch, gemv_tables, arrays, shape, TablePlan{plan.rows, plan.splits},
               simt::global(y, "y"));
}

}  // namespace

void start_gemv(simt::Device& device, const Matrix& matrix, const Quantized& w,
                const GemvPlan& plan, simt::Span<const std::uint16_t> x,
                simt::Span<std::uint16_t> y) {
  const bool ternary = w.format == Format::ternary;
  if (!ternary && w.format != Format::q4_k) refuse_format(w.format, "ternary, q4_k");
  if (plan.tables && !ternary) refuse_format(w.format, "ternary, of a GEMV by tables");
  check_few_bits(device, matrix, w);
  assert(x.count == static_cast<std::size_t>(matrix.columns));
  assert(y.count == static_cast<std::size_t>(matrix.rows));
  const auto bytes = [](simt::Span<std::uint8_t> span, const char* name) {
    return simt::global(simt::Span<const std::uint8_t>(span), name);
  };
  const GemvArrays arrays{simt::as<const uint4>(bytes(w.codes, "codes")),
                          simt::as<const float>(bytes(w.scales, "scale")), simt::global(x, "x")};
  const LinearShape shape{matrix.rows, matrix.columns, 1};
  if (plan.tables) return start_by_tables(device, arrays, shape, plan, y);
  if (ternary)
    return start_on_tensor_cores<TernaryOfLane, 16, 32, 64>(device, arrays, shape, plan, y);
  start_on_tensor_cores<Q4KOfLane, 16, 32>(device, arrays, shape, plan, y);
}

void start_dequantize_bf16(simt::Device& device, const Matrix& matrix, const Quantized& w,
                           simt::Span<std::uint16_t> numbers) {
  constexpr int kThreads = 256, kOfBlock = 4 * kThreads;  // words of eight codes
  if (w.format != Format::nvfp4 && (w.format != Format::int4 || w.group != Group::g128)) {
    refuse_format(w.format, "int4 in groups of 128, nvfp4");
  }
  check_few_bits(device, matrix, w);
  assert(numbers.count == numeric::elements_of(matrix.rows, matrix.columns));
  const auto words = static_cast<int>(numbers.count / 8);
  const auto start = [&](auto* kernel) {
    simt::launch(
        device, simt::row_of_blocks("dequantize_bf16", simt::blocks_for(words, kOfBlock), kThreads),
        kernel,
        simt::as<const unsigned>(simt::global(simt::Span<const std::uint8_t>(w.codes), "codes")),
        simt::global(simt::Span<const std::uint8_t>(w.scales), "scales"),
        simt::global(simt::Span<const Range>(w.ranges), "ranges") + matrix.rows, words,
        simt::as<uint4>(simt::global(numbers, "numbers")));
  };
  if (w.format == Format::nvfp4) return start(dequantize_bf16<Format::nvfp4>);
  start(dequantize_bf16<Format::int4>);
}

}  // namespace tilestep::low_bit::SIMT_BACKEND
