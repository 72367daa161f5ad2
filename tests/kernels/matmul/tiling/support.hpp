#pragma once

#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/base/simt/backends.hpp"
#include "kernels/matmul/tiling/kernels.hpp"
#include "kernels/matmul/tiling/lesson.hpp"
#include "kernels/matmul/tiling/reference.hpp"

namespace tilestep::tests {

/// An emulated device that knows this lesson's kernels alone; with TILESTEP_TEST_BACKEND=cuda in
/// the environment the first CUDA device.
inline std::unique_ptr<simt::Device> tiling_device(
    simt::ThreadOrder order = simt::ThreadOrder::ascending, std::uint64_t seed = 1) {
  const char* backend = std::getenv("TILESTEP_TEST_BACKEND");
  if (backend != nullptr && std::string_view(backend) == "cuda") return simt::make_cuda_device();
  static const simt::KernelEntry table[] = {{tiling::kLessonId, tiling::kernels_emulated}};
  simt::EmulationOptions options;
  options.order = order;
  options.seed = seed;
  return simt::make_emulated_device(table, options);
}

inline const tiling::Kernels& tiling_kernels(const simt::Device& device) {
  return static_cast<const tiling::Kernels&>(device.kernels(tiling::kLessonId));
}

inline lab::Report run_tiling(simt::Device& device, const tiling::Params& params) {
  lab::NoProgress progress;
  return tiling::lesson().run(tiling::knob_table().settings(params), device, progress);
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
