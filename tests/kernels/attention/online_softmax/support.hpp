#pragma once

#include <memory>

#include "kernels/attention/online_softmax/kernels.hpp"
#include "kernels/attention/online_softmax/lesson.hpp"
#include "kernels/base/simt/backends.hpp"

namespace tilestep::tests {

/// ThreadSanitizer makes each switch between emulated threads some fifty times slower; the sweeps
/// take fewer shapes there.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kFewShapes = true;
#else
inline constexpr bool kFewShapes = false;
#endif

/// An emulated device that knows this lesson's kernels alone.
inline std::unique_ptr<simt::Device> softmax_device(
    simt::ThreadOrder order = simt::ThreadOrder::ascending, std::uint64_t seed = 1) {
  static const simt::KernelEntry table[] = {
      {online_softmax::kLessonId, online_softmax::kernels_emulated}};
  simt::EmulationOptions options;
  options.order = order;
  options.seed = seed;
  return simt::make_emulated_device(table, options);
}

inline const online_softmax::Kernels& softmax_kernels(const simt::Device& device) {
  return static_cast<const online_softmax::Kernels&>(device.kernels(online_softmax::kLessonId));
}

inline lab::Report run_softmax(simt::Device& device, const online_softmax::Params& params) {
  lab::NoProgress progress;
  return online_softmax::lesson().run(online_softmax::knob_table().settings(params), device,
                                      progress);
}

}  // namespace tilestep::tests
