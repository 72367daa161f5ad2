#pragma once

#include "kernels/machine/latency_hiding/kernels.hpp"

/// \file
/// The copy by TMA, compiled separately: on GPUs other than Hopper it is refused.
namespace tilestep::latency_hiding::SIMT_BACKEND {

void start_bulk_copy(simt::Device& device, const Grid& grid, const BulkShape& shape,
                     simt::Span<const float> in, simt::Span<float> out, const simt::Tape& on);
/// Resources of the probed one.
simt::Resources bulk_resources(simt::Device& device, const Grid& grid);

}  // namespace tilestep::latency_hiding::SIMT_BACKEND
