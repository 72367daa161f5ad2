#include "kernels/attention/flash_attention/run/excerpt.hpp"

#include <fmt/format.h>

#include <bit>

#include "kernels/attention/flash_attention/backward/kernels.hpp"
#include "kernels/attention/flash_attention/run/ledger.hpp"
#include "kernels/base/lab/plural.hpp"

namespace tilestep::flash_attention {
namespace {

constexpr int kLeastPart = 64;

bool fits(const Params& params, const std::vector<int>& begins) {
  const bool backward = params.pass != Pass::forward;
  const Plan plan = backward ? backward_plan_of(params) : plan_of(params);
  if (std::int64_t{plan.q_tiles} * plan.k_tiles > kMostTiles) return false;
  const Task task = task_of(params);
  double flops =
      tile_flops(plan, task, begins);  // of the forward pass, in tiles of about that size
  if (backward) flops += backward_flops(plan, task, begins);
  return flops <= kMostFlops;
}

}  // namespace

Roundings roundings_of(Variant runs, OutputOf output) {
  Roundings r;
  if (runs == Variant::naive) r.score = numeric::Bf16::kUnitRoundoff;
  if (runs == Variant::flash_1) r.visits = 10;
  // Warps of flash-1 add up; flash-3 goes backwards, and the running bound is of sums from the first key on.
  if (runs == Variant::flash_1 || is_flash_3(runs)) {
    r.values_adding = numeric::Adding::any_order_tensor_core;
  }
  r.backwards = is_flash_3(runs);
  if (is_flash_3(runs) && output == OutputOf::explained) r.output = 0;
  return r;
}

Excerpt excerpt_of(const Params& params) {
  Excerpt excerpt{params, {}, begins_of(document_lengths(params.seq, params.seed))};
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

Inputs inputs_of(const Excerpt& excerpt) {
  Inputs inputs = make_inputs(excerpt.params);
  inputs.begins = excerpt.begins;
  return inputs;
}

}  // namespace tilestep::flash_attention
