// The knobs, and what the dispatcher makes of them.

#include <fmt/format.h>

#include <algorithm>

#include "kernels/attention/flash_attention/kernels.hpp"
#include "kernels/attention/flash_attention/params.hpp"
#include "kernels/attention/flash_attention/quantized/problem.hpp"
#include "kernels/attention/shared/knobs.hpp"

namespace tilestep::flash_attention {
namespace {

/// With scores in 8 bits one kernel runs for all rungs: its loop, and what it records, are flash-2's.
Variant runs_as(const Params& params) {
  if (is_quantized(params.dtype)) return Variant::flash_2;
  return params.variant;
}

// ---- what must hold between knobs -------------------------------------------------------------------

/// Scores in 8 bits: head dimensions 64 and 128, whatever the rung, mask and modifier.
void check_quantized(const Params& params) {
  if (!is_quantized(params.dtype)) return;
  const std::string name(name_of(params.dtype));
  if (params.head_dim != HeadDim::d64 && params.head_dim != HeadDim::d128) {
    lab::refuse_with("head_dim", std::string(name_of(params.head_dim)), "dtype = " + name,
                     "64, 128", std::string("64"));
  }
}

bool can_break(const Params& params, Break broken) {
  if (broken == Break::none) return true;
  const Variant runs = runs_as(params);
  if (broken == Break::skip_rescale) return runs != Variant::naive;
  if (broken == Break::materialize) return runs == Variant::flash_2 && !is_quantized(params.dtype);
  return params.mask != Mask::none;
}

void check_break(const Params& params) {
  if (can_break(params, params.broken)) return;
  std::string allowed;
  for (const Break broken : all_of<Break>()) {
    if (!can_break(params, broken)) continue;
    fmt::format_to(std::back_inserter(allowed), "{}{}", allowed.empty() ? "" : ", ",
                   name_of(broken));
  }
  lab::refuse_with(
      "break", std::string(name_of(params.broken)),
      fmt::format("variant = {} and mask = {}", name_of(runs_as(params)), name_of(params.mask)),
      allowed, std::string("none"));
}

void check_naive_row(const Params& params) {
  const int most = kMostSharedBytes / kElementBytes / 1024 * 1024;
  if (runs_as(params) != Variant::naive || params.seq <= most) return;
  lab::refuse_with("seq", std::int64_t{params.seq},
                   "variant = naive, whose softmax holds a row of scores in shared memory",
                   fmt::format("1–{}", most), std::int64_t{most});
}

void check(const Params& params) {
  check_quantized(params);
  check_naive_row(params);
  check_break(params);
}

std::vector<std::string> tile_names() {
  std::vector<std::string> names;
  for (const Edge queries : all_of<Edge>()) {
    for (const Edge keys : all_of<Edge>()) {
      names.push_back(fmt::format("{}x{}", name_of(queries), name_of(keys)));
    }
  }
  return names;
}

// ---- tiles -------------------------------------------------------------------------------------------

/// Halves the tiles of keys, then those of queries, until a block's shared memory holds them.
void fit_tiles(Plan& plan) {
  while (shared_bytes_of(plan.runs, {plan.block_q, plan.block_k, plan.columns}) >
         static_cast<std::size_t>(kMostSharedBytes)) {
    (plan.block_k > 16 && plan.block_k >= plan.block_q ? plan.block_k : plan.block_q) /= 2;
  }
  plan.shared_bytes = shared_bytes_of(plan.runs, {plan.block_q, plan.block_k, plan.columns});
}

void choose_tiles(Plan& plan, const Params& params) {
  const int asked_q = size_of(params.block_q);
  const int asked_k = size_of(params.block_k);
  plan.block_q = asked_q;
  plan.block_k = asked_k;
  if (plan.quantized) {
    const QuantizedSizes sizes = quantized_sizes(plan.head_dim, false);
    plan.block_q = sizes.block_q;
    plan.block_k = sizes.block_k;
    plan.threads = sizes.threads();
    plan.shared_bytes = static_cast<std::size_t>(sizes.shared_bytes());
    if (plan.block_q != asked_q || plan.block_k != asked_k) {
      plan.resized =
          fmt::format("with dtype = {} tiles have {} queries and {} keys, and each a scale",
                      name_of(params.dtype), plan.block_q, plan.block_k);
    }
  } else {
    fit_tiles(plan);
    plan.threads = 32 * warps_of(plan.runs, {plan.block_q, plan.block_k, plan.columns});
    if (plan.block_q != asked_q || plan.block_k != asked_k) {
      plan.resized =
          fmt::format("tiles of {} queries and {} keys do not fit into the {} KB of shared memory",
                      asked_q, asked_k, kMostSharedBytes / 1024);
    }
  }
  plan.cut(params.seq);
}

}  // namespace

MaskRule Params::rule() const {
  MaskRule rule;
  rule.mask = mask;
  rule.length = seq;
  if (mask == Mask::sliding_window || mask == Mask::prefix) rule.window = std::min(window, seq);
  if (mask == Mask::sliding_window) rule.sinks = std::min(sinks, seq);
  return rule;
}

Task task_of(const Params& params) {
  return {params.rule(), params.heads, params.kv_heads, columns_of(params.head_dim),
          params.score_mod};
}

Params Choices::params() const {
  Params params{.variant = variant, .seq = seq, .heads = heads, .head_dim = head_dim};
  params.kv_heads = heads % 2 == 0 ? heads / 2 : heads;
  const bool modified = mask == Sees::alibi || mask == Sees::softcap;
  params.mask = modified ? Mask::causal : static_cast<Mask>(mask);
  if (modified) params.score_mod = mask == Sees::alibi ? ScoreMod::alibi : ScoreMod::softcap;
  params.sinks = sinks;
  params.block_q = static_cast<Edge>(tile / static_cast<int>(count_of<Edge>()));
  params.block_k = static_cast<Edge>(tile % static_cast<int>(count_of<Edge>()));
  constexpr DataType kTypes[] = {DataType::bf16, DataType::fp8, DataType::int8, DataType::fp8,
                                 DataType::int8};
  params.dtype = kTypes[static_cast<int>(dtype)];
  params.smooth_k = dtype < ScoreFormat::fp8_with_mean;
  if (is_quantized(params.dtype)) params.data = Data::outliers;
  params.broken = broken;
  params.query = query;
  return params;
}

const lab::KnobTable<Choices>& knob_table() {
  static const auto table =
      lab::KnobTable<Choices>()
          .group("kernel")
          .choice(&Choices::variant, {"variant", "Which rung of the ladder runs."})
          .retired("variant", "flash-3-tma", "the lesson flash-attention-3 has it")
          .retired("variant", "flash-3-ping-pong", "the lesson flash-attention-3 has it")
          .retired("variant", "flash-3", "the lesson flash-attention-3 has it")
          .retired("variant", "fused-softmax",
                   "naive keeps its scores in memory, flash-2 none; both have a rung")
          .group("model")
          .integer(&Choices::seq, {"seq", "Length", "tokens", "Queries, and as many keys."}, 1,
                   kMostLength, true)
          .integer(&Choices::heads,
                   {"heads",
                    "Heads of Q and O; two share a head of K and V if their number is even "
                    "(grouped-query attention)."},
                   1, kMostHeads, true)
          .choice(&Choices::head_dim,
                  {"head_dim", "Head dimension", "", "Components of a query, key or value."})
          .choice(&Choices::mask,
                  {"mask",
                   "Which keys a query sees: a window and a prefix have 64. alibi and softcap are "
                   "causal and change each score before the softmax."})
          .integer(&Choices::sinks, {"sinks", "Sinks", "keys", "First keys that every query sees."},
                   0, 1024)
          .with("mask", {"sliding-window"})
          .group("kernel")
          .choice(&Choices::tile, {"tile", "Queries and keys per tile."}, tile_names())
          .choice(&Choices::dtype,
                  {"dtype", "Number format", "",
                   "Format of Q, K, V and O; accumulators are FP32. fp8 and int8 quantize Q and K "
                   "alone, with a scale per tile, and K without its mean over the keys, or with "
                   "it; the rest stays BF16. K then has a few channels far from 0."})
          .retired("dtype", "fp16", "bf16 runs the same steps")
          .retired("dtype", "fp32", "bf16 runs the same steps")
          .choice(&Choices::broken, {"break", "Break it", "",
                                     "Omits a step or materializes S, and runs that kernel."})
          .group("look")
          .integer(&Choices::query,
                   {"query", "Chosen query", "", "Query whose steps are traced, at most the last."},
                   0, kMostLength - 1)
          .retired_knob("kv_heads", std::int64_t{1}, "two heads of Q share one of K and V")
          .retired_knob("window", std::int64_t{64}, "a window and a prefix have 64 keys")
          .retired_knob("score_mod", std::string("none"), "mask = alibi or softcap")
          .retired_knob("block_q", std::string("32"), "tile = 64x32 has tiles of 64 queries")
          .retired_knob("block_k", std::string("32"), "tile = 32x64 has tiles of 64 keys")
          .retired_knob("smooth_k", true, "dtype = fp8-with-mean or int8-with-mean")
          .retired_knob("data", std::string("random"), "K has outliers with dtype = fp8 or int8")
          .retired_knob("seed", std::int64_t{1}, "Q, K and V are the same in every run")
          .retired_knob("pass", std::string("forward"),
                        "the backward pass is the lesson attention-backward")
          .retired_knob("head", std::int64_t{0}, "the first head's steps are shown")
          .retired_knob("component", std::int64_t{0}, "the first component of O is followed")
          .retired_knob("rescale_above", std::int64_t{0},
                        "kernels rescale whenever a maximum rises; the lesson's text says what "
                        "FlashAttention 4's threshold did")
          .retired_knob("exp_polynomial", std::int64_t{0},
                        "all exponentials come from their unit; the lesson's text says what "
                        "FlashAttention 4's polynomial did")
          .require([](const Choices& choices) { check(choices.params()); });
  return table;
}

Plan plan_of(const Params& params) {
  check_heads(params.heads, params.kv_heads);
  check(params);
  simt::require_within("flash-attention: seq", params.seq, 1, kMostLength);
  return formula_plan_of(params);
}

Plan formula_plan_of(const Params& params) {
  Plan plan;
  plan.asked = params.variant;
  plan.runs = runs_as(params);
  plan.quantized = is_quantized(params.dtype);
  plan.smooth_k = plan.quantized && params.smooth_k;
  if (plan.quantized) {
    plan.instead = fmt::format("runs as the one kernel with scores in {}, whose loop is flash-2's",
                               name_of(params.dtype));
  }
  plan.fill(columns_of(params.head_dim));
  plan.rule = params.rule();
  choose_tiles(plan, params);
  return plan;
}

}  // namespace tilestep::flash_attention
