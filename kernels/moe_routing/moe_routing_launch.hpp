#pragma once

/// \file
/// What moe_routing.cu, which owns the kernel set, takes from the files of the large product.

#include <span>

#include "moe_routing/moe_routing_kernels.hpp"
#include "simt/simt.hpp"  // SIMT_BACKEND

namespace tilestep::moe_routing::SIMT_BACKEND {

// moe_routing_gemm.cu, on both backends; configurations that need Hopper come from
// moe_routing_sm90.cu and are listed last, under nvcc alone.
std::span<const Configuration> gemm_configurations();
void launch_grouped_gemm(simt::Device& device, int configuration, const GroupedShape& shape,
                         const GroupedArrays& arrays, const TileRecording& recording);
LibraryStatus library_status(simt::Device& device);
void launch_library_loop(simt::Device& device, const GroupedShape& shape,
                         const GroupedArrays& arrays, std::span<const int> first_slot,
                         std::span<const int> kept);

}  // namespace tilestep::moe_routing::SIMT_BACKEND
