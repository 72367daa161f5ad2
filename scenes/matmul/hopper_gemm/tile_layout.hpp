#pragma once

#include <array>
#include <string>

/// The layout of a tile of A or of B in a stage, as CuTe writes it: a swizzle after shape : stride.
namespace tilestep::scenes {

inline constexpr int kBankRows = 8;      ///< rows read at a time, 16 bytes of each
inline constexpr int kBankGroups = 8;    ///< of four banks, 16 bytes each
inline constexpr int kDepthBytes = 128;  ///< of k, in a stage

/// `rows` of 128 bytes of k. With a W-byte swizzle they are stored in panels of W bytes of k, each with all
/// rows; without one, in panels of 16 bytes. Inside a panel, bits of the address change.
struct TileLayout {
  int rows = 0;
  int element_bytes = 2;
  int swizzle = 128;  ///< bytes: 0, 32, 64 or 128

  int panel_bytes() const { return swizzle == 0 ? 16 : swizzle; }
  int panel_elements() const { return panel_bytes() / element_bytes; }
  int panels() const { return kDepthBytes / panel_bytes(); }
  /// The place of element `k` of a row by shape and stride alone, in elements.
  int element(int row, int k) const;
  /// Its place in the stage, in bytes from the start of the tile, and the group of its bank.
  int byte(int row, int k) const;
  int plain_byte(int row, int k) const { return element(row, k) * element_bytes; }
  static int group(int byte) { return byte / 16 % kBankGroups; }

  /// "Sw<3,4,3> o (128,64):(64,1)": rows and k, in elements; Sw<B,4,3> combines B bits of the byte address
  /// from bit 4 on with those from bit 7 on. Without a swizzle this prefix is missing.
  std::string text() const;
};

/// How many of 8 rows have their 16-byte chunk in each group of banks.
struct BankTurns {
  std::array<int, kBankGroups> rows{};
  int turns() const;  ///< the maximum: the number of turns of the read
};
BankTurns turns_of(const TileLayout& layout, int chunk, bool swizzled);

}  // namespace tilestep::scenes
