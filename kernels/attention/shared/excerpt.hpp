#pragma once

#include <fmt/format.h>

#include <bit>
#include <string>
#include <vector>

#include "kernels/attention/shared/problem.hpp"
#include "kernels/base/lab/plural.hpp"

namespace tilestep::attention {

/// What one run explains at most: multiplications and additions of whole tiles, and tiles of scores of a head. The
/// emulation computes that in about a second, and a trace of it can be drawn.
inline constexpr double kMostFlops = 2e8;
inline constexpr int kMostTiles = 4096;

/// The part of a problem that a run explains. Too many heads: the first one (with alibi all, whose slopes are of so
/// many heads); still too much: the first 2^n positions.
template <class Params>
struct ExcerptOf {
  Params params;            ///< with the length and the heads that run
  std::string cut;          ///< why they are fewer; empty: they are not
  std::vector<int> begins;  ///< of documents, of the positions that run: as in the whole
};
/// `fits(params, begins)` says whether so much may run.
template <class Params, class Fits>
ExcerptOf<Params> excerpt_where(const Params& params, Fits fits) {
  constexpr int kLeastPart = 64;
  ExcerptOf<Params> excerpt{params, {}, begins_of(document_lengths(params.seq, params.seed))};
  Params& part = excerpt.params;
  const auto too_much = [&] { return !fits(part, excerpt.begins); };
  if (too_much() && part.score_mod != ScoreMod::alibi) part.heads = part.kv_heads = 1;
  if (part.seq > kLeastPart && too_much()) {
    part.seq = static_cast<int>(std::bit_floor(static_cast<unsigned>(part.seq)));
  }
  while (part.seq > kLeastPart && too_much()) part.seq /= 2;
  excerpt.begins.resize(static_cast<std::size_t>(part.seq));
  std::string what;
  if (part.heads < params.heads) what = fmt::format("head 0 of {}", params.heads);
  if (part.seq < params.seq) {
    what += fmt::format("{}the first {} of {}", what.empty() ? "" : ", and of it ",
                        lab::plural(part.seq, "position"), params.seq);
  }
  if (!what.empty()) excerpt.cut = "one run explains a part: " + what;
  return excerpt;
}

}  // namespace tilestep::attention
