// Accumulator precision: the shapes that the kernels of sums.cu and tensor_core.cu accept, and their
// launches.

#include <cassert>
#include <cstddef>
#include <string>

#include "kernels/base/numeric/index.hpp"
#include "kernels/numbers/accumulator_precision/kernels.hpp"
#include "kernels/numbers/accumulator_precision/sums.cu"
#if defined(__CUDACC__)
#include "kernels/numbers/accumulator_precision/tensor_core.cu"
#endif

namespace tilestep::accumulator_precision::SIMT_BACKEND {

/// Throws Error naming the size that is not allowed.
void check_sums(const SumShape& shape, const SumMethod& method, std::size_t terms,
                std::size_t sums) {
  simt::require_within("accumulator_precision: terms", shape.terms, 1, kMaxTerms);
  simt::require_within("accumulator_precision: sums", shape.sums, 1, kMaxTerms);
  simt::require_within("accumulator_precision: promote_every", method.promote_every, 1, kMaxTerms);
  assert(terms == numeric::elements_of(shape.terms, shape.sums));
  assert(sums == static_cast<std::size_t>(shape.sums));
  (void)terms, (void)sums;
}

/// Throws Error for an empty matrix.
void check_matrices(const GemmShape& shape, std::size_t a, std::size_t b, std::size_t c) {
  simt::require_within("accumulator_precision: m", shape.m, 1);
  simt::require_within("accumulator_precision: n", shape.n, 1);
  simt::require_within("accumulator_precision: k", shape.k, 1);
  assert(a == numeric::elements_of(shape.m, shape.k));
  assert(b == numeric::elements_of(shape.n, shape.k));
  assert(c == numeric::elements_of(shape.m, shape.n));
  (void)a, (void)b, (void)c;
}

/// Throws Error for blocks that end inside 128 of k.
void check_scales(const GemmShape& shape, const ScaledOperands& operands) {
  for (const ScaleBlock& block : {operands.a_block, operands.b_block}) {
    if (block.rows < 1 || block.columns < 1 ||
        (block.columns % 128 != 0 && block.columns < shape.k)) {
      throw Error("scaled_gemm: a scale for every " + std::to_string(block.rows) + " × " +
                  std::to_string(block.columns) +
                  " elements is not possible; along k the block must be a multiple of 128, or all");
    }
  }
  assert(operands.a_scales.count == scale_count(operands.a_block, shape.m, shape.k));
  assert(operands.b_scales.count == scale_count(operands.b_block, shape.n, shape.k));
}

/// Throws Error (unavailable) if the device lacks the instruction, Error for a shape that the
/// kernel does not support.
void check_tensor_core(const simt::DeviceInfo& device, GemmVariant variant,
                       const GemmShape& shape) {
  if (!can_run(device, variant)) {
    simt::refuse_device(device, std::string(name_of(variant)),
                        needs_hopper(variant)
                            ? "the tensor cores of a Hopper GPU (compute capability 9.0)"
                            : "the tensor cores of a GPU of compute capability 8.0 or newer");
  }
  simt::require_multiple("accumulator_precision: m", shape.m, kGemmTile);
  simt::require_multiple("accumulator_precision: n", shape.n, kGemmTile);
  simt::require_multiple("accumulator_precision: k", shape.k, kGemmTile);
}

template <class Tape>
void launch_sums(simt::Device& device, const SumShape& shape, const SumMethod& method,
                 simt::Span<const float> terms, simt::Span<float> sums, int threads,
                 const Tape& tape) {
  const auto start = [&](const char* name, auto kernel) {
    const int block = threads < 64 ? threads : 64;
    simt::launch(device, simt::row_of_blocks(name, simt::blocks_for(threads, block), block), kernel,
                 simt::global(terms, "terms"), simt::global(sums, "sums"), shape, method, tape);
  };
  switch (method.method) {
    case Method::promoted:
      return start("promoted_sum", promoted_sum<Tape>);
    case Method::kahan:
      return start("kahan_sum", kahan_sum<Tape>);
    case Method::pairwise:
      return start("pairwise_sum", pairwise_sum<Tape>);
    default:
      return start("rounded_sum", rounded_sum<Tape>);
  }
}

simt::Launch over_matrix(const char* name, const GemmShape& shape) {
  constexpr int kEdge = 16;
  const auto blocks = [](int extent) {
    return static_cast<unsigned>(simt::blocks_for(extent, kEdge));
  };
  return {
      .name = name, .grid = dim3(blocks(shape.n), blocks(shape.m)), .block = dim3(kEdge, kEdge)};
}

#if defined(__CUDACC__)
simt::Launch launch_of(const char* name, const GemmShape& shape, int stages) {
  return {
      .name = name,
      .grid = dim3(static_cast<unsigned>(shape.n / kTile), static_cast<unsigned>(shape.m / kTile)),
      .block = dim3(kThreads),
      .shared_bytes = shared_bytes(stages)};
}

void launch_tensor_core(simt::Device& device, GemmVariant variant, const GemmShape& shape,
                        const GemmOperands& operands) {
  const GemmOperands& o = operands;
  switch (variant) {
    case GemmVariant::wgmma_fp8:
      return simt::launch(device, launch_of("wgmma_fp8", shape, kWgmmaStages<false>),
                          wgmma_fp8<false>, o.a.data, o.b.data, o.c.data, shape);
    case GemmVariant::wgmma_fp8_promoted:
      return simt::launch(device, launch_of("wgmma_fp8_promoted", shape, kWgmmaStages<true>),
                          wgmma_fp8<true>, o.a.data, o.b.data, o.c.data, shape);
    case GemmVariant::mma_fp16_acc16:
      return simt::launch(device, launch_of("mma_fp16_acc16", shape, kMmaStages),
                          mma_16bit<Fp16Acc16>, o.a_fp16.data, o.b_fp16.data, o.c.data, shape);
    case GemmVariant::mma_fp16_acc32:
      return simt::launch(device, launch_of("mma_fp16_acc32", shape, kMmaStages),
                          mma_16bit<Fp16Acc32>, o.a_fp16.data, o.b_fp16.data, o.c.data, shape);
    case GemmVariant::mma_bf16:
      return simt::launch(device, launch_of("mma_bf16", shape, kMmaStages), mma_16bit<Bf16Acc32>,
                          o.a_bf16.data, o.b_bf16.data, o.c.data, shape);
  }
}
#endif

class KernelsHere final : public Kernels {
 public:
  void sums(simt::Device& device, const SumShape& shape, const SumMethod& method,
            simt::Span<const float> terms, simt::Span<float> sums,
            const simt::Tape& tape) const override {
    check_sums(shape, method, terms.count, sums.count);
    simt::with_tape(tape, [&](const auto& chosen) {
      launch_sums(device, shape, method, terms, sums, tape ? 1 : shape.sums, chosen);
    });
  }

