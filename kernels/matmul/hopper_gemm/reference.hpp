#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/numeric/running_sum.hpp"
#include "kernels/matmul/hopper_gemm/kernels.hpp"

namespace tilestep::hopper_gemm {

/// A and B, rounded to the format: as numbers, row after row without gaps, and as the kernels take them.
struct Matrices {
  std::vector<float> a, b;
  std::vector<std::uint16_t> a_words, b_words;
};

/// The nearest number of the format, ties to even.
float rounded(float value, DataType type);

/// Uniform numbers in −1 … 1, rounded to nearest even, or zeros.
Matrices make_matrices(const GemmShape& shape, DataType type, Data data, std::int64_t seed);

/// Numbers of a format in rows of pitch_bytes(columns), zeros between them.
std::vector<std::uint16_t> packed(const std::vector<float>& values, int rows, int columns,
                                  DataType type);

/// How exactly the tensor cores add up products of a format. Seen by others on Hopper: E4M3 keeps 13 bits
/// after the point of the largest of the numbers that are added at once (DeepSeek-AI, "DeepSeek-V3 Technical
/// Report", 2024, 3.3.2), FP16 and BF16 those of FP32.
double unit_of(DataType type);

/// C in double, row-major without gaps, and how far the kernel may be from it. wgmma adds 32 bytes of k at a
/// time to the sum: all are aligned to the largest and cut off, so that each loses less than one unit of it.
numeric::AllBounded reference_product(const GemmShape& shape, const Matrices& matrices,
                                      DataType type);

/// One element of it, from a row of A and one of B.
numeric::Bounded reference_dot(std::span<const float> a, std::span<const float> b, DataType type);
/// The same of E4M3 with a scale for each block of 128 of k (`a_scales`, `b_scales`), whose sums are added up
/// in FP32.
numeric::Bounded reference_scaled_dot(std::span<const float> a, std::span<const float> b,
                                      std::span<const float> a_scales,
                                      std::span<const float> b_scales);

/// Number `at` of words as the kernels take them.
float number_of(std::span<const std::uint16_t> words, std::size_t at, DataType type);

}  // namespace tilestep::hopper_gemm
