#pragma once

#include <string>
#include <vector>

#include "kernels/attention/flash_attention/params.hpp"
#include "kernels/attention/shared/excerpt.hpp"
#include "kernels/attention/shared/reference.hpp"

namespace tilestep::flash_attention {

/// Of the knobs.
inline Inputs make_inputs(const Params& params) {
  return make_inputs(task_of(params), params.data, params.seed);
}
/// How the kernels of `runs` round.
Roundings roundings_of(Variant runs);

using Excerpt = ExcerptOf<Params>;
Excerpt excerpt_of(const Params& params);
/// What its kernels get.
Inputs inputs_of(const Excerpt& excerpt);

}  // namespace tilestep::flash_attention
