#pragma once

/// \file
/// Tensor maps: what the host tells TMA about an array. For nvcc alone.

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "kernels/base/simt/error.hpp"

namespace tilestep::simt::cuda {

/// The driver's cuTensorMapEncodeTiled, found at run time: so that nothing is linked to the driver.
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
        "CUDA "
        "12.0 or newer",
        ExitCode::unavailable);
  }
  return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
}

/// What TMA must know of an array of rows × columns BF16, row-major, that it fetches in boxes of
/// box_rows × 64 with the 128-byte swizzle; rows beyond the array read as 0. Throws Error
/// (unavailable). CUDA driver API, "cuTensorMapEncodeTiled".
inline CUtensorMap tensor_map_bf16(const std::uint16_t* array, std::int64_t rows, int columns,
                                   int box_rows) {
  static const auto encode = tensor_map_encoder();
  CUtensorMap map{};
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t row_bytes[] = {static_cast<cuuint64_t>(columns) * sizeof(std::uint16_t)};
  const cuuint32_t box[] = {64, static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t steps[] = {1, 1};
  const CUresult result =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<std::uint16_t*>(array), sizes,
             row_bytes, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw Error("the driver makes no tensor map of " + std::to_string(rows) + " x " +
                    std::to_string(columns) + " numbers (error " + std::to_string(result) + ")",
                ExitCode::unavailable);
  }
  return map;
}

}  // namespace tilestep::simt::cuda
