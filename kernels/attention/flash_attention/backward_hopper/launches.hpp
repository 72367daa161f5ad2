#pragma once

/// \file
/// What backward_hopper/backward_hopper_launch.cu gives backward_launch.cu: these kernels are compiled beside the others, not behind
/// them.

#include "kernels/attention/flash_attention/backward_hopper/problem.hpp"
#include "kernels/base/simt/resources.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::flash_attention::backward_hopper::SIMT_BACKEND {

void run(simt::Device& device, const Problem& problem, const Arrays& arrays);
simt::Resources resources(simt::Device& device, const Problem& problem);

}  // namespace tilestep::flash_attention::backward_hopper::SIMT_BACKEND
