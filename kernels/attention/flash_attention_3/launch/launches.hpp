#pragma once

/// \file
/// launch_timed.cu's and launch_explained.cu's interface to launch.cu: flash-3's kernels compile in parallel.

#include "kernels/attention/flash_attention_3/problem.hpp"
#include "kernels/base/simt/resources.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::flash_attention_3::SIMT_BACKEND {

void explain_here(simt::Device& device, const Problem& problem, const Arrays<float>& arrays,
                  int keys, const simt::Tape& tape);
void run_here(simt::Device& device, const Problem& problem, const Arrays<std::uint16_t>& arrays);
simt::Resources resources_here(simt::Device& device, const Problem& problem);

}  // namespace tilestep::flash_attention_3::SIMT_BACKEND
