#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/names.hpp"

/// Which kernel runs a product: a dispatcher, and what its choice costs a model.
namespace tilestep::launches {

enum class Dtype { fp32, bf16, fp8 };
constexpr auto names_of(Dtype) {
  return std::to_array<std::string_view>({"fp32", "bf16", "fp8"});
}
constexpr int bytes_of(Dtype type) {
  return type == Dtype::fp32 ? 4 : type == Dtype::bf16 ? 2 : 1;
}

enum class Kernel {
  tensor,   ///< tensor cores, tiles by TMA
  vectors,  ///< 16-byte loads, a warp per row of W
  single    ///< a number per load
};
constexpr auto names_of(Kernel) {
  return std::to_array<std::string_view>({"tensor", "vectors", "single"});
}

/// Y = X · W^T: X is m × k, W n × k. `offset`: bytes of W's first number past a multiple of 16.
struct Product {
  Dtype dtype = Dtype::bf16;
  int m = 1, n = 1, k = 1;
  int offset = 0;
};
struct Choice {
  Kernel kernel = Kernel::single;
  std::string why;  ///< what kept the faster ones out, or why this is the fastest
};
/// Rows of X from which tiles of tensor cores pay.
inline constexpr int kLeastRows = 16;
Choice chosen_for(const Product& product);

// ---- tiles and waves ------------------------------------------------------------------------------------

/// The tile of the product kernel, and the multiprocessors of an H200.
inline constexpr int kTileM = 128, kTileN = 256, kMultiprocessors = 132;
struct Tiling {
  int rows = 0, columns = 0;  ///< tiles along m and n
  int waves = 0;
  constexpr int tiles() const { return rows * columns; }
};
constexpr Tiling tiling_of(int m, int n, int multiprocessors = kMultiprocessors) {
  Tiling made;
  made.rows = (m + kTileM - 1) / kTileM;
  made.columns = (n + kTileN - 1) / kTileN;
  made.waves = (made.tiles() + multiprocessors - 1) / multiprocessors;
  return made;
}
/// The share of the waves' room that the product fills.
double filled(int m, int n, const Tiling& tiling, int multiprocessors = kMultiprocessors);

/// Amdahl: times as long as a model takes of which `share` takes `slower` times as long.
constexpr double slowdown(double share, double slower) {
  return 1 + share * (slower - 1);
}

}  // namespace tilestep::launches
