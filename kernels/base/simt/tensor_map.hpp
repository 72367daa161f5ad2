#pragma once

/// \file
/// Tensor maps: the host's description of a matrix for TMA. Under nvcc the driver makes them; the emulation
/// stores the numbers. Both refuse maps that the hardware cannot use.

#include <cstdint>
#include <string>

#include "kernels/base/simt/device.hpp"
#include "kernels/base/simt/hopper.hpp"

#if defined(__CUDACC__)
#include <cudaTypedefs.h>
#include <cuda_runtime.h>
#endif

namespace tilestep::simt {

/// A row-major matrix of 1-, 2- or 4-byte elements, and the box of it that TMA moves at a time.
struct BoxedMatrix {
  std::int64_t rows = 0;
  int columns = 0;
  int box_rows = 0;     ///< 1–256
  int box_columns = 0;  ///< 1–256; their bytes are a multiple of 16, and no more than the swizzle's
  int swizzle = 0;      ///< bytes: 0, 32, 64 or 128
  std::int64_t pitch_bytes = 0;  ///< from row to row, a multiple of 16; 0: the columns' bytes
  /// The number of consecutive matrices, if fetch and store take the index of one; 0: a single matrix, without
  /// an index.
  int matrices = 0;

  std::int64_t all_rows() const { return rows * (matrices == 0 ? 1 : matrices); }
};

namespace hopper {

/// Throws Error naming the value that TMA refuses. CUDA driver API, "cuTensorMapEncodeTiled".
inline void check_box(const BoxedMatrix& m, int element_bytes, std::int64_t pitch,
                      std::size_t elements, std::uintptr_t base) {
  const auto require = [](bool good, const std::string& what, const std::string& allowed) {
    if (!good) throw Error("tensor map: " + what + "; allowed: " + allowed);
  };
  const auto said = [](auto value) { return std::to_string(value); };
  const std::int64_t box_bytes = std::int64_t{m.box_columns} * element_bytes;
  require(m.rows >= 1 && m.columns >= 1 && m.matrices >= 0, "the matrix is empty",
          "one row and column or more");
  require(pitch % 16 == 0 && pitch >= std::int64_t{m.columns} * element_bytes,
          "rows are " + said(pitch) + " bytes apart",
          "multiples of 16 that hold the row's " + said(m.columns) + " elements");
  require(base % 16 == 0, "the matrix does not start at a multiple of 16 bytes", "multiples of 16");
  require(m.box_rows >= 1 && m.box_rows <= 256 && m.box_columns >= 1 && m.box_columns <= 256,
          "a box of " + said(m.box_rows) + " x " + said(m.box_columns) + " elements",
          "1-256 both ways");
  require(box_bytes % 16 == 0, "a row of the box has " + said(box_bytes) + " bytes",
          "multiples of 16");
  require(m.swizzle == 0 || m.swizzle == 32 || m.swizzle == 64 || m.swizzle == 128,
          "a swizzle of " + said(m.swizzle) + " bytes", "0, 32, 64, 128");
  require(m.swizzle == 0 || box_bytes <= m.swizzle,
          "a row of the box has " + said(box_bytes) + " bytes",
          "up to the " + said(m.swizzle) + " of the swizzle");
  require((m.all_rows() - 1) * pitch + std::int64_t{m.columns} * element_bytes <=
              static_cast<std::int64_t>(elements) * element_bytes,
          "the array has " + said(elements) + " elements", "as many as the matrix reaches over");
}

#if defined(__CUDACC__)

/// The driver's cuTensorMapEncodeTiled, looked up at run time so that nothing links to the driver.
inline PFN_cuTensorMapEncodeTiled_v12000 tensor_map_encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  const cudaError_t result = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                              12000, cudaEnableDefault, &found);
#else
  const cudaError_t result =
      cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found);
#endif
  if (result != cudaSuccess || found != cudaDriverEntryPointSuccess || function == nullptr) {
    throw Error(
        "the driver has no cuTensorMapEncodeTiled; kernels that copy with TMA need a driver for "
        "CUDA 12.0 or newer",
        ExitCode::unavailable);
  }
  return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
}

inline TensorMap encode(const void* base, int element_bytes, const BoxedMatrix& m,
                        std::int64_t pitch) {
  static const auto encoder = tensor_map_encoder();
  TensorMap map{};
  const auto type = element_bytes == 1   ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                    : element_bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                         : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  const auto swizzle = m.swizzle == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                       : m.swizzle == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                       : m.swizzle == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                         : CU_TENSOR_MAP_SWIZZLE_NONE;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(m.columns), static_cast<cuuint64_t>(m.rows),
                              static_cast<cuuint64_t>(m.matrices)};
  const cuuint64_t pitches[] = {static_cast<cuuint64_t>(pitch),
                                static_cast<cuuint64_t>(m.rows * pitch)};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(m.box_columns),
                            static_cast<cuuint32_t>(m.box_rows), 1};
  const cuuint32_t steps[] = {1, 1, 1};
  const cuuint32_t dimensions = m.matrices == 0 ? 2 : 3;
  const CUresult result =
      encoder(&map, type, dimensions, const_cast<void*>(base), sizes, pitches, box, steps,
              CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw Error("the driver makes no tensor map of " + std::to_string(m.rows) + " x " +
                    std::to_string(m.columns) + " numbers (error " + std::to_string(result) + ")",
                ExitCode::unavailable);
  }
  return map;
}

#else

inline TensorMap encode(const void* base, int element_bytes, const BoxedMatrix& m,
                        std::int64_t pitch) {
  return {static_cast<unsigned char*>(const_cast<void*>(base)),
          m.rows,
          m.columns,
          pitch,
          m.box_rows,
          m.box_columns,
          element_bytes,
          m.swizzle,
          m.matrices,
          m.rows * pitch};
}

#endif

}  // namespace hopper

/// The tensor map of `matrix`, stored in `array`; boxes that reach beyond it read 0 there.
/// Throws Error for a matrix that TMA refuses; Error (unavailable) if the driver makes no map.
template <class T>
hopper::TensorMap tensor_map(Span<T> array, const BoxedMatrix& matrix) {
  static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4);
  constexpr int kBytes = static_cast<int>(sizeof(T));
  const std::int64_t pitch =
      matrix.pitch_bytes > 0 ? matrix.pitch_bytes : std::int64_t{matrix.columns} * kBytes;
  hopper::check_box(matrix, kBytes, pitch, array.count,
                    reinterpret_cast<std::uintptr_t>(array.data));
  return hopper::encode(array.data, kBytes, matrix, pitch);
}

}  // namespace tilestep::simt
