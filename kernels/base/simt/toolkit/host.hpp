#pragma once

/// \file
/// CUDA's words of the host for a whole program under emulation (kernels/base/inspect): memory, copies, launches, streams,
/// events, errors and properties, with the meaning that the CUDA Runtime API's reference gives them. Everything a
/// stream is given is done at once. Every word passes on where it stands.

#include <cstddef>
#include <cstring>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/base/simt/program.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/base/simt/toolkit/ptx.hpp"

#if defined(SIMT_INLINED)
#undef __device__
#define __device__ __attribute__((always_inline))
#endif

enum cudaError_t : int {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidSymbol = 13,
  cudaErrorInvalidMemcpyDirection = 21,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorLaunchFailure = 719,
  cudaErrorNotSupported = 801,
};
using cudaError = cudaError_t;
enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};
struct CUstream_st {
  int number;
};
struct CUevent_st {
  double at = -1;
};
using cudaStream_t = CUstream_st*;
using cudaEvent_t = CUevent_st*;

inline constexpr unsigned cudaStreamDefault = 0, cudaStreamNonBlocking = 1, cudaEventDefault = 0,
                          cudaEventBlockingSync = 1, cudaEventDisableTiming = 2,
                          cudaHostAllocDefault = 0, cudaHostAllocPortable = 1,
                          cudaHostAllocMapped = 2, cudaHostAllocWriteCombined = 4,
                          cudaMemAttachGlobal = 1, cudaMemAttachHost = 2,
                          cudaDeviceScheduleAuto = 0, cudaDeviceMapHost = 8;
inline constexpr int cudaCpuDeviceId = -1, cudaInvalidDeviceId = -2;

/// How the source calls a pointer: the rewriter (workbench/cuda_words.cpp) puts it before the pointer.
struct simt_name {
  const char* text;
};
/// The words of a kernel, also where a macro gives them.
#define SIMT_NAME(...) SIMT_TEXT(__VA_ARGS__)
#define SIMT_TEXT(...) #__VA_ARGS__
#define SIMT_HERE ::tilestep::simt::Location::current()
#define SIMT_AT tilestep::simt::Location at = ::tilestep::simt::Location::current()

namespace tilestep::program {

template <class T>
constexpr std::size_t size_of() {
  if constexpr (std::is_void_v<std::remove_cv_t<T>> || std::is_function_v<T>) {
    return 0;
  } else {
    return sizeof(T);
  }
}
inline cudaError_t error(int number) {
  return static_cast<cudaError_t>(number);
}
inline int number_of(cudaStream_t stream) {
  return stream == nullptr || stream == reinterpret_cast<cudaStream_t>(1) ||
                 stream == reinterpret_cast<cudaStream_t>(2)
             ? 0
             : stream->number;
}
inline Direction direction_of(cudaMemcpyKind kind) {
  return kind == cudaMemcpyHostToHost       ? Direction::host_to_host
         : kind == cudaMemcpyHostToDevice   ? Direction::to_device
         : kind == cudaMemcpyDeviceToHost   ? Direction::to_host
         : kind == cudaMemcpyDeviceToDevice ? Direction::on_device
                                            : Direction::by_address;
}
template <class To, class From>
cudaError_t copy_one(To* to, const From* from, std::size_t bytes, cudaMemcpyKind kind,
                     cudaStream_t stream, Location at) {
  constexpr std::size_t kElement = size_of<To>() > 0 ? size_of<To>() : size_of<From>();
  return error(copy({.to = const_cast<std::remove_cv_t<To>*>(to),
                     .from = from,
                     .bytes = bytes,
                     .element = kElement,
                     .direction = direction_of(kind),
                     .stream = number_of(stream)},
                    at));
}

}  // namespace tilestep::program

// ---- memory ("Memory Management") ----------------------------------------------------------------

#define SIMT_ALLOCATOR(name, kind)                                                         \
  template <class T>                                                                       \
  cudaError_t name(simt_name called, T** to, std::size_t bytes, SIMT_AT) {                 \
    return tilestep::program::error(tilestep::program::allocate(                           \
        reinterpret_cast<void**>(to), bytes, called.text, tilestep::program::size_of<T>(), \
        tilestep::program::Memory::kind, at));                                             \
  }                                                                                        \
  template <class T>                                                                       \
  cudaError_t name(T** to, std::size_t bytes, SIMT_AT) {                                   \
    return name(simt_name{""}, to, bytes, at);                                             \
  }
