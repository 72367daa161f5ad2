#pragma once

#include <vector>

#include "kernels/matmul/tiling/kernels.hpp"
#include "kernels/matmul/tiling/reference.hpp"
#include "tests/catch.hpp"
#include "tests/reports.hpp"

namespace tilestep::tests {

inline const tiling::Kernels& tiling_kernels(const simt::Device& device) {
  return kernels_of<tiling::Kernels>(device, tiling::kLessonId);
}

/// What a rung wrote, and how many elements it loaded (0 unless `counted`).
struct GemmRun {
  std::vector<float> c;
  std::int64_t loads = 0;
};

inline GemmRun run_gemm(simt::Device& device, tiling::Variant variant, int configuration,
                        const tiling::GemmShape& shape, const tiling::Matrices& matrices,
                        bool counted) {
  const tiling::Kernels& kernels = tiling_kernels(device);
  simt::Buffer<float> c(device,
                        static_cast<std::size_t>(shape.m) * static_cast<std::size_t>(shape.n));
  c.fill(0xFF);
  simt::Buffer<unsigned long long> loads(device, 1);
  loads.fill(0);
  const auto count_into = counted ? loads.span() : simt::Span<unsigned long long>{};
  if (variant == tiling::Variant::tensor_core) {
    const auto a_bits = tiling::bf16_bits(matrices.a);
    const auto b_bits = tiling::bf16_bits(matrices.b);
    const simt::Buffer<std::uint16_t> a(device, std::span<const std::uint16_t>(a_bits));
    const simt::Buffer<std::uint16_t> b(device, std::span<const std::uint16_t>(b_bits));
    kernels.gemm_bf16(device, configuration, shape, {a.span(), b.span(), c.span(), count_into});
    device.synchronize();
  } else {
    const simt::Buffer<float> a(device, std::span<const float>(matrices.a));
    const simt::Buffer<float> b(device, std::span<const float>(matrices.b));
    kernels.gemm(device, variant, configuration, shape, {a.span(), b.span(), c.span(), count_into});
    device.synchronize();
  }
  return {c.download(), static_cast<std::int64_t>(loads.download().front())};
}

/// How many elements of C are wrong (NaN included).
inline int wrong_elements(const std::vector<float>& c, const tiling::Product& reference) {
  int wrong = 0;
  for (std::size_t i = 0; i < c.size(); ++i) {
    const double off = static_cast<double>(c[i]) - reference.c[i];
    const bool good = off <= reference.bound[i] && -off <= reference.bound[i];
    wrong += good ? 0 : 1;
  }
  return wrong;
}

}  // namespace tilestep::tests
