// Kernels that copy by cp.async, for cp_async_test.cu.

#include "tests/kernels/base/simt/hopper_faults.hpp"

namespace tilestep::simt::SIMT_BACKEND {

enum class CopyFault : int {
  none,
  no_wait,
  no_commit,
  no_meeting,   ///< nor a fence: the others' copies are read at once
  wait_one,     ///< lets the newest group be under way
  early_fence,  ///< fences before the wait
  no_fence,
};

/// Each of 64 threads brings four floats in two groups of two tiles, and reads those of another thread.
__global__ void turned(Global<const float> in, Global<float> out, CopyFault fault) {
  const auto tile = dynamic_shared<float>(512, 0, "the tile");
  const int at = static_cast<int>(threadIdx.x) * 4;
  for (int part = 0; part < 2; ++part) {
    cp_async16(tile + (part * 256 + at), in + (part * 256 + at));
    if (fault != CopyFault::no_commit) cp_async_commit();
  }
  if (fault == CopyFault::wait_one) {
    cp_async_wait<1>();
  } else if (fault != CopyFault::no_wait) {
    cp_async_wait<0>();
  }
  if (fault != CopyFault::no_meeting) __syncthreads();  // the others' copies must be there
  for (int i = at; i < at + 4; ++i) {
    out[i] = tile[255 - i];
    out[256 + i] = tile[511 - i];
  }
}

/// The same, watched; every fourth number comes by itself, and zero where it is not `inside`.
__global__ void turned_staged(Global<const float> in, Global<float> out, int inside,
                              CopyFault fault) {
  const auto tile = dynamic_shared<float>(256, 0, "the tile");
  const auto watched = hopper::staged<float>(shared_address(tile), 256, "the tile");
  for (int i = static_cast<int>(threadIdx.x); i < 256; i += 64) {
    cp_async4(tile + i, in + i, i < inside);
    if (fault != CopyFault::no_commit) cp_async_commit();
  }
  if (fault == CopyFault::wait_one) {
    cp_async_wait<1>();
  } else if (fault != CopyFault::no_wait) {
    cp_async_wait<0>();
  }
  if (fault != CopyFault::no_meeting) __syncthreads();  // the others' copies must be there
  for (int i = static_cast<int>(threadIdx.x); i < 256; i += 64) out[i] = watched[255 - i];
}

/// 32 threads bring 8 × 8 floats and have TMA store them.
__global__ void copied_store(Global<const float> in, const __grid_constant__ hopper::TensorMap map,
                             CopyFault fault) {
  const unsigned address = aligned_shared(256);
  const auto all = dynamic_shared<std::uint8_t>(256 + 1024, 0, "the tile");
  const auto tile = as<float>(all + static_cast<std::ptrdiff_t>(address - shared_address(all)));
  const int at = static_cast<int>(threadIdx.x) * 4;
  if (at < 64) cp_async16(tile + at, in + at);
  cp_async_commit();
  if (fault == CopyFault::early_fence) hopper::publish_to_async_proxy();
  if (fault != CopyFault::no_wait) cp_async_wait<0>();
  const bool late = fault != CopyFault::early_fence && fault != CopyFault::no_fence;
  if (late) hopper::publish_to_async_proxy();
  __syncthreads();  // all must have their copies, and fenced
  if (threadIdx.x != 0) return;
  hopper::store(map, address, 0, 0);
  hopper::store_commit();
  hopper::store_wait<0>();
}

}  // namespace tilestep::simt::SIMT_BACKEND
