#pragma once

#include <cassert>
#include <cstddef>
#include <string>

#include "kernels/base/simt/error.hpp"
#include "kernels/numbers/accumulator_precision/kernels.hpp"

/// Which shapes the kernels take, the same for both backends, and what the .cu files share.
namespace tilestep::accumulator_precision {

/// Throws Error naming the size that is not allowed.
inline void check_sums(const SumShape& shape, const SumMethod& method, std::size_t terms,
                       std::size_t sums) {
  const auto within = [](const char* what, int value, int most) {
    if (value >= 1 && value <= most) return;
    throw Error("accumulator_precision: " + std::string(what) + " is " + std::to_string(value) +
                "; allowed: 1–" + std::to_string(most));
  };
  within("terms", shape.terms, kMaxTerms);
  within("sums", shape.sums, kMaxTerms);
  within("promote_every", method.promote_every, kMaxTerms);
  assert(terms == static_cast<std::size_t>(shape.terms) * static_cast<std::size_t>(shape.sums));
  assert(sums == static_cast<std::size_t>(shape.sums));
  (void)terms, (void)sums;
}

/// Throws Error for an empty matrix.
inline void check_matrices(const GemmShape& shape, std::size_t a, std::size_t b, std::size_t c) {
  if (shape.m < 1 || shape.n < 1 || shape.k < 1) {
    throw Error("accumulator_precision: a product of " + std::to_string(shape.m) + " × " +
                std::to_string(shape.k) + " by " + std::to_string(shape.k) + " × " +
                std::to_string(shape.n) + " has nothing to do; all sizes must be 1 or more");
  }
  [[maybe_unused]] const auto area = [](int rows, int columns) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  };
  assert(a == area(shape.m, shape.k) && b == area(shape.n, shape.k) && c == area(shape.m, shape.n));
  (void)a, (void)b, (void)c;
}

/// How many scales a matrix [rows × k] has.
inline std::size_t scale_count(const ScaleBlock& block, int rows, int k) {
  const auto blocks = [](int extent, int size) {
    return static_cast<std::size_t>((extent + size - 1) / size);
  };
  return blocks(rows, block.rows) * blocks(k, block.columns);
}

/// Throws Error for blocks that end inside 128 of k.
inline void check_scales(const GemmShape& shape, const ScaledOperands& operands) {
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

inline bool needs_hopper(GemmVariant variant) {
  return variant == GemmVariant::wgmma_fp8 || variant == GemmVariant::wgmma_fp8_promoted;
}

/// Whether `device` has the instruction of `variant`. wgmma exists on compute capability 9.0 alone.
inline bool can_run(const simt::DeviceInfo& device, GemmVariant variant) {
  return needs_hopper(variant) ? device.compute_capability == 90 : device.compute_capability >= 80;
}

/// Throws Error (unavailable) if the device lacks the instruction, Error for a shape that the
/// kernel does not take.
inline void check_tensor_core(const simt::DeviceInfo& device, GemmVariant variant,
                              const GemmShape& shape) {
  const std::string name(to_text(variant));
  if (!can_run(device, variant)) {
    throw Error(
        name + " needs the tensor cores of " +
            (needs_hopper(variant) ? "a Hopper GPU (compute capability 9.0)"
                                   : "a GPU of compute capability 8.0 or newer (Ampere)") +
            ", and " + device.name +
            (device.compute_capability == 0
                 ? " runs the kernels under emulation"
                 : " has compute capability " + std::to_string(device.compute_capability / 10) +
                       "." + std::to_string(device.compute_capability % 10)),
        ExitCode::unavailable);
  }
  for (const int size : {shape.m, shape.n, shape.k}) {
    if (size >= kGemmTile && size % kGemmTile == 0) continue;
    throw Error(name + ": a size of " + std::to_string(size) +
                " is not possible; m, n and k must be multiples of " + std::to_string(kGemmTile));
  }
}

namespace cuda_backend {
/// In tensor_core.cu. The shape and the device were checked.
void launch_tensor_core(simt::Device& device, GemmVariant variant, const GemmShape& shape,
                        const GemmOperands& operands);
}  // namespace cuda_backend

}  // namespace tilestep::accumulator_precision
