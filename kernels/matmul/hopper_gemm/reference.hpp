#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/numeric/running_sum.hpp"
#include "kernels/matmul/hopper_gemm/kernels.hpp"

namespace tilestep::hopper_gemm {

/// A and B, rounded to the format: as numbers, row by row without gaps, and in the kernels' layout.
struct Matrices {
  std::vector<float> a, b;
  std::vector<std::uint16_t> a_words, b_words;
};

/// The nearest number of the format, ties to even.
float rounded(float value, DataType type);

/// Uniform numbers in −1 … 1, rounded to nearest even.
Matrices make_matrices(const GemmShape& shape, DataType type, std::int64_t seed);

/// Numbers of a format in rows of pitch_bytes(columns), padded with zeros.
std::vector<std::uint16_t> packed(const std::vector<float>& values, int rows, int columns,
                                  DataType type);

/// The precision of the tensor cores' additions for a format. Published for Hopper: E4M3 keeps 13 bits after
/// the point of the largest number in an addition (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, 3.3.2),
/// FP16 and BF16 as many as FP32.
double unit_of(DataType type);

/// C in double, row-major without gaps, and the kernel's error bound. wgmma adds 32 bytes of k at a time to
/// the sum: all are aligned to the largest and truncated, so each loses less than one unit of it.
numeric::AllBounded reference_product(const GemmShape& shape, const Matrices& matrices,
                                      DataType type);

/// One element of it, from a row of A and one of B.
numeric::Bounded reference_dot(std::span<const float> a, std::span<const float> b, DataType type);
/// The same for E4M3 with one scale per block of 128 of k (`a_scales`, `b_scales`), whose sums are added in
/// FP32.
numeric::Bounded reference_scaled_dot(std::span<const float> a, std::span<const float> b,
                                      std::span<const float> a_scales,
                                      std::span<const float> b_scales);

/// Number `at` in words in the kernels' layout.
float number_of(std::span<const std::uint16_t> words, std::size_t at, DataType type);

}  // namespace tilestep::hopper_gemm
