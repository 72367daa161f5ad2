// What the dispatcher chooses, and what it refuses.

#include "kernels/attention/flash_attention/backward/kernels.hpp"
#include "tests/catch.hpp"

using namespace tilestep;
using namespace tilestep::flash_attention;
using tests::contains;
using tests::error_of;

namespace {

Variant runs_as(Params params, Variant variant) {
  params.variant = variant;
  return plan_of(params).runs;
}

}  // namespace

TEST_CASE("flash-3 runs where it is compiled, else flash-2 with a reason", "[flash_attention]") {
  for (const Variant variant :
       {Variant::flash_3_tma, Variant::flash_3_ping_pong, Variant::flash_3}) {
    for (const HeadDim dim : all_of<HeadDim>()) {
      for (const Mask mask : all_of<Mask>()) {
        for (const int sinks : {0, 4}) {
          const bool there = (dim == HeadDim::d64 || dim == HeadDim::d128) &&
                             mask <= Mask::sliding_window &&
                             (mask != Mask::sliding_window || sinks == 0);
          const Plan plan =
              plan_of({.variant = variant, .head_dim = dim, .mask = mask, .sinks = sinks});
          CHECK(plan.asked == variant);
          CHECK(plan.runs == (there ? variant : Variant::flash_2));
          CHECK(plan.instead.empty() == there);
        }
      }
    }
  }
  CHECK(contains(plan_of({.variant = Variant::flash_3, .head_dim = HeadDim::d80}).instead, "80"));
  for (const ScoreMod mod : {ScoreMod::alibi, ScoreMod::softcap}) {
    const Plan plan =
        plan_of({.variant = Variant::flash_3, .head_dim = HeadDim::d64, .score_mod = mod});
    CHECK(plan.runs == Variant::flash_2);
    CHECK(contains(plan.instead, name_of(mod)));
  }
  CHECK(runs_as({}, Variant::naive) == Variant::naive);
}

TEST_CASE("flash-3's tiles are those of its kernels, and say so", "[flash_attention]") {
  for (const Variant variant : {Variant::flash_3_tma, Variant::flash_3}) {
    for (const Edge edge : all_of<Edge>()) {
      for (const HeadDim dim : {HeadDim::d64, HeadDim::d128}) {
        const Plan plan =
            plan_of({.variant = variant, .head_dim = dim, .block_q = edge, .block_k = edge});
        CHECK(plan.block_q == (dim == HeadDim::d64 ? 192 : 128));
        CHECK(plan.block_k == (edge == Edge::t128 ? 128 : 64));
        CHECK(plan.threads == plan.block_q * 2 + 128);
        CHECK(plan.shared_bytes > 0);
        CHECK(plan.shared_bytes <= static_cast<std::size_t>(kMostSharedBytes));
        const bool as_asked = plan.block_q == size_of(edge) && plan.block_k == size_of(edge);
        CHECK(plan.resized.empty() == as_asked);
      }
    }
  }
}

TEST_CASE("what is gone is answered with what took its place", "[flash_attention]") {
  const auto said = [](const char* knob, const lab::KnobValue& value) {
    return error_of([&] { knob_table().params({{knob, value}}); });
  };
  for (const char* format : {"fp16", "fp32"}) {
    CHECK(said("dtype", std::string(format)) ==
          fmt::format("knob 'dtype' no longer has '{}': bf16 runs the same steps; allowed: one of "
                      "bf16, fp8, int8",
                      format));
  }
  CHECK(contains(said("variant", std::string("fused-softmax")), "naive keeps its scores"));
  CHECK(contains(said("pass", std::string("backward-store")), "its table passes"));
  for (const char* knob : {"rescale_above", "exp_polynomial"}) {
    CHECK(contains(said(knob, std::int64_t{8}), "no longer a knob"));
    CHECK(contains(said(knob, std::int64_t{8}), "the lesson's text"));
    CHECK_NOTHROW(knob_table().params({{knob, std::int64_t{0}}}));  // as older capsules have it
  }
}

TEST_CASE("a head dimension of 80 is filled, and only that", "[flash_attention]") {
  for (const HeadDim dim : all_of<HeadDim>()) {
    const Plan plan = plan_of({.head_dim = dim});
    CHECK(plan.head_dim == columns_of(dim));
    CHECK(plan.columns == (dim == HeadDim::d80 ? 96 : columns_of(dim)));
    CHECK(plan.filled.empty() == (dim != HeadDim::d80));
  }
}

