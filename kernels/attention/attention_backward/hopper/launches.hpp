#pragma once

/// \file
/// What hopper/launch_timed.cu gives launch.cu: these kernels are compiled beside the others, not behind
/// them.

#include "kernels/attention/attention_backward/hopper/problem.hpp"
#include "kernels/base/simt/resources.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::attention_backward::hopper::SIMT_BACKEND {

void run(simt::Device& device, const Problem& problem, const Arrays& arrays);
simt::Resources resources(simt::Device& device, const Problem& problem);

}  // namespace tilestep::attention_backward::hopper::SIMT_BACKEND
