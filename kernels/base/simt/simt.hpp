#pragma once

/// \file
/// The CUDA dialect that every kernel source (`.cu`) includes. The same source is compiled twice:
///  - by nvcc, as plain CUDA C++;
///  - by the host compiler as C++ (`-xc++`), where these headers define CUDA's keywords and functions and
///    an emulator runs the threads (one fiber per thread, one OS thread per block).
///
/// Students read `<name>.cu`: kernels with short comments. `launch.cu` in the same folder includes it
/// and is the file that both compilers compile:
///
///     // scale.cu
///     namespace tilestep::my_lesson::SIMT_BACKEND {
///     __global__ void scale(simt::Global<const float> in, simt::Global<float> out, int n) {
///       const int i = blockIdx.x * blockDim.x + threadIdx.x;
///       if (i < n) out[i] = in[i] * 2;
///     }
///     }
///
///     // launch.cu
///     #include "kernels/<chapter>/my_lesson/scale.cu"
///     namespace tilestep::my_lesson::SIMT_BACKEND {
///     class KernelsHere final : public Kernels {          // Kernels derives from simt::KernelSet
///       void scale(simt::Device& device, …) const override {
///         simt::launch(device, {.name = "scale", .grid = {4}, .block = {256}},
///                      SIMT_BACKEND::scale, simt::global(in, "in"), simt::global(out, "out"), n);
///       }
///     };
///     }
///     SIMT_KERNEL_SET(my_lesson, KernelsHere)
///
/// Both compilers know: `__global__ __device__ __host__ __shared__ __forceinline__
/// __launch_bounds__ __restrict__`, `threadIdx blockIdx blockDim gridDim warpSize`, `dim3` and the
/// vector types with their `make_…`, `__syncthreads` and its votes, `__syncwarp`, warp shuffles,
/// votes and integer reductions, atomics, `__ldg __ldcs __ldcg __stcs __stcg`, `__threadfence…`,
/// `clock64`, and the math functions of emulated_math.hpp.
///
/// An edited source (SIMT_EDITED) may be plain CUDA: simt/toolkit adds the rest,
///  - `extern __shared__ T name[]`, `__constant__ __managed__ __noinline__ __align__ __grid_constant__`,
///    arrays taken as `T*`, casts of them, `__CUDA_ARCH__` (900);
///  - all small vectors, all atomics, `_block` and `_system` too, cache hints, `__match_…_sync`, `__trap`,
///    integer intrinsics, directed rounding and conversions, fast and special math, `assert`, `printf`;
///  - `<cuda_runtime.h> <cuda_fp16.h> <cuda_bf16.h> <math_constants.h> <curand_kernel.h>
///    <cooperative_groups.h>` with blocks, tiles, coalesced threads, their reduce and scan.
/// Anything not emulated (textures, launches, PTX and more) gets an error message at its line
/// (workbench/cuda_words.cpp).
///
/// Both also know:
///
///     simt::Global<T>          a kernel's array argument: T*, or a bounds-checked view under emulation
///     simt::global(span, name) makes it from a Span<T> on the host; `name` is for error texts
///     simt::Array<T, 16, 17>   `__shared__ simt::Array<float, 16, 17> tile;`: float tile[16][17]
///     simt::dynamic_shared<T>(count, byte_offset = 0)   a part of the block's dynamic shared memory
///     simt::as<float4>(accessor)                        the same memory as vectors, aligned to them
///     simt::NoTape, simt::Tape, simt::Traced<T>         how a kernel shows what it does (tape.hpp)
///     simt::watch("name", value)                        puts a number into the run's tables
///     simt::launch(device, {.name, .grid, .block, .shared_bytes}, kernel, arguments…)
///
/// The emulation is stricter than a GPU: all threads of the block, including those that have ended,
/// must reach a `__syncthreads()` on the same source line; all lanes named by its mask must reach a
/// warp collective; a shuffle from a lane outside the mask returns a value with all bits set;
/// `__activemask()` names only the calling lane, the least that the guide guarantees; shared memory
/// starts with all bits set. It is weaker in one way: threads of a block must not wait for each other
/// by polling memory.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/base/simt/device.hpp"

#if defined(__CUDACC__)
#define SIMT_BACKEND cuda_backend
#define SIMT_KERNELS(name) name##_cuda
#include "kernels/base/simt/cuda/cuda_dialect.hpp"
#else
// SIMT_EDITED: a source edited by the user, compiled apart from the program (kernels/workbench). It has its
// own namespace, so that none of its symbols can replace a built-in one, or the other way round.
#if defined(SIMT_EDITED)
#define SIMT_BACKEND edited_backend
#else
#define SIMT_BACKEND emulated_backend
#endif
#define SIMT_KERNELS(name) name##_emulated
#include "kernels/base/simt/emulator/emulated_dialect.hpp"
#endif

/// Ends a launch.cu: registers `Class`, of the lesson's SIMT_BACKEND, in the backend's table of kernels.
/// Defines kernels_cuda() or kernels_emulated(), or for an edited source the symbol its module exports.
#if defined(SIMT_EDITED)
#define SIMT_KERNEL_SET(lesson, Class)                                               \
  extern "C" __attribute__((visibility("default"))) const tilestep::simt::KernelSet& \
  tilestep_edited_kernels() {                                                        \
    static const tilestep::lesson::SIMT_BACKEND::Class kernels;                      \
    return kernels;                                                                  \
  }
#else
#define SIMT_KERNEL_SET(lesson, Class)             \
  namespace tilestep::lesson {                     \
  const simt::KernelSet& SIMT_KERNELS(kernels)() { \
    static const SIMT_BACKEND::Class kernels;      \
    return kernels;                                \
  }                                                \
  }
#endif

#include "kernels/base/simt/shared_array.hpp"
#include "kernels/base/simt/tape.hpp"
