#pragma once

/// \file
/// What the lesson's .cu files share: accessors, launching, and who computes which tile.

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "kernels/base/simt/mma.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/matmul/tiling/kernels.hpp"

// Loops over a thread's registers must vanish, or the registers become an array in memory. The host
// compiler unrolls by itself.
#if defined(__CUDACC__)
#define TILESTEP_UNROLL _Pragma("unroll")
#else
#define TILESTEP_UNROLL
#endif

namespace tilestep::tiling::SIMT_BACKEND {

// ---- accessors ----------------------------------------------------------------------------------

/// An accessor that counts each element it loads.
template <class T>
class Counted {
 public:
  __host__ __device__ Counted(simt::Global<const T> array, simt::Global<unsigned long long> loads)
      : array_(array), loads_(loads) {}

  __device__ T operator[](std::ptrdiff_t index) const {
    count(1);
    return array_[index];
  }
  __host__ __device__ Counted operator+(std::ptrdiff_t offset) const {
    return {array_ + offset, loads_};
  }
  __device__ void count(unsigned elements) const { atomicAdd(&loads_[0], elements); }
  __device__ simt::Global<const T> array() const { return array_; }

 private:
  simt::Global<const T> array_;
  simt::Global<unsigned long long> loads_;
};

/// Four neighbours with one instruction.
__device__ __forceinline__ float4 load4(simt::Global<const float> from) {
  return simt::as<const float4>(from)[0];
}

/// Four neighbours into four registers.
__device__ __forceinline__ void read4(float* registers, simt::Shared<const float> from) {
  const float4 four = simt::as<const float4>(from)[0];
  registers[0] = four.x;
  registers[1] = four.y;
  registers[2] = four.z;
  registers[3] = four.w;
}

/// Asynchronous copies to shared memory, for both kinds of accessor.
__device__ __forceinline__ void copy4(simt::Shared<float> to, simt::Global<const float> from,
                                      bool inside) {
  simt::cp_async4(to, from, inside);
}
__device__ __forceinline__ void copy4(simt::Shared<float> to, const Counted<float>& from,
                                      bool inside) {
  if (inside) from.count(1);
  simt::cp_async4(to, from.array(), inside);
}
template <class T>
__device__ __forceinline__ void copy16(simt::Shared<T> to, const Counted<T>& from) {
  from.count(16 / sizeof(T));
  simt::cp_async16(to, from.array());
}
__device__ __forceinline__ void copy16(simt::Shared<float> to, simt::Global<const float> from) {
  simt::cp_async16(to, from);
}
__device__ __forceinline__ void copy16(simt::Shared<std::uint16_t> to,
                                       simt::Global<const std::uint16_t> from) {
  simt::cp_async16(to, from);
}

// ---- who computes what --------------------------------------------------------------------------

struct TileIndex {
  int row, column;
};

/// The tile of C of the calling block, in tiles. Blocks start in order of their number; in groups
/// of kGroup rows of tiles, column by column, those that run together share rows of A and columns
/// of B, which L2 then holds.
template <int kGroup>
__device__ __forceinline__ TileIndex grouped_tile(int tiles_down, int tiles_across) {
  const int block = static_cast<int>(blockIdx.x);
  const int in_group = kGroup * tiles_across;
  const int first_row = block / in_group * kGroup;
  const int rows = min(tiles_down - first_row, kGroup);
  const int position = block % in_group;
  return {first_row + position % rows, position / rows};
}

constexpr int tiles_of(int size, int tile) {
  return (size + tile - 1) / tile;
}

/// Stores four neighbours of a row of C; without kWhole those that lie inside.
template <bool kWhole, class To>
__device__ __forceinline__ void store_row4(To c, int row, int column, const GemmShape& shape,
                                           const float* values) {
  if constexpr (kWhole) {
    *simt::as<float4>(c + (row * shape.n + column)) =
        make_float4(values[0], values[1], values[2], values[3]);
  } else {
    for (int j = 0; j < 4; ++j) {
      if (row < shape.m && column + j < shape.n) c[row * shape.n + column + j] = values[j];
    }
  }
}

/// The same for two.
template <bool kWhole, class To>
__device__ __forceinline__ void store_pair(To c, int row, int column, const GemmShape& shape,
                                           float left, float right) {
  if constexpr (kWhole) {
    *simt::as<float2>(c + (row * shape.n + column)) = make_float2(left, right);
  } else {
    if (row < shape.m && column < shape.n) c[row * shape.n + column] = left;
    if (row < shape.m && column + 1 < shape.n) c[row * shape.n + column + 1] = right;
  }
}

// ---- launching ----------------------------------------------------------------------------------

using Out = simt::Global<float>;

/// What a rung is asked for: a launch, or with `resources` what the launch would take.
struct Call {
  simt::Device& device;
  GemmShape shape;
  Resources* resources = nullptr;
};

/// Fills in what the compiled kernel takes of a multiprocessor.
template <class... Params>
Resources resources_of(const simt::Launch& launch, [[maybe_unused]] void (*kernel)(Params...)) {
  Resources r;
  r.threads = static_cast<int>(launch.block.x * launch.block.y * launch.block.z);
  r.dynamic_shared_bytes = launch.shared_bytes;
#if defined(__CUDACC__)
  const void* function = reinterpret_cast<const void*>(kernel);
  cudaFuncAttributes attributes{};
  const auto check = [&](cudaError_t result) {
    if (result == cudaSuccess) return;
    throw Error(std::string(launch.name) + ": the device does not say what the kernel takes: " +
                    cudaGetErrorString(result),
                ExitCode::unavailable);
  };
  check(cudaFuncGetAttributes(&attributes, function));
  check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(launch.shared_bytes)));
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&r.blocks_per_multiprocessor, function,
                                                      r.threads, launch.shared_bytes));
  int device = 0;
  int threads = 0;
  int warp = 32;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, device));
  check(cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, device));
  r.compiled = true;
  r.static_shared_bytes = attributes.sharedSizeBytes;
  r.registers = attributes.numRegs;
  r.local_bytes = attributes.localSizeBytes;
  r.warps_per_multiprocessor = threads / warp;
