// The knobs, and what must hold between them.

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

/// A block has room for so many query heads that share a K/V head.
void check_group(const Params& params) {
  constexpr int kMostShared = 64;
  const int most = kMostShared * params.cached_heads();
  if (params.scheme == Scheme::mla || params.heads <= most) return;
  const std::string with = params.scheme == Scheme::mqa
                               ? std::string("scheme = mqa")
                               : fmt::format("kv_heads = {}", params.kv_heads);
  lab::refuse_with("heads", std::int64_t{params.heads}, with, fmt::format("1–{}", most),
                   std::int64_t{most});
}

/// The latent cache is in BF16: what its numbers of few bits would cost is another question, since each of them is
/// key and value of all heads.
void check_latent(const Params& params) {
  if (params.scheme != Scheme::mla) return;
  if (params.kv_dtype != KvType::bf16) {
    lab::refuse_with("kv_dtype", std::string(name_of(params.kv_dtype)), "scheme = mla", "bf16",
                     std::string("bf16"));
  }
  if (params.broken == Break::repeat_kv) {
    lab::refuse_with("break", std::string("repeat-kv"), "scheme = mla",
                     "none, stale-page, unmerged-splits", std::string("none"));
  }
}

void check_break(const Params& params) {
  if (params.broken == Break::unmerged_splits && params.splits == 1) {
    lab::refuse_with("break", std::string("unmerged-splits"), "splits = 1",
                     "none, stale-page, repeat-kv", std::string("none"));
  }
  if (params.broken == Break::stale_page && params.context == 0) {
    lab::refuse_with("break", std::string("stale-page"), "context = 0", "none",
                     std::string("none"));
  }
}

// ---- the knobs, in their groups -----------------------------------------------------------------------

void add_heads(lab::KnobTable<Params>& table) {
  table.choice(&Params::scheme, {"scheme", "Who shares a key and a value."})
      .integer(&Params::heads, {"heads", "Query heads", "", "Heads of Q and O."}, 1, kMostHeads,
               true)
      .integer(&Params::kv_heads,
               {"kv_heads", "Key/value heads", "",
                "Heads of K and V with gqa, each shared by as many query heads. mha has one for "
                "each, mqa and mla one for all."},
               1, kMostHeads, true)
      .retired_knob("head_dim", std::string("32"), "heads have 32 numbers; timed ones have 128");
}

void add_cache(lab::KnobTable<Params>& table) {
  table
      .integer(&Params::context,
               {"context", "Context", "tokens", "Tokens of a request, on average."}, 0,
               kMostContext, true)
      .integer(&Params::batch,
               {"batch", "Batch", "requests", "How many requests run together at most."}, 1,
               kMostBatch, true)
      .integer(&Params::splits,
               {"splits", "Splits", "",
                "Into how many parts the keys of a request are cut, each for a block of its own; "
                "0: the pages of all requests in one line, cut into equal pieces."},
               0, kMostSplits)
      .choice(&Params::page_size, {"page_size", "Page size", "tokens", "Tokens of a page."})
      .choice(&Params::kv_dtype,
              {"kv_dtype", "Cache format", "", "How a number of K and V lies in the cache."})
      .retired("kv_dtype", "fp16", "bf16 runs the same steps")
      .choice(&Params::scales,
              {"scales", "Scales", "",
               "Of fp8, int8 and int4: which numbers of K share a scale, those of a token or those "
               "of a channel. V has one a token."});
}

void add_serving(lab::KnobTable<Params>& table) {
  table
      .integer(&Params::requests,
               {"requests", "Requests", "", "How many requests come, one after the other."}, 1,
               kMostRequests, true)
      .integer(&Params::prefix,
               {"prefix", "Shared prefix", "tokens",
                "First tokens that all requests have in common: stored once."},
               0, kMostContext, true)
      .retired_knob("prefix_read", std::string("once"),
                    "a prefix is read once for several requests, and Prefix under Measured has "
                    "both ways")
      .retired_knob("serving_step", std::int64_t{kServingSteps},
                    "the kernel runs after the engine's eighth step");
}

void add_rest(lab::KnobTable<Params>& table) {
  table
      .choice(&Params::broken,
              {"break", "Break it", "", "Leaves something out, and runs that for real."})
      .seed("Chooses numbers, lengths and who has which page.")
      .retired_knob("request", std::int64_t{0}, "the first request is followed")
      .retired_knob("head", std::int64_t{0}, "head 0 is followed, and all do the same")
      .retired_knob("component", std::int64_t{0}, "component 0 of O is followed");
}

lab::KnobTable<Params> made_table() {
  lab::KnobTable<Params> table;
  for (const auto add : {add_heads, add_cache, add_serving, add_rest}) add(table);
  for (const auto check : {check_heads, check_group, check_latent, check_break}) {
    table.require(check);
  }
  return table;
}

}  // namespace

int Params::cached_heads() const {
  switch (scheme) {
    case Scheme::mha:
      return heads;
    case Scheme::gqa:
      return kv_heads;
    case Scheme::mqa:
    case Scheme::mla:
      break;
  }
  return 1;
}

RowShape row_shape(Scheme scheme, int head_dim) {
  if (scheme != Scheme::mla) return {head_dim, head_dim, 2 * head_dim, 0, 0};
  const int latent = 4 * head_dim, rope = head_dim / 2;
  return {latent + rope, latent, latent + rope, latent, rope};
}

const lab::KnobTable<Params>& knob_table() {
  static const lab::KnobTable<Params> table = made_table();
  return table;
}

}  // namespace tilestep::decode
