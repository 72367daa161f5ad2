#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/lessons.hpp"

/// The lesson on how Hopper feeds its tensor cores: C = A·Bᵀ with A [m × k] and B [n × k], k fastest in
/// both, C [m × n] row-major; from mma.sync to a persistent kernel with TMA, mbarriers and wgmma.
/// NVIDIA, "PTX ISA", 8.7; "CUDA C++ Programming Guide", "Asynchronous Data Copies using the Tensor Memory
/// Accelerator".
namespace tilestep::hopper_gemm {

/// The rungs of the ladder.
enum class Variant {
  mma_sync,
  wgmma,
  tma,
  pipelined,
  warp_specialized,
  multicast,
  persistent,
};
constexpr auto names_of(Variant) {
  return std::to_array<std::string_view>(
      {"mma-sync", "wgmma", "tma", "pipelined", "warp-specialized", "multicast", "persistent"});
}

/// What is multiplied; C is FP32 (and BF16 where it is timed).
enum class DataType { bf16, fp16, fp8_e4m3 };
constexpr auto names_of(DataType) {
  return std::to_array<std::string_view>({"bf16", "fp16", "fp8-e4m3"});
}
constexpr int element_bytes(DataType type) {
  return type == DataType::fp8_e4m3 ? 1 : 2;
}

/// The order in which C's tiles are computed.
enum class Raster { rows, columns, grouped };
constexpr auto names_of(Raster) {
  return std::to_array<std::string_view>({"rows", "columns", "grouped"});
}

/// What a kernel leaves out or does wrong.
enum class Break { none, skip_full_wait, skip_empty_wait, missing_fence, wrong_bytes };
constexpr auto names_of(Break) {
  return std::to_array<std::string_view>(
      {"none", "skip-full-wait", "skip-empty-wait", "missing-fence", "wrong-bytes"});
}

}  // namespace tilestep::hopper_gemm
