#pragma once

#include "kernels/numbers/accumulator_precision/kernels.hpp"
#include "kernels/numbers/accumulator_precision/lesson.hpp"
#include "tests/catch.hpp"
#include "tests/reports.hpp"

namespace tilestep::tests {

inline const accumulator_precision::Kernels& accumulator_kernels(const simt::Device& device) {
  return kernels_of<accumulator_precision::Kernels>(device, accumulator_precision::kLessonId);
}

inline lab::Report run_accumulators(simt::Device& device,
                                    const accumulator_precision::Params& params) {
  return run_on(device, accumulator_precision::lesson(),
                accumulator_precision::knob_table().settings(params));
}

}  // namespace tilestep::tests
