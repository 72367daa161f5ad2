#pragma once

#include "kernels/attention/online_softmax/kernels.hpp"
#include "kernels/attention/online_softmax/lesson.hpp"
#include "tests/catch.hpp"
#include "tests/reports.hpp"

namespace tilestep::tests {

inline lab::Report run_softmax(simt::Device& device, const online_softmax::Params& params) {
  return run_on(device, online_softmax::lesson(), online_softmax::knob_table().settings(params));
}

}  // namespace tilestep::tests