SIMT_ALLOCATOR(cudaMalloc, device)
SIMT_ALLOCATOR(cudaMallocHost, pinned)
template <class T>
cudaError_t cudaMallocManaged(simt_name called, T** to, std::size_t bytes,
                              unsigned = cudaMemAttachGlobal, SIMT_AT) {
  return tilestep::program::error(tilestep::program::allocate(
      reinterpret_cast<void**>(to), bytes, called.text, tilestep::program::size_of<T>(),
      tilestep::program::Memory::managed, at));
}
template <class T>
cudaError_t cudaHostAlloc(simt_name called, T** to, std::size_t bytes, unsigned, SIMT_AT) {
  return cudaMallocHost(called, to, bytes, at);
}
template <class T>
cudaError_t cudaMallocAsync(simt_name called, T** to, std::size_t bytes, cudaStream_t, SIMT_AT) {
  return cudaMalloc(called, to, bytes, at);
}
template <class T>
cudaError_t cudaMallocPitch(simt_name called, T** to, std::size_t* pitch, std::size_t width,
                            std::size_t height, SIMT_AT) {
  *pitch = (width + 511) / 512 * 512;
  return cudaMalloc(called, to, *pitch * height, at);
}
inline cudaError_t cudaFree(void* memory, SIMT_AT) {
  return tilestep::program::error(
      tilestep::program::release(memory, tilestep::program::Memory::device, at));
}
inline cudaError_t cudaFreeAsync(void* memory, cudaStream_t, SIMT_AT) {
  return cudaFree(memory, at);
}
inline cudaError_t cudaFreeHost(void* memory, SIMT_AT) {
  return tilestep::program::error(
      tilestep::program::release(memory, tilestep::program::Memory::pinned, at));
}
template <class To, class From>
cudaError_t cudaMemcpy(To* to, const From* from, std::size_t bytes, cudaMemcpyKind kind, SIMT_AT) {
  return tilestep::program::copy_one(to, from, bytes, kind, nullptr, at);
}
template <class To, class From>
cudaError_t cudaMemcpyAsync(To* to, const From* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr, SIMT_AT) {
  return tilestep::program::copy_one(to, from, bytes, kind, stream, at);
}
template <class To, class From>
cudaError_t cudaMemcpy2D(To* to, std::size_t to_pitch, const From* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind, SIMT_AT) {
  return tilestep::program::error(
      tilestep::program::copy({.to = to,
                               .from = from,
                               .bytes = width,
                               .rows = height,
                               .to_pitch = to_pitch,
                               .from_pitch = from_pitch,
                               .element = tilestep::program::size_of<To>(),
                               .direction = tilestep::program::direction_of(kind)},
                              at));
}
template <class To, class From>
cudaError_t cudaMemcpy2DAsync(To* to, std::size_t to_pitch, const From* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t = nullptr, SIMT_AT) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind, at);
}
template <class T>
cudaError_t cudaMemset(T* to, int byte, std::size_t bytes, SIMT_AT) {
  return tilestep::program::error(tilestep::program::fill(to, byte, bytes, 0, at));
}
template <class T>
cudaError_t cudaMemsetAsync(T* to, int byte, std::size_t bytes, cudaStream_t stream = nullptr,
                            SIMT_AT) {
  return tilestep::program::error(
      tilestep::program::fill(to, byte, bytes, tilestep::program::number_of(stream), at));
}
template <class Symbol>
cudaError_t cudaMemcpyToSymbol(Symbol& symbol, const void* from, std::size_t bytes,
                               std::size_t offset = 0, cudaMemcpyKind = cudaMemcpyHostToDevice,
                               SIMT_AT) {
  if (offset > sizeof symbol || bytes > sizeof symbol - offset) return cudaErrorInvalidValue;
  auto* to = const_cast<char*>(reinterpret_cast<const volatile char*>(&symbol)) + offset;
  return tilestep::program::copy_one(to, static_cast<const char*>(from), bytes, cudaMemcpyDefault,
                                     nullptr, at);
}
template <class Symbol>
cudaError_t cudaMemcpyFromSymbol(void* to, const Symbol& symbol, std::size_t bytes,
                                 std::size_t offset = 0, cudaMemcpyKind = cudaMemcpyDeviceToHost,
                                 SIMT_AT) {
  if (offset > sizeof symbol || bytes > sizeof symbol - offset) return cudaErrorInvalidValue;
  const auto* from = const_cast<const char*>(reinterpret_cast<const volatile char*>(&symbol));
  return tilestep::program::copy_one(static_cast<char*>(to), from + offset, bytes,
                                     cudaMemcpyDefault, nullptr, at);
}
template <class T, class Symbol>
cudaError_t cudaGetSymbolAddress(T** to, const Symbol& symbol) {
  *to = reinterpret_cast<T*>(const_cast<Symbol*>(&symbol));
  return cudaSuccess;
}
inline cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* all_bytes) {
  *free_bytes = *all_bytes = std::size_t{80} << 30;
  return cudaSuccess;
}
template <class... Arguments>
cudaError_t cudaMemPrefetchAsync(Arguments...) {
  return cudaSuccess;
}
template <class... Arguments>
cudaError_t cudaMemAdvise(Arguments...) {
  return cudaSuccess;
}
template <class T>
cudaError_t cudaHostGetDevicePointer(T** to, void* host, unsigned) {
  *to = static_cast<T*>(host);
  return cudaSuccess;
}

