#pragma once

// What launch.cu calls of launch_products.cu.

#include "kernels/systems/triage/watch.hpp"

namespace tilestep::triage::SIMT_BACKEND {

inline constexpr int kThreads = 128;

void start_product(simt::Device& device, const char* name, Weights weights, const Product& product,
                   const ProductArrays& arrays, const Watch& watch);
void start_dequant(simt::Device& device, int rows, int k, simt::Span<const unsigned char> from,
                   simt::Span<const float> scales, simt::Span<std::uint16_t> to,
                   const Watch& watch);

}  // namespace tilestep::triage::SIMT_BACKEND
