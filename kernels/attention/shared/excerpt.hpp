#pragma once

#include <fmt/format.h>

#include <bit>
#include <string>
#include <vector>

#include "kernels/attention/shared/matrix.hpp"
#include "kernels/attention/shared/problem.hpp"
#include "kernels/attention/shared/reference.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/numeric/index.hpp"

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

/// What its kernels get.
template <class Params>
Inputs inputs_of(const ExcerptOf<Params>& excerpt) {
  Data data = Data::random;
  if constexpr (requires { excerpt.params.data; }) data = excerpt.params.data;
  Inputs inputs = make_inputs(task_of(excerpt.params), data, excerpt.params.seed);
  inputs.begins = excerpt.begins;
  return inputs;
}

/// What a trace says of the problem and the launch; `plan` is the dispatcher's, of `blocks`.
template <class Params>
void describe(Matrix& trace, const Params& asked, const ExcerptOf<Params>& excerpt,
              const TilePlan& plan, int blocks) {
  const Params& part = excerpt.params;
  trace.plan = {plan.filled,  plan.resized, excerpt.cut,
                plan.block_q, plan.block_k, plan.q_tiles,
                plan.k_tiles, plan.threads, static_cast<int>(plan.shared_bytes),
                blocks};
  trace.shape = {part.seq,    part.heads,     part.kv_heads, asked.seq,
                 asked.heads, asked.kv_heads, plan.head_dim, plan.columns};
  trace.mask = plan.rule.mask;
  trace.window = asked.rule().window;
  trace.sinks = asked.rule().sinks;
  if (trace.mask == Mask::document) trace.documents = document_lengths(asked.seq, asked.seed);
}

/// The chosen query's, of O and log-sum-exps of all rows.
template <class Answer>
void fill_answer(Answer& answer, const Matrix& trace, const std::vector<float>& o,
                 const std::vector<float>& lse, const Reference& exact) {
  const int row = trace.chosen.head * trace.shape.length + trace.chosen.query;
  const auto first = static_cast<std::ptrdiff_t>(numeric::index_of(row, 0, trace.shape.head_dim));
  const auto end = first + trace.shape.head_dim;
  answer.o.assign(o.begin() + first, o.begin() + end);
  answer.exact.assign(exact.o.value.begin() + first, exact.o.value.begin() + end);
  answer.lse = lse[static_cast<std::size_t>(row)];
  answer.exact_lse = exact.lse.value[static_cast<std::size_t>(row)];
}

}  // namespace tilestep::attention
