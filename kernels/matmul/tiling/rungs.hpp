#pragma once

/// \file
/// Code shared by the lesson's kernels: accessors, and the mapping of blocks to tiles. Loops over a
/// thread's registers are unrolled, otherwise the registers would become an array in memory.

#include <cstddef>
#include <cstdint>

#include "kernels/base/simt/mma.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/matmul/tiling/kernels.hpp"

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

/// An array whose accesses, also of several elements at once, are on a tape: simt::Traced for rungs that
/// move 16 bytes.
template <class T>
class Seen {
 public:
  __device__ Seen(simt::Global<T> array, const simt::Tape& tape, std::uint32_t site,
                  std::ptrdiff_t origin = 0)
      : array_(array), tape_(tape), site_(site), origin_(origin) {}

  __device__ simt::TracedElement<T> operator[](std::ptrdiff_t index) const {
    return {array_[origin_ + index], tape_, site_, byte(origin_ + index)};
  }
  __device__ simt::TracedElement<T> operator*() const { return (*this)[0]; }
  __device__ Seen operator+(std::ptrdiff_t offset) const {
    return {array_, tape_, site_, origin_ + offset};
  }
  /// The same memory as elements of type V, of which this one's origin is a multiple.
  template <class V>
  __device__ auto as() const {
    using Element = std::conditional_t<std::is_const_v<T>, const V, V>;
    const std::ptrdiff_t each = sizeof(V) / sizeof(T);
    return Seen<Element>(simt::as<V>(array_), tape_, site_, origin_ / each);
  }
  /// The address itself, for an instruction that reads `bytes` there: that is recorded.
  __device__ simt::Global<T> read_by_address(std::uint16_t bytes) const {
    tape_.access(site_, byte(origin_), bytes, simt::AccessKind::load);
    return array_ + origin_;
  }

 private:
  __device__ static std::uint64_t byte(std::ptrdiff_t element) {
    return static_cast<std::uint64_t>(element) * sizeof(T);
  }

  simt::Global<T> array_;
  simt::Tape tape_;
  std::uint32_t site_;
  std::ptrdiff_t origin_;
};

/// `array` with its accesses on the tape under `site`; without a tape the array itself.
template <class T>
__device__ __forceinline__ simt::Global<T> seen(const simt::NoTape&, simt::Global<T> array,
                                                std::uint32_t) {
  return array;
}
template <class T>
__device__ Seen<T> seen(const simt::Tape& tape, simt::Global<T> array, std::uint32_t site) {
  return {array, tape, site};
}

/// The same memory as elements of type V, for both kinds of accessor.
template <class V, class Array>
__device__ __forceinline__ auto elements(const Array& array) {
  if constexpr (requires { array.template as<V>(); }) {
    return array.template as<V>();
  } else {
    return simt::as<V>(array);
  }
}

/// Four adjacent elements with one instruction.
__device__ __forceinline__ float4 load4(simt::Global<const float> from) {
  return simt::as<const float4>(from)[0];
}

/// Four adjacent elements into four registers.
template <class Tile>
__device__ __forceinline__ void read4(float* registers, Tile from) {
  const float4 four = elements<float4>(from)[0];
  registers[0] = four.x;
  registers[1] = four.y;
  registers[2] = four.z;
  registers[3] = four.w;
}

/// The address of a row of 8 BF16, for ldmatrix.
template <class T>
__device__ __forceinline__ simt::Shared<T> row_at(simt::Shared<T> tile, int element) {
  return tile + element;
}
template <class T>
__device__ simt::Shared<T> row_at(const Seen<T>& tile, int element) {
  return (tile + element).read_by_address(16);
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

using Out = simt::Global<float>;

// ---- blocks and tiles --------------------------------------------------------------------------

struct TileIndex {
  int row, column;
};

/// The tile of C of the calling block, in tiles. Blocks start in order of their number; in groups
/// of kGroup rows of tiles, column by column, blocks that run together share rows of A and columns
/// of B, which then stay in L2.
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

/// Stores four adjacent elements of a row of C; without kWhole only those inside.
template <bool kWhole, class To>
__device__ __forceinline__ void store_row4(To c, int row, int column, const GemmShape& shape,
                                           const float* values) {
  if constexpr (kWhole) {
    *elements<float4>(c + (row * shape.n + column)) =
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
    *elements<float2>(c + (row * shape.n + column)) = make_float2(left, right);
  } else {
    if (row < shape.m && column < shape.n) c[row * shape.n + column] = left;
    if (row < shape.m && column + 1 < shape.n) c[row * shape.n + column + 1] = right;
  }
}

// ---- the tiling of rungs with a square of results per thread ------------------------------------

constexpr int kEdge = 128;     // of the block's tile of C
constexpr int kDepth = 8;      // of the tiles along k
constexpr int kThreads = 256;  // 16 × 16, each with 8 × 8 elements of C
constexpr int kSquare = 8;
constexpr int kPitch = kEdge + 4;  // of a transposed A tile (k down, rows across)

}  // namespace tilestep::tiling::SIMT_BACKEND
