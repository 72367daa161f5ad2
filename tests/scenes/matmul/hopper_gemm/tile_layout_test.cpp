// Where a tile's elements lie, as CuTe writes it: against what the kernels compute, and read as CuTe reads it.
#include "scenes/matmul/hopper_gemm/tile_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "kernels/base/simt/hopper.hpp"
#include "kernels/base/simt/mma.hpp"
#include "tests/catch.hpp"

using namespace tilestep;
using scenes::BankTurns, scenes::TileLayout;

namespace {

/// As the kernels compute it (task.hpp, chunk_address), byte by byte.
int by_the_kernels(int rows, int swizzle, int row, int byte_of_k) {
  const int width = swizzle == 0 ? 16 : swizzle;
  const int plain = (byte_of_k / width * rows + row) * width + byte_of_k % width;
  return static_cast<int>(simt::hopper::swizzled_address(static_cast<unsigned>(plain), swizzle));
}

/// The text read as CuTe would: shape : stride in elements, then Sw<B,M,S> on bytes.
struct Read {
  int bits = 0, base = 0, shift = 0;
  int rows = 0, each = 0, panels = 1;
  int row_stride = 0, k_stride = 0, panel_stride = 0;

  explicit Read(std::string text) {
    if (text.rfind("Sw<", 0) == 0) {
      REQUIRE(std::sscanf(text.c_str(), "Sw<%d,%d,%d>", &bits, &base, &shift) == 3);
      REQUIRE(text.find("> o ") != std::string::npos);
      text = text.substr(text.find("> o ") + 4);
    }
    const int nested = std::sscanf(text.c_str(), "(%d,(%d,%d)):(%d,(%d,%d))", &rows, &each, &panels,
                                   &row_stride, &k_stride, &panel_stride);
    if (nested == 6) return;
    panels = 1;
    REQUIRE(std::sscanf(text.c_str(), "(%d,%d):(%d,%d)", &rows, &each, &row_stride, &k_stride) ==
            4);
  }
  int byte(int row, int k, int element_bytes) const {
    const int element = row * row_stride + k % each * k_stride + k / each * panel_stride;
    const int plain = element * element_bytes;
    const int mask = ((1 << bits) - 1) << (base + shift);
    return plain ^ ((plain & mask) >> shift);
  }
};

}  // namespace

TEST_CASE("Hopper GEMM: a tile lies where the kernels put it, and where its layout says",
          "[hopper_gemm_scene]") {
  for (const int swizzle : {0, 32, 64, 128}) {
    for (const int element_bytes : {1, 2}) {
      for (const int rows : {64, 128, 256}) {
        const TileLayout layout{rows, element_bytes, swizzle};
        CAPTURE(swizzle, element_bytes, rows, layout.text());
        const Read read(layout.text());
        const int depth = 128 / element_bytes;
        CHECK(read.rows == rows);
        CHECK(read.each * read.panels == depth);
        int wrong = 0;
        std::set<int> bytes;
        for (int row = 0; row < rows; ++row) {
          for (int k = 0; k < depth; ++k) {
            const int want = by_the_kernels(rows, swizzle, row, k * element_bytes);
            wrong += layout.byte(row, k) != want || read.byte(row, k, element_bytes) != want;
            bytes.insert(want);
          }
        }
        CHECK(wrong == 0);
        CHECK(std::ssize(bytes) == rows * depth);  // no two at one place
        CHECK(*bytes.rbegin() == rows * 128 - element_bytes);
      }
    }
  }
  CHECK(TileLayout{128, 2, 128}.text() == "Sw<3,4,3> o (128,64):(64,1)");
  CHECK(TileLayout{128, 1, 128}.text() == "Sw<3,4,3> o (128,128):(128,1)");
  CHECK(TileLayout{256, 2, 32}.text() == "Sw<1,4,3> o (256,(16,4)):(16,(1,4096))");
  CHECK(TileLayout{64, 2, 0}.text() == "(64,(8,8)):(8,(1,512))");
}

TEST_CASE("Hopper GEMM: turns that eight rows take in the banks", "[hopper_gemm_scene]") {
  for (const int swizzle : {0, 32, 64, 128}) {
    const TileLayout layout{128, 2, swizzle};
    const int width = swizzle == 0 ? 16 : swizzle;
    for (int chunk = 0; chunk < 8; ++chunk) {
      CAPTURE(swizzle, chunk);
      const BankTurns plain = turns_of(layout, chunk, false), with = turns_of(layout, chunk, true);
      CHECK(plain.turns() == width / 16);
      CHECK(with.turns() == 1);
      // A wavefront has 32 banks of 4 bytes: of each, in how many different lines of 128 bytes it is asked for.
      for (const bool swizzled : {false, true}) {
        int most = 0;
        for (int bank = 0; bank < 32; ++bank) {
          std::set<int> lines;
          for (int row = 0; row < 8; ++row) {
            for (int byte = chunk * 16; byte < chunk * 16 + 16; byte += 4) {
              const int at = by_the_kernels(128, swizzled ? swizzle : 0, row, byte);
              const int without = (byte / width * 128 + row) * width + byte % width;
              const int place = swizzled ? at : without;
              if (place / 4 % 32 == bank) lines.insert(place / 128);
            }
          }
          most = std::max(most, static_cast<int>(lines.size()));
        }
        CHECK((swizzled ? with : plain).turns() == most);
      }
    }
  }
  // The widest one is that of the kernels with tiles of 128 bytes.
  for (int row = 0; row < 64; ++row) {
    for (int chunk = 0; chunk < 8; ++chunk) {
      CHECK(TileLayout{64, 2, 128}.byte(row, chunk * 8) == simt::swizzled_chunk(row, chunk) * 16);
    }
  }
}