TEST_CASE("tiles fit into shared memory, and say so where they were made smaller",
          "[flash_attention]") {
  int resized = 0;
  for (const Variant variant : {Variant::naive, Variant::flash_1, Variant::flash_2}) {
    for (const HeadDim dim : all_of<HeadDim>()) {
      for (const Edge q : all_of<Edge>()) {
        for (const Edge k : all_of<Edge>()) {
          const Plan plan =
              plan_of({.variant = variant, .head_dim = dim, .block_q = q, .block_k = k});
          CHECK(plan.shared_bytes <= static_cast<std::size_t>(kMostSharedBytes));
          CHECK(plan.block_q >= 16);
          CHECK(plan.block_k >= 16);
          CHECK(plan.threads <= 256);
          const bool as_asked = plan.block_q == size_of(q) && plan.block_k == size_of(k);
          CHECK(plan.resized.empty() == as_asked);
          resized += !as_asked;
        }
      }
    }
  }
  CHECK(resized > 0);
}

TEST_CASE("a backward pass runs as what its forward pass belongs to, and says so",
          "[flash_attention]") {
  for (const Variant variant : all_of<Variant>()) {
    for (const HeadDim dim : {HeadDim::d64, HeadDim::d80}) {
      const Plan again =
          plan_of({.variant = variant, .pass = Pass::backward_recompute, .head_dim = dim});
      CHECK(again.asked == variant);
      CHECK(again.runs == Variant::flash_2);
      CHECK(contains(again.instead, "runs as flash-2") == (variant != Variant::flash_2));
      CHECK(again.instead.empty() == (variant == Variant::flash_2));
    }
  }
}

TEST_CASE(
    "tiles of a backward pass fit into shared memory, and say so where they were made smaller",
    "[flash_attention]") {
  int resized = 0;
  for (const HeadDim dim : all_of<HeadDim>()) {
    for (const Edge edge : all_of<Edge>()) {
      const Plan plan = backward_plan_of(
          {.pass = Pass::backward_recompute, .head_dim = dim, .block_q = edge, .block_k = edge});
      CHECK(plan.shared_bytes <= static_cast<std::size_t>(kMostSharedBytes));
      CHECK(plan.threads == plan.block_k * 2);
      const bool as_asked = plan.block_q == size_of(edge) && plan.block_k == size_of(edge);
      CHECK(plan.resized.empty() == as_asked);
      resized += !as_asked;
    }
  }
  CHECK(resized > 0);
  CHECK_THROWS_AS(backward_plan_of({}), Error);
}

TEST_CASE("what cannot be together is refused with what can", "[flash_attention]") {
  const auto refused = [](const Params& params) { return error_of([&] { plan_of(params); }); };
  CHECK(contains(refused({.heads = 6, .kv_heads = 4}), "1, 2, 3, 6"));
  CHECK(contains(refused({.variant = Variant::naive, .broken = Break::skip_rescale}),
                 "mask-off-by-one"));
  CHECK(contains(refused({.mask = Mask::none, .broken = Break::mask_off_by_one}), "skip-rescale"));
  CHECK(contains(refused({.variant = Variant::flash_1, .broken = Break::materialize}), "break"));
  CHECK_FALSE(
      plan_of({.variant = Variant::flash_3, .mask = Mask::document, .broken = Break::materialize})
          .instead.empty());
  const auto knob_refuses = [](const char* assignment) {
    lab::Settings settings;
    return error_of([&] { knob_table().knobs().set(settings, assignment); });
  };
  CHECK(contains(knob_refuses("dtype=fp4"), "fp8, int8"));
  CHECK(contains(knob_refuses("pass=sideways"), "forward, backward-recompute"));
  CHECK(contains(refused({.pass = Pass::backward_recompute, .broken = Break::materialize}),
                 "mask-off-by-one"));
  CHECK(contains(
      refused(
          {.pass = Pass::backward_recompute, .mask = Mask::none, .broken = Break::mask_off_by_one}),
      "none"));
  CHECK(error_of([] { plan_of({.seq = 0}); }) == "flash-attention: seq is 0; allowed: 1–65536");
}
