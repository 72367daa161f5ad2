#pragma once

#include "kernels/memory/coalescing/kernels.hpp"
#include "kernels/memory/coalescing/lesson.hpp"
#include "tests/catch.hpp"
#include "tests/reports.hpp"

namespace tilestep::tests {

inline const coalescing::Kernels& coalescing_kernels(const simt::Device& device) {
  return kernels_of<coalescing::Kernels>(device, coalescing::kLessonId);
}

inline lab::Report run_coalescing(simt::Device& device, const coalescing::Params& params) {
  return run_on(device, coalescing::lesson(), coalescing::knob_table().settings(params));
}

}  // namespace tilestep::tests
