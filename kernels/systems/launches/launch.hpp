#pragma once

// What launch.cu calls of launch_persistent.cu.

#include "kernels/systems/launches/device.hpp"

namespace tilestep::launches::SIMT_BACKEND {

/// `tape` is empty where nothing is noted.
void start_persistent(simt::Device& device, const StepShape& shape, const ModelArrays& arrays,
                      const Stamps& stamps, bool barriers, const simt::Tape& tape);

}  // namespace tilestep::launches::SIMT_BACKEND
