#pragma once

#include <memory>
#include <string_view>

#include "kernels/base/simt/backends.hpp"
#include "kernels/memory/coalescing/kernels.hpp"
#include "kernels/memory/coalescing/lesson.hpp"

namespace tilestep::tests {

/// An emulated device that knows this lesson's kernels alone.
inline std::unique_ptr<simt::Device> coalescing_device(
    simt::ThreadOrder order = simt::ThreadOrder::ascending, std::uint64_t seed = 1) {
  static const simt::KernelEntry table[] = {{coalescing::kLessonId, coalescing::kernels_emulated}};
  simt::EmulationOptions options;
  options.order = order;
  options.seed = seed;
  return simt::make_emulated_device(table, options);
}

inline const coalescing::Kernels& coalescing_kernels(const simt::Device& device) {
  return static_cast<const coalescing::Kernels&>(device.kernels(coalescing::kLessonId));
}


inline lab::Report run_coalescing(simt::Device& device, const coalescing::Params& params) {
  lab::NoProgress progress;
  return coalescing::lesson().run(coalescing::knob_table().settings(params), device, progress);
}

}  // namespace tilestep::tests
