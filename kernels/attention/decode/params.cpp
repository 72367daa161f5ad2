// The knobs, and the constraints between them.

#include "kernels/attention/decode/params.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace tilestep::decode {
namespace {

void check_heads(const Params& params) {
  if (params.scheme != Scheme::gqa || params.heads % params.kv_heads == 0) return;
  std::string allowed;
  for (int heads = 1; heads <= params.heads; ++heads) {
    if (params.heads % heads == 0) {
      fmt::format_to(std::back_inserter(allowed), "{}{}", heads == 1 ? "" : ", ", heads);
    }
  }
  lab::refuse_with("kv_heads", std::int64_t{params.kv_heads},
                   fmt::format("heads = {}", params.heads), allowed, std::int64_t{1});
}

/// A block has room for at most kMostShared query heads per K/V head.
void check_group(const Params& params) {
  constexpr int kMostShared = 64;
  const int most = kMostShared * params.of().cached_heads();
  if (params.scheme == Scheme::mla || params.heads <= most) return;
  const std::string with = params.scheme == Scheme::mqa
                               ? std::string("scheme = mqa")
                               : fmt::format("kv_heads = {}", params.kv_heads);
  lab::refuse_with("heads", std::int64_t{params.heads}, with, fmt::format("1–{}", most),
                   std::int64_t{most});
}

/// The latent cache is in BF16: the cost of fewer bits is another question there, since each number is key and value of
/// all heads.
void check_latent(const Params& params) {
  if (params.scheme != Scheme::mla) return;
  if (params.kv_dtype != KvType::bf16) {
    lab::refuse_with("kv_dtype", std::string(name_of(params.kv_dtype)), "scheme = mla", "bf16",
                     std::string("bf16"));
  }
  if (params.broken == Break::repeat_kv) {
    lab::refuse_with("break", std::string("repeat-kv"), "scheme = mla", "none, unmerged-splits",
                     std::string("none"));
  }
}

void check_break(const Params& params) {
  if (params.broken == Break::unmerged_splits && params.splits == 1) {
    lab::refuse_with("break", std::string("unmerged-splits"), "splits = 1", "none, repeat-kv",
                     std::string("none"));
  }
}

/// Why the knobs about pages are retired.
constexpr const char* kPaged = "it is in paged-kv now";

// ---- the knobs, in their groups -----------------------------------------------------------------------

void add_heads(lab::KnobTable<Params>& table) {
  table.group("model")
      .choice(&Params::scheme, {"scheme", "Which heads share K and V."})
      .integer(&Params::heads, {"heads", "Query heads", "", "Heads of Q and O."}, 1, kMostHeads,
               true)
      .integer(&Params::kv_heads,
               {"kv_heads", "Key/value heads", "",
                "Heads of K and V with gqa, each shared by a group of heads. mha has one per head, "
                "mqa and mla one for all."},
               1, kMostHeads, true)
      .with("scheme", {"gqa"})
      .retired_knob("head_dim", std::string("32"),
                    "heads have 32 numbers, mla's and timed ones 128");
}

void add_cache(lab::KnobTable<Params>& table) {
  table.group("run")
      .integer(&Params::context, {"context", "Context", "tokens", "Average tokens per request."}, 0,
               kMostContext, true)
      .integer(&Params::batch, {"batch", "Batch", "requests", "Most requests that run together."},
               1, kMostBatch, true)
      .group("kernel")
      .integer(&Params::splits,
               {"splits", "Splits", "",
                "Parts into which a request's keys are split, one block each; 0: the keys of all "
                "requests in one line, cut into equal pieces."},
               0, kMostSplits)
      .choice(&Params::kv_dtype,
              {"kv_dtype", "Cache format", "", "Number format of K and V in the cache."})
      .retired("kv_dtype", "fp16", "bf16 runs the same steps")
      .choice(
          &Params::scales,
          {"scales", "Scales", "",
           "Numbers of K that share a scale: a token's or a channel's. V has one scale per token."})
      .with("kv_dtype", {"fp8", "int8", "int4"});
}

void add_rest(lab::KnobTable<Params>& table) {
  table
      .choice(&Params::broken,
              {"break", "Break it", "", "Leaves something out and runs it for real."})
      .retired("break", "stale-page", kPaged)
      .group("run")
      .seed("Seed of numbers and lengths.")
      .retired_knob("page_size", std::string("16"), kPaged)
      .retired_knob("requests", std::int64_t{6}, kPaged)
      .retired_knob("prefix", std::int64_t{0}, kPaged)
      .retired_knob("prefix_read", std::string("once"), kPaged)
      .retired_knob("serving_step", std::int64_t{8}, kPaged)
      .retired_knob("request", std::int64_t{0}, "the first request is followed")
      .retired_knob("head", std::int64_t{0}, "head 0 is followed; all do the same")
      .retired_knob("component", std::int64_t{0}, "component 0 of O is followed");
}

lab::KnobTable<Params> made_table() {
  lab::KnobTable<Params> table;
  for (const auto add : {add_heads, add_cache, add_rest}) add(table);
  for (const auto check : {check_heads, check_group, check_latent, check_break}) {
    table.require(check);
  }
  return table;
}

}  // namespace

Case Params::of() const {
  return {.scheme = scheme,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = scheme == Scheme::mla ? kLatentHeadDim : kHeadDim,
          .splits = splits,
          .page_size = kPageSize,
          .kv_dtype = kv_dtype,
          .scales = scales,
          .repeat_kv = broken == Break::repeat_kv,
          .unmerged = broken == Break::unmerged_splits,
          .seed = seed};
}

const lab::KnobTable<Params>& knob_table() {
  static const lab::KnobTable<Params> table = made_table();
  return table;
}

}  // namespace tilestep::decode
