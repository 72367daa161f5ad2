#pragma once

#include "kernels/base/numeric/float_format.hpp"

/// Sizes of W4A16's and W8A8's kernels, for host and device.
namespace tilestep::low_bit {

/// Of the arranged W: a lane has 16 bytes of 16 rows × 64 columns.
inline constexpr int kFragmentRows = 16, kFragmentColumns = 64;
inline constexpr int kGroupColumns = 128;  ///< that share a scale
inline constexpr int kGemvBatch = 8;
inline constexpr int kLinearRows = 128;  ///< of W, in a tile of the GEMM

struct LinearShape {
  int rows = 0, columns = 0, batch = 0;
};

inline constexpr int kGemvWarps = 16;  ///< that multiply
inline constexpr int kGemvGroups = 8;  ///< of a stage, each for a warp
inline constexpr int kGemvCodes = kGemvGroups * kFragmentRows * kGroupColumns / 2;
inline constexpr int kGemvScales = kGemvGroups * kFragmentRows * 2;
inline constexpr int kGemvStageBytes = kGemvCodes + kGemvScales;
/// The first tile of a block, of as many as are wanted. Two blocks of a multiprocessor have numbers half of all apart: the
/// second half is turned by half a tile, so that they are not the longer ones both.
TILESTEP_HOST_DEVICE constexpr int first_gemv_tile(int tiles, int blocks, int block) {
  return (2 * block * tiles + (2 * block >= blocks ? blocks : 0)) / (2 * blocks);
}
constexpr int most_gemv_tiles(int tiles, int blocks) {
  return tiles % blocks == 0 ? tiles / blocks : tiles / blocks + 2;
}
/// The GEMV's shared memory: X in digits, their units, the warps' sums of all tiles, stages.
struct GemvRoom {
  int units_at = 0, sums_at = 0, stages_at = 0;
  int stages = 0;  ///< an even number: each is read by the same half of the warps every time
  int bytes = 0;   ///< of all
};
constexpr GemvRoom gemv_room_in(int bytes, int tiles, const LinearShape& shape) {
  GemvRoom room{.bytes = bytes};
  room.units_at = 4 * shape.batch * (shape.columns + 16);
  room.sums_at = room.units_at + shape.columns / kGroupColumns * shape.batch * 4;
  room.stages_at = room.sums_at + tiles * kGemvWarps * shape.batch * kFragmentRows * 4;
  room.stages = (bytes - 128 - room.stages_at) / (kGemvStageBytes + 16) / 2 * 2;
  return room;
}
/// Half a multiprocessor's, so that one block begins while another one ends; where that holds few stages, all.
constexpr GemvRoom gemv_room(int tiles, const LinearShape& shape) {
  const GemvRoom half = gemv_room_in(111 * 1024, tiles, shape);
  return half.stages >= 6 ? half : gemv_room_in(224 * 1024, tiles, shape);
}

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

/// W8A8: a stage has so many columns of both, a row of them as long as the swizzle.
inline constexpr int kEightColumns = 128;
inline constexpr int kPersistentTile = 256;  ///< rows of X in a tile of the persistent kernel
/// Where its tiles of Y wait for TMA: two a consumer, of 64 rows of W and of X.
inline constexpr int kEightTile = 64 * 128;

constexpr int eight_stage_bytes(int n) {
  return (kLinearRows + n) * kEightColumns;
}
/// Blocks on a multiprocessor; with more rows of X one has all registers.
constexpr int eight_blocks(int n) {
  return n <= 64 ? 2 : 1;
}
/// As many as shared memory holds.
constexpr int eight_stages(int n) {
  return n == kPersistentTile ? 4 : 224 * 1024 / eight_blocks(n) / (eight_stage_bytes(n) + 16);
}
constexpr int eight_shared_bytes(int n) {
  return eight_stages(n) * (eight_stage_bytes(n) + 16) +
         (n == kPersistentTile ? 4 * kEightTile : 0) + 1024;
}

/// Tables of sums for ternary weights: of a slice of columns, by so many warps of a block, each with some rows at a time.
inline constexpr int kTableColumns = 512, kTableBytes = kTableColumns * 256;
inline constexpr int kTableWarps = 16, kTableBatch = 8;
inline constexpr int kTableRows = 4096;  ///< that a block has at most
/// Rows of a cluster, and its blocks.
struct TablePlan {
  int rows = 0, blocks = 0;
};

}  // namespace tilestep::low_bit
