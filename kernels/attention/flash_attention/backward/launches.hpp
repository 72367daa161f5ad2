#pragma once

/// \file
/// What backward_launch.cu gives launch.cu: these kernels are compiled beside the others, not behind them.

#include "kernels/attention/flash_attention/backward/kernels.hpp"

namespace tilestep::flash_attention::SIMT_BACKEND {

const BackwardKernels& backward_kernels();

}  // namespace tilestep::flash_attention::SIMT_BACKEND
