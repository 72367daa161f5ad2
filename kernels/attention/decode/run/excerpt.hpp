#pragma once

#include <string>

#include "kernels/attention/decode/params.hpp"

namespace tilestep::decode {

/// The part of a problem that a run explains: fewer requests, a shorter context, at last the query heads of one K/V
/// head. The formulas are of the whole.
struct Excerpt {
  Params params;    ///< with what runs
  std::string cut;  ///< what of the whole that is; empty: all of it
};
Excerpt excerpt_of(const Params& params);

}  // namespace tilestep::decode
