#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/base/numeric/float_format.hpp"

/// The formats of the low-bit lesson: how many bits a code has, who shares a scale, what the scale is stored in. Plain
/// data, the same on host and device.
///
/// OCP Microscaling Formats (MX) Specification 1.0, 2023; NVIDIA, "Introducing NVFP4", 2025; Ma et al., "The era of 1-bit
/// LLMs: all large language models are in 1.58 bits", 2024; llama.cpp's `block_q4_K`.
namespace tilestep::low_bit {

enum class Format { int8, int4, int4_zero, fp8_e4m3, fp8_e5m2, mxfp4, nvfp4, ternary, q4_k };
constexpr auto names_of(Format) {
  return std::to_array<std::string_view>({"int8", "int4", "int4-zero-point", "fp8-e4m3", "fp8-e5m2",
                                          "mxfp4", "nvfp4", "ternary", "q4_k"});
}
inline constexpr int kFormats = 9;

/// Which weights share a scale: neighbours along a row of W, a whole row (an output channel), or all.
enum class Group { g16, g32, g64, g128, row, tensor };
constexpr auto names_of(Group) {
  return std::to_array<std::string_view>({"16", "32", "64", "128", "row", "tensor"});
}

/// What a run leaves out, or does wrong, on purpose.
enum class Break {
  none,
  unfused,           ///< numbers are written to memory, and read back to be multiplied
  one_scale,         ///< all groups get the scale that fits all of W
  wrong_zero_point,  ///< the product reads a zero point that is one too large; of Q4_K no minimum
  scale_after_sum,   ///< the first group's scale multiplies the sum of a whole row
};
constexpr auto names_of(Break) {
  return std::to_array<std::string_view>(
      {"none", "unfused", "one-scale", "wrong-zero-point", "scale-after-sum"});
}

/// The bits of a code.
TILESTEP_HOST_DEVICE constexpr int code_bits(Format format) {
  switch (format) {
    case Format::int8:
    case Format::fp8_e4m3:
    case Format::fp8_e5m2:
      return 8;
    case Format::ternary:
      return 2;
    default:
      return 4;
  }
}

/// Formats whose group is part of their definition; the others' is chosen.
constexpr bool has_own_group(Format format) {
  return format == Format::mxfp4 || format == Format::nvfp4 || format == Format::ternary ||
         format == Format::q4_k;
}
constexpr Group group_of(Format format, Group chosen) {
  switch (format) {
    case Format::mxfp4:
    case Format::q4_k:
      return Group::g32;
    case Format::nvfp4:
      return Group::g16;
    case Format::ternary:
      return Group::tensor;
    default:
      return chosen;
  }
}
/// Weights of a group in a matrix with so many columns; `tensor`: of all rows.
constexpr int group_size(Group group, int rows, int columns) {
  switch (group) {
    case Group::row:
      return columns;
    case Group::tensor:
      return rows * columns;
    default:
      return 16 << static_cast<int>(group);
  }
}

/// Whether it makes a difference for weights in this format and group (as `group_of` has it).
constexpr bool can_break(Format format, Group group, Break broken) {
  switch (broken) {
    case Break::one_scale:
      return group != Group::tensor;
    case Break::wrong_zero_point:
      return format == Format::int4_zero || format == Format::q4_k;
    case Break::scale_after_sum:  // Q4_K has a minimum to subtract as well
      return group != Group::tensor && group != Group::row && format != Format::q4_k;
    default:
      return true;
  }
}

/// A group's scale and whatever else it stores: FP16 for integers (with a zero point, a byte more), FP32 for FP8
/// and ternary, E8M0 for MXFP4, E4M3 for NVFP4, 6 bits of scale and 6 of minimum for Q4_K.
constexpr int scale_bits(Format format) {
  switch (format) {
    case Format::int8:
    case Format::int4:
      return 16;
    case Format::int4_zero:
      return 24;
    case Format::fp8_e4m3:
    case Format::fp8_e5m2:
    case Format::ternary:
      return 32;
    case Format::mxfp4:
    case Format::nvfp4:
      return 8;
    case Format::q4_k:
      return 12;
  }
  return 0;
}

/// Weights of a super-block of Q4_K, in groups of 32 whose scales and minima share two FP16 numbers.
inline constexpr int kSuperBlock = 256;
/// A super-block in memory: d and dmin (FP16), 12 bytes of 6-bit scales and minima, 128 bytes of codes.
inline constexpr int kSuperBlockBytes = 144;

/// The bytes of W's codes; of Q4_K all that it stores.
constexpr std::size_t code_bytes(Format format, int rows, int columns) {
  const std::size_t weights = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  return format == Format::q4_k ? weights / kSuperBlock * kSuperBlockBytes
                                : weights * static_cast<std::size_t>(code_bits(format)) / 8;
}
/// The bytes of a scale in an array of scales; Q4_K has none.
constexpr int scale_bytes(Format format) {
  const bool zero = format == Format::int4_zero;
  return format == Format::q4_k ? 0 : (zero ? 16 : scale_bits(format)) / 8;
}

/// Bits a weight takes with its share of the scales; NVFP4's one FP32 number a tensor counts too.
constexpr double bits_per_weight(Format format, Group chosen, int rows, int columns) {
  const Group group = group_of(format, chosen);
  double bits = code_bits(format) +
                static_cast<double>(scale_bits(format)) / group_size(group, rows, columns);
  if (format == Format::q4_k) bits += 32.0 / kSuperBlock;
  if (format == Format::nvfp4) bits += 32.0 / (static_cast<double>(rows) * columns);
  return bits;
}

}  // namespace tilestep::low_bit
