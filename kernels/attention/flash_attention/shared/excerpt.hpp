#pragma once

#include <string>
#include <vector>

#include "kernels/attention/flash_attention/shared/problem.hpp"

namespace tilestep::flash_attention {

/// What one run explains at most: multiplications and additions of whole tiles, and tiles of scores of a head. The
/// emulation computes that in about a second, and a trace of it can be drawn.
inline constexpr double kMostFlops = 2e8;
inline constexpr int kMostTiles = 4096;

/// The part of a problem that a run explains. Too many heads: the first one (with alibi all, whose slopes are of so
/// many heads); still too much: the first 2^n positions.
struct Excerpt {
  Params params;            ///< with the length and the heads that run
  std::string cut;          ///< why they are fewer; empty: they are not
  std::vector<int> begins;  ///< of documents, of the positions that run: as in the whole
};
Excerpt excerpt_of(const Params& params);
/// What its kernels get.
Inputs inputs_of(const Excerpt& excerpt);

}  // namespace tilestep::flash_attention
