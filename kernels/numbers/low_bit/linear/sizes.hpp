#pragma once

/// Sizes of W4A16's kernels, for host and device.
namespace tilestep::low_bit {

/// Of the arranged W: a lane has 16 bytes of 16 rows × 64 columns.
inline constexpr int kFragmentRows = 16, kFragmentColumns = 64;
inline constexpr int kGroupColumns = 128;  ///< that share a scale
inline constexpr int kGemvBatch = 8;
inline constexpr int kLinearRows = 128;  ///< of W, in a tile of the GEMM

inline constexpr int kPiece = kGemvBatch * kGroupColumns;  ///< numbers of X that a warp has at hand

/// Blocks of the GEMM on a multiprocessor, with kN rows of X.
constexpr int linear_blocks(int n) {
  return n <= 32 ? 2 : 1;
}
/// Stages of its ring: as many as shared memory holds, at most 8.
constexpr int linear_stages(int n) {
  const int bytes = kLinearRows * kGroupColumns / 2 + n * 2 * kGroupColumns;
  const int room = 208 * 1024 / linear_blocks(n);
  return room / bytes < 8 ? room / bytes : 8;
}
constexpr int linear_shared_bytes(int n) {
  const int stages = linear_stages(n);
  return stages * (kLinearRows * kGroupColumns / 2 + n * 2 * kGroupColumns + 16) + 1024;
}

struct LinearShape {
  int rows = 0, columns = 0, batch = 0;
};

}  // namespace tilestep::low_bit
