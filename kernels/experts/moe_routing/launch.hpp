#pragma once

/// \file
/// What routing.cu, which owns the kernel set, takes from the files of the large product.

#include <span>

#include "kernels/base/simt/simt.hpp"  // SIMT_BACKEND
#include "kernels/experts/moe_routing/kernels.hpp"

namespace tilestep::moe_routing::SIMT_BACKEND {

// grouped_mma.cu, on both backends; configurations that need Hopper come from
// grouped_wgmma.cu and are listed last, under nvcc alone.
std::span<const Configuration> gemm_configurations();
void launch_grouped_gemm(simt::Device& device, int configuration, const GroupedShape& shape,
                         const GroupedArrays& arrays, const TileRecording& recording);
LibraryStatus library_status(simt::Device& device);
void launch_library_loop(simt::Device& device, const GroupedShape& shape,
                         const GroupedArrays& arrays, std::span<const int> first_slot,
                         std::span<const int> kept);

}  // namespace tilestep::moe_routing::SIMT_BACKEND
