#pragma once

/// \file
/// The interface of launch_latent.cu to launch.cu.

#include "kernels/attention/decode/latent/problem.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::decode::latent::SIMT_BACKEND {

/// Kernels::attend_latent.
void attend(simt::Device& device, const paged::Problem& problem, const paged::Arrays& arrays,
            const simt::Tape& tape);

}  // namespace tilestep::decode::latent::SIMT_BACKEND
