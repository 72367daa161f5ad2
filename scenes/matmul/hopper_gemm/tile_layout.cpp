#include "scenes/matmul/hopper_gemm/tile_layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/simt/hopper.hpp"

namespace tilestep::scenes {
namespace {

constexpr int kBase = 4, kShift = 3;  // of Sw<B,4,3>: the first bit, and the shift

/// B of Sw<B,4,3>: 0, 1, 2, 3.
int bits_of(int swizzle) {
  int bits = 0;
  while (swizzle >= 32 << bits) ++bits;
  return bits;
}

}  // namespace

int TileLayout::element(int row, int k) const {
  const int each = panel_elements();
  return row * each + k % each + k / each * rows * each;
}

int TileLayout::byte(int row, int k) const {
  return static_cast<int>(
      simt::hopper::swizzled_address(static_cast<unsigned>(plain_byte(row, k)), swizzle));
}

std::string TileLayout::text() const {
  const int each = panel_elements();
  std::string said =
      swizzle == 0 ? "" : fmt::format("Sw<{},{},{}> o ", bits_of(swizzle), kBase, kShift);
  said += panels() == 1
              ? fmt::format("({},{}):({},1)", rows, each, each)
              : fmt::format("({},({},{})):({},(1,{}))", rows, each, panels(), each, rows * each);
  return said;
}

int BankTurns::turns() const {
  return *std::max_element(rows.begin(), rows.end());
}

BankTurns turns_of(const TileLayout& layout, int chunk, bool swizzled) {
  BankTurns turns;
  const int k = chunk * 16 / layout.element_bytes;
  for (int row = 0; row < kBankRows; ++row) {
    const int byte = swizzled ? layout.byte(row, k) : layout.plain_byte(row, k);
    ++turns.rows[static_cast<std::size_t>(TileLayout::group(byte))];
  }
  return turns;
}

}  // namespace tilestep::scenes