// ---- launches ("Execution Control") --------------------------------------------------------------

/// What `kernel<<<grid, block, shared, stream>>>(arguments…)` becomes (workbench/cuda_words.cpp):
/// `simt_kernel(SIMT_NAME(kernel), [=](auto... a) { kernel(a...); }).at(SIMT_HERE, grid, block, shared, stream)(arguments…)`.
template <class Call>
struct simt_launch {
  const char* name;
  Call call;
  tilestep::program::Shape shape;
  tilestep::simt::Location here;

  template <class... Arguments>
  void operator()(Arguments... arguments) const {
    struct Bound {
      Call call;
      std::tuple<Arguments...> arguments;
    };
    void* memory = tilestep::program::parameters(sizeof(Bound), alignof(Bound));
    auto* bound = new (memory) Bound{call, std::tuple<Arguments...>(arguments...)};
    tilestep::program::launch(
        name, shape,
        [](void* data) {
          const Bound& of = *static_cast<const Bound*>(data);
          std::apply(of.call, of.arguments);
        },
        bound, here);
    bound->~Bound();
  }
};
template <class Call>
struct simt_named_kernel {
  const char* name;
  Call call;
  simt_launch<Call> at(tilestep::simt::Location here, dim3 grid, dim3 block, std::size_t shared = 0,
                       cudaStream_t stream = nullptr) const {
    return {name, call, {grid, block, shared, tilestep::program::number_of(stream)}, here};
  }
};
template <class Call>
simt_named_kernel<Call> simt_kernel(const char* name, Call call) {
  return {name, call};
}

enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
};
enum cudaFuncCache {
  cudaFuncCachePreferNone,
  cudaFuncCachePreferShared,
  cudaFuncCachePreferL1,
  cudaFuncCachePreferEqual,
};
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel, cudaFuncAttribute attribute, int value, SIMT_AT) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  return tilestep::program::error(tilestep::program::allow_shared(value, at));
}
template <class Kernel>
cudaError_t cudaFuncSetCacheConfig(Kernel, cudaFuncCache) {
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel, int threads,
                                                          std::size_t shared_bytes) {
  *blocks = tilestep::program::blocks_per_multiprocessor(threads, shared_bytes);
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* least_grid, int* block, Kernel,
                                               std::size_t shared_bytes = 0, int limit = 0) {
  *block = tilestep::program::best_block(shared_bytes, limit);
  *least_grid = 132 * tilestep::program::blocks_per_multiprocessor(*block, shared_bytes);
  return cudaSuccess;
}

// ---- errors, streams, events, devices ------------------------------------------------------------

