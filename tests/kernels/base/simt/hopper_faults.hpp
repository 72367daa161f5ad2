#pragma once

// What the small kernels of Hopper's words share.

#include <cstdint>

#include "kernels/base/simt/hopper.hpp"

namespace tilestep::simt::SIMT_BACKEND {

/// What a kernel leaves out or does wrong.
enum class Fault : int {
  none,
  full_wait,      ///< consumers do not wait for a stage to be full
  half_waits,     ///< only half of the consumers do
  empty_wait,     ///< the producer does not wait for a stage to be empty
  early_release,  ///< a stage is released before its products are waited for
  no_begin,       ///< no wgmma_begin
  no_commit,      ///< no wgmma_commit
  no_wait,        ///< no wgmma_wait at the end
  few_bytes,      ///< the barrier expects 16 bytes too few
  many_bytes,     ///< or too many
  no_publish,     ///< TMA is not told of the barriers
  no_meeting,     ///< no __syncthreads() after barrier_init
  no_fence,       ///< no publish_to_async_proxy
  no_use,         ///< nobody waits for a copy or reads it
  no_store_wait,
  no_store_commit,
  touched_sums,  ///< written before the wait
};

constexpr int kAlignment = 1024;

/// Dynamic shared memory from the first address on that every swizzle allows.
__device__ inline unsigned aligned_shared(int bytes) {
  const unsigned raw = shared_address(
      dynamic_shared<std::uint8_t>(static_cast<std::size_t>(bytes + kAlignment), 0, "stages"));
  return (raw + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace tilestep::simt::SIMT_BACKEND
