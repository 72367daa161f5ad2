#pragma once

/// \file
/// What simt adds to plain CUDA C++. Included by simt.hpp under nvcc.

#include <cmath>

#include "kernels/base/simt/cuda/cuda_launch.hpp"

namespace tilestep::simt {

/// What a kernel takes for an array in global memory.
template <class T>
using Global = T*;
/// The same, with the promise that nothing else points to the elements.
template <class T>
using GlobalRestrict = T* __restrict__;
/// A part of dynamic shared memory.
template <class T>
using Shared = T*;

/// `span` as a kernel argument; `name` is for the error texts of the emulation.
template <class T>
Global<T> global(Span<T> span, [[maybe_unused]] const char* name) {
  return span.data;
}

#if defined(SIMT_EDITED_IMAGE)
extern "C" __device__ cuda::WatchPage simt_watch_page;
__device__ cuda::WatchPage simt_watch_page;
#endif

/// Shows a number: each thread that comes here adds `value` to the table *Watched* of the run. Kernels that
/// are built in have no page to write to, and leave nothing of it.
template <class Number>
__device__ inline void watch([[maybe_unused]] const char* name, [[maybe_unused]] Number value,
                             [[maybe_unused]] unsigned line = __builtin_LINE()) {
#if defined(SIMT_EDITED_IMAGE)
  const unsigned long long slot = atomicAdd(&simt_watch_page.count, 1ULL);
  if (slot >= kMostWatched) return;
  cuda::WatchPage::Entry& entry = simt_watch_page.entries[slot];
  for (int i = 0; i < 31; ++i) {
    entry.name[i] = name[i];
    if (name[i] == 0) break;
  }
  entry.name[31] = 0;
  entry.line = line;
  entry.block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  entry.thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  entry.value = static_cast<double>(value);
#endif
}

/// `count` elements of the block's dynamic shared memory, from `byte_offset` on (a multiple of T's
/// alignment). The emulation checks both; a GPU takes them on trust.
template <class T>
__device__ __forceinline__ T* dynamic_shared([[maybe_unused]] std::size_t count,
                                             std::size_t byte_offset = 0,
                                             [[maybe_unused]] const char* name = nullptr) {
  extern __shared__ __align__(16) unsigned char simt_dynamic_shared_memory[];
  return reinterpret_cast<T*>(simt_dynamic_shared_memory + byte_offset);
}

/// The same memory as elements of type V (float4, int2, …), to which it must be aligned.
template <class V, class T>
__host__ __device__ __forceinline__ auto as(T* pointer) {
  using Element = std::conditional_t<std::is_const_v<T>, const V, V>;
  return reinterpret_cast<Element*>(pointer);
}

/// Starts `kernel` on every thread of the launch and returns at once. Throws Error that names the
/// kernel for a launch that the device refuses; what goes wrong in a thread is reported by the
/// next `Device::synchronize` or copy.
template <class... Params, class... Args>
void launch(Device& device, const Launch& shape, void (*kernel)(Params...), Args&&... args) {
  static_assert(sizeof...(Params) == sizeof...(Args),
                "the kernel takes another number of arguments");
  const cudaStream_t stream =
      cuda::before_launch(device, shape, reinterpret_cast<const void*>(kernel));
  // nvcc reads neighbouring words of shared memory together, up to 16 bytes from a multiple of 16,
  // also where the loop uses fewer of them: what it reads must lie inside the allocation.
  const std::size_t shared_bytes = (shape.shared_bytes + 15) / 16 * 16;
  const void* edited = cuda::edited_kernel(device, reinterpret_cast<const void*>(kernel));
  cudaLaunchAttribute attributes[2]{};
  unsigned count = 0;
  if (shape.cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {shape.cluster, 1, 1};
  }
  if (shape.early && device.info().compute_capability >= 90) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (count == 0 && edited == nullptr) {
    kernel<<<shape.grid, shape.block, shared_bytes, stream>>>(static_cast<Params>(args)...);
  } else {
    cudaLaunchConfig_t config{};
    config.gridDim = shape.grid;
    config.blockDim = shape.block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = count;
    // What it returns is also the last error, which after_launch asks for.
    if (edited == nullptr) {
      static_cast<void>(cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...));
    } else {
      cuda::launch_edited<Params...>(config, edited, static_cast<Params>(args)...);
    }
  }
  const cuda::PointerArgument pointers[] = {
      cuda::pointer_argument<Params>(static_cast<Params>(args))..., {nullptr, false}};
  cuda::note_launch(device, shape, pointers, sizeof...(Params));
  cuda::after_launch(device, shape);
}

}  // namespace tilestep::simt