  void scaled_gemm(simt::Device& device, const GemmShape& shape,
                   const ScaledOperands& operands) const override {
    check_scales(shape, operands);
    check_matrices(shape, operands.a.count, operands.b.count, operands.c.count);
    simt::launch(device, over_matrix("scaled_gemm", shape), SIMT_BACKEND::scaled_gemm,
                 simt::global(operands.a, "A"), simt::global(operands.b, "B"),
                 simt::global(operands.a_scales, "scales of A"),
                 simt::global(operands.b_scales, "scales of B"), operands.a_block, operands.b_block,
                 simt::global(operands.c, "C"), shape);
  }

  void exact_gemm(simt::Device& device, const GemmShape& shape, simt::Span<const std::uint8_t> a,
                  simt::Span<const std::uint8_t> b, simt::Span<double> c) const override {
    check_matrices(shape, a.count, b.count, c.count);
    simt::launch(device, over_matrix("exact_gemm", shape), SIMT_BACKEND::exact_gemm,
                 simt::global(a, "A"), simt::global(b, "B"), simt::global(c, "C"), shape);
  }

  void widen(simt::Device& device, simt::Span<const std::uint8_t> bits,
             simt::Span<std::uint16_t> fp16, simt::Span<std::uint16_t> bf16) const override {
    assert(fp16.count == bits.count && bf16.count == bits.count);
    const auto count = static_cast<std::int64_t>(bits.count);
    simt::launch(device, simt::row_of_blocks("widen", simt::blocks_for(count, 256), 256),
                 SIMT_BACKEND::widen, simt::global(bits, "bits"), simt::global(fp16, "FP16"),
                 simt::global(bf16, "BF16"), static_cast<unsigned long long>(bits.count));
  }

  void tensor_core_gemm(simt::Device& device, GemmVariant variant, const GemmShape& shape,
                        const GemmOperands& operands) const override {
    check_tensor_core(device.info(), variant, shape);
#if defined(__CUDACC__)
    launch_tensor_core(device, variant, shape, operands);
#else
    (void)operands;  // check_tensor_core has thrown: there is no tensor core here
#endif
  }
};

}  // namespace tilestep::accumulator_precision::SIMT_BACKEND
SIMT_KERNEL_SET(accumulator_precision, KernelsHere)
