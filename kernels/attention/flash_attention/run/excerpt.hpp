#pragma once

#include <string>
#include <vector>

#include "kernels/attention/flash_attention/params.hpp"
#include "kernels/attention/flash_attention/shared/reference.hpp"

namespace tilestep::flash_attention {

/// Of the knobs.
inline Inputs make_inputs(const Params& params) {
  return make_inputs(task_of(params), params.data, params.seed);
}
inline std::vector<float> make_d_output(const Params& params) {
  return make_d_output(task_of(params), params.seed);
}

/// How the kernels of `runs` round. Of flash-3 the explained one, whose O is FP32, or the timed one.
enum class OutputOf { explained, timed };
Roundings roundings_of(Variant runs, OutputOf output = OutputOf::explained);

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
