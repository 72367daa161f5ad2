#pragma once

#include <cstdlib>
#include <memory>
#include <string_view>

#include "kernels/base/simt/backends.hpp"
#include "kernels/numbers/accumulator_precision/kernels.hpp"
#include "kernels/numbers/accumulator_precision/lesson.hpp"

namespace tilestep::tests {

/// An emulated device that knows this lesson's kernels alone; with TILESTEP_TEST_BACKEND=cuda the
/// GPU of this machine.
inline std::unique_ptr<simt::Device> accumulator_device(
    simt::ThreadOrder order = simt::ThreadOrder::ascending, std::uint64_t seed = 1) {
  const char* backend = std::getenv("TILESTEP_TEST_BACKEND");
  if (backend != nullptr && std::string_view(backend) == "cuda") return simt::make_cuda_device();
  static const simt::KernelEntry table[] = {
      {accumulator_precision::kLessonId, accumulator_precision::kernels_emulated}};
  simt::EmulationOptions options;
  options.order = order;
  options.seed = seed;
  return simt::make_emulated_device(table, options);
}

inline const accumulator_precision::Kernels& accumulator_kernels(const simt::Device& device) {
  return static_cast<const accumulator_precision::Kernels&>(
      device.kernels(accumulator_precision::kLessonId));
}

inline lab::Report run_accumulators(simt::Device& device,
                                    const accumulator_precision::Params& params) {
  lab::NoProgress progress;
  return accumulator_precision::lesson().run(accumulator_precision::knob_table().settings(params),
                                             device, progress);
}

}  // namespace tilestep::tests
