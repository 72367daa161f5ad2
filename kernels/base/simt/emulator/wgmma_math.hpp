#pragma once

/// \file
/// What wgmma computes, without when: numbers of operands, and sums of products.

#include <cstdint>

#include "kernels/base/simt/hopper.hpp"

namespace tilestep::simt::emulated {

/// Where an operand's tile lies that a descriptor describes: as pieces of 16 bytes, two for each of its rows.
/// PTX ISA, "Strides" and "Canonical layouts" of wgmma's shared-memory matrices.
class OperandLayout {
 public:
  /// `rows` of A or B; `turned`: they, and not k, are fastest, in 2-byte numbers.
  OperandLayout(std::uint64_t descriptor, int rows, bool turned);

  int rows() const { return rows_; }
  bool turned() const { return turned_; }
  int pieces() const { return 2 * rows_; }
  /// Row after row; turned, k after k.
  unsigned address(int piece) const;

 private:
  unsigned start_, leading_, stride_;
  int swizzle_, rows_;
  bool turned_;
};

/// Puts a thread's four registers of A (as mma.m16n8k16, or m16n8k32 for bytes) into a [64 × depth].
void put_fragment(hopper::Format format, int thread, const unsigned* registers, float* a);

/// Bytes as numbers of a format, `bytes` of them; a multiple of 16.
void decode_numbers(hopper::Format format, const unsigned char* from, int bytes, float* to);

/// The transpose of `rows` × `columns`.
void transpose(const float* from, int rows, int columns, float* to);

/// sums [64 × n] += a [64 × depth] · b [depth × n], each sum in the order of depth. n is a multiple of 8.
void add_products(const float* a, const float* b, int depth, int n, float* sums);
/// The same for whole numbers up to 128, whose sums are 32-bit integers in the places of floats.
void add_whole_products(const float* a, const float* b, int depth, int n, float* sums);

}  // namespace tilestep::simt::emulated
