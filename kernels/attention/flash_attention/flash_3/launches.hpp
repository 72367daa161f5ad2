#pragma once

/// \file
/// What flash_3/flash_3_launch.cu gives launch.cu: flash-3's kernels are compiled beside the others, not behind them.

#include "kernels/attention/flash_attention/flash_3/problem.hpp"
#include "kernels/base/simt/resources.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::flash_attention::flash_3::SIMT_BACKEND {

void explain(simt::Device& device, const Problem& problem, const Arrays<float>& arrays,
             const Explanation& what);
void run(simt::Device& device, const Problem& problem, const Arrays<std::uint16_t>& arrays);
simt::Resources resources(simt::Device& device, const Problem& problem);

}  // namespace tilestep::flash_attention::flash_3::SIMT_BACKEND