#endif
  return r;
}

template <class... Params, class... Args>
void start(const Call& call, const simt::Launch& launch, void (*kernel)(Params...),
           Args&&... args) {
  if (call.resources != nullptr) {
    *call.resources = resources_of(launch, kernel);
    return;
  }
  simt::launch(call.device, launch, kernel, static_cast<Args&&>(args)...);
}

/// Calls `run(whole, a, b, c)` with the accessors that the run wants. `whole` is a type whose
/// `value` says whether the shape is a multiple of the kernel's tiles, so that no element needs a
/// bounds check; counting runs check always, and load the same elements.
template <class Ops, class Run>
void with_accessors(const Ops& operands, bool whole, Run run) {
  using T = std::remove_const_t<std::remove_pointer_t<decltype(operands.a.data)>>;
  const auto a = simt::global(operands.a, "A");
  const auto b = simt::global(operands.b, "B");
  const auto c = simt::global(operands.c, "C");
  if (operands.loads.data != nullptr) {
    const auto loads = simt::global(operands.loads, "loads");
    run(std::false_type{}, Counted<T>(a, loads), Counted<T>(b, loads), c);
  } else if (whole) {
    run(std::true_type{}, a, b, c);
  } else {
    run(std::false_type{}, a, b, c);
  }
}

/// Which configuration runs: the one asked for, or the first whose tiles the shape is a multiple of
/// and that gives work to a good part of a large GPU; `any_size` where none fits, and for counting.
/// Throws Error if the one asked for does not fit.
inline int chosen_configuration(std::span<const Configuration> all, int asked,
                                const GemmShape& shape, bool counted, int any_size) {
  const auto fits = [&](const Configuration& one) {
    return shape.m % one.tile_m == 0 && shape.n % one.tile_n == 0 && shape.k % one.tile_k == 0;
  };
  if (counted) return any_size;
  if (asked >= 0) {
    assert(static_cast<std::size_t>(asked) < all.size());
    const Configuration& one = all[static_cast<std::size_t>(asked)];
    if (one.any_size || fits(one)) return asked;
    throw Error("tiling: " + std::to_string(shape.m) + " x " + std::to_string(shape.n) + " x " +
                std::to_string(shape.k) + " is not a multiple of the tile of configuration " +
                std::string(one.name));
  }
  constexpr int kManyTiles = 64;
  for (int i = 0; i < static_cast<int>(all.size()); ++i) {
    const Configuration& one = all[static_cast<std::size_t>(i)];
    const int tiles = tiles_of(shape.m, one.tile_m) * tiles_of(shape.n, one.tile_n);
    if (fits(one) && tiles >= kManyTiles) return i;
  }
  return any_size;
}

// ---- the rungs, each in its file ----------------------------------------------------------------

// shared_tile.cu
void launch_naive(const Call& call, const Operands& operands);
void launch_coalesced(const Call& call, const Operands& operands);
/// Configuration 0 pads the A tile, 1 does not.
void launch_shared_tile(const Call& call, int configuration, const Operands& operands);
// register_tile.cu
void launch_register_tile_1d(const Call& call, const Operands& operands);
void launch_register_tile_2d(const Call& call, const Operands& operands);
void launch_vectorized(const Call& call, const Operands& operands);
// double_buffered.cu
void launch_double_buffered(const Call& call, const Operands& operands);
// warp_tile.cu
std::span<const Configuration> warp_tile_configurations();
void launch_warp_tile(const Call& call, int configuration, const Operands& operands);
// tensor_core.cu
std::span<const Configuration> tensor_core_configurations();
void launch_tensor_core(const Call& call, int configuration, const OperandsBf16& operands);

}  // namespace tilestep::tiling::SIMT_BACKEND
