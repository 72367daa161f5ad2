#pragma once

/// \file
/// What wgmma computes, without when: numbers of operands, and sums of products.

#include "kernels/base/simt/hopper.hpp"

namespace tilestep::simt::emulated {

/// Bytes as numbers of a format, `bytes` of them; a multiple of 16.
void decode_numbers(hopper::Format format, const unsigned char* from, int bytes, float* to);

/// The transpose of `rows` × `columns`.
void transpose(const float* from, int rows, int columns, float* to);

/// sums [64 × n] += a [64 × depth] · b [depth × n], each sum in the order of depth. n is a multiple of 8.
void add_products(const float* a, const float* b, int depth, int n, float* sums);

}  // namespace tilestep::simt::emulated