inline cudaError_t cudaGetLastError() {
  return tilestep::program::error(tilestep::program::last_error(true));
}
inline cudaError_t cudaPeekAtLastError() {
  return tilestep::program::error(tilestep::program::last_error(false));
}
inline const char* cudaGetErrorString(cudaError_t error) {
  return tilestep::program::error_text(error);
}
inline const char* cudaGetErrorName(cudaError_t error) {
  return tilestep::program::error_name(error);
}
inline cudaError_t cudaDeviceSynchronize(SIMT_AT) {
  return tilestep::program::error(tilestep::program::wait("cudaDeviceSynchronize", at));
}
inline cudaError_t cudaThreadSynchronize(SIMT_AT) {
  return cudaDeviceSynchronize(at);
}
inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = new CUstream_st{tilestep::program::new_handle()};
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return cudaStreamCreate(stream);
}
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  return cudaStreamCreate(stream);
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t, SIMT_AT) {
  return tilestep::program::error(tilestep::program::wait("cudaStreamSynchronize", at));
}
inline cudaError_t cudaStreamQuery(cudaStream_t) {
  return cudaSuccess;
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) {
  return cudaSuccess;
}
inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new CUevent_st;
  return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t = nullptr) {
  event->at = tilestep::program::seconds();
  return cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t, SIMT_AT) {
  return tilestep::program::error(tilestep::program::wait("cudaEventSynchronize", at));
}
inline cudaError_t cudaEventQuery(cudaEvent_t) {
  return cudaSuccess;
}
/// Of the emulation: it says nothing of a GPU, and the report says so.
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  if (from->at < 0 || to->at < 0) return cudaErrorInvalidResourceHandle;
  *milliseconds = static_cast<float>((to->at - from->at) * 1e3);
  return cudaSuccess;
}

/// Limits of compute capability 9.0 (CUDA C++ Programming Guide, "Compute Capabilities"), of an H100 SXM.
struct cudaDeviceProp {
  char name[256] = "NVIDIA H100 (emulated by tilestep)";
  std::size_t totalGlobalMem = std::size_t{80} << 30, sharedMemPerBlock = 48 << 10,
              sharedMemPerBlockOptin = 227 << 10, sharedMemPerMultiprocessor = 228 << 10,
              totalConstMem = 64 << 10, memPitch = 2147483647, textureAlignment = 512;
  int regsPerBlock = 65536, regsPerMultiprocessor = 65536, warpSize = 32, maxThreadsPerBlock = 1024,
      maxThreadsDim[3] = {1024, 1024, 64}, maxGridSize[3] = {2147483647, 65535, 65535},
      clockRate = 1980000, memoryClockRate = 2619000, memoryBusWidth = 5120, l2CacheSize = 50 << 20,
      major = 9, minor = 0, multiProcessorCount = 132, maxThreadsPerMultiProcessor = 2048,
      maxBlocksPerMultiProcessor = 32, concurrentKernels = 1, asyncEngineCount = 3,
      unifiedAddressing = 1, managedMemory = 1, concurrentManagedAccess = 1, canMapHostMemory = 1,
      integrated = 0, ECCEnabled = 1, computeMode = 0, cooperativeLaunch = 0, deviceOverlap = 1,
      kernelExecTimeoutEnabled = 0, pciBusID = 0, pciDeviceID = 0, pciDomainID = 0;
};
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}
inline cudaError_t cudaSetDeviceFlags(unsigned) {
  return cudaSuccess;
}
inline cudaError_t cudaDeviceReset() {
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return cudaErrorInvalidDevice;
  *properties = {};
  return cudaSuccess;
}
enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrClockRate = 13,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrMaxThreadsPerMultiProcessor = 39,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
};
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const cudaDeviceProp of;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = of.maxThreadsPerBlock;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(of.sharedMemPerBlock);
      break;
    case cudaDevAttrWarpSize:
      *value = of.warpSize;
      break;
    case cudaDevAttrClockRate:
      *value = of.clockRate;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = of.multiProcessorCount;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = of.maxThreadsPerMultiProcessor;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = of.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = of.minor;
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = static_cast<int>(of.sharedMemPerMultiprocessor);
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(of.sharedMemPerBlockOptin);
      break;
  }
  return cudaSuccess;
}
inline cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
inline cudaError_t cudaDriverGetVersion(int* version) {
  return cudaRuntimeGetVersion(version);
}
#undef SIMT_ALLOCATOR
