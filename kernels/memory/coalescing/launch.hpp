#pragma once

#include <cstdint>

#include "kernels/base/simt/simt.hpp"
#include "kernels/memory/coalescing/kernels.hpp"

/// The launches of ladders.cu, which access.cu puts behind the interface `Kernels`.
/// What each does is said there.
namespace tilestep::coalescing::SIMT_BACKEND {

using Index = std::int64_t;

/// Blocks of `block` threads for `threads` threads. Throws Error for more than a grid can have.
inline dim3 blocks_for(Index threads, int block) {
  const Index blocks = (threads + block - 1) / block;
  if (blocks > simt::kMaxGridX) throw Error("a launch of more than 2147483647 blocks");
  return dim3(static_cast<unsigned>(blocks));
}

void launch_fill_random(simt::Device& device, simt::Span<unsigned> words, unsigned seed);
void launch_copy(simt::Device& device, CopyRung rung, const CopyConfig& config,
                 simt::Span<const float> in, simt::Span<float> out);
void launch_transpose(simt::Device& device, TransposeRung rung, const TransposeShape& shape,
                      simt::Span<const float> in, simt::Span<float> out);
void launch_transpose_traced(simt::Device& device, TransposeRung rung, int rows, int columns,
                             simt::Span<const float> in, simt::Span<float> out,
                             const simt::TraceBuffer& trace);
void launch_count_wrong(simt::Device& device, std::int64_t rows, std::int64_t columns,
                        unsigned seed, simt::Span<const unsigned> out,
                        simt::Span<unsigned long long> wrong);

}  // namespace tilestep::coalescing::SIMT_BACKEND
