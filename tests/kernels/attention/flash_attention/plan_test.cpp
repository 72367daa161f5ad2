// What the dispatcher chooses, and what it refuses.

#include "kernels/attention/flash_attention/kernels.hpp"
#include "tests/catch.hpp"

using namespace tilestep;
using namespace tilestep::flash_attention;
using tests::contains;
using tests::error_of;

TEST_CASE("what is gone is answered with what took its place", "[flash_attention]") {
  const auto said = [](const char* knob, const lab::KnobValue& value) {
    return error_of([&] { knob_table().params({{knob, value}}); });
  };
  for (const char* format : {"fp16", "fp32"}) {
    CHECK(said("dtype", std::string(format)) ==
          fmt::format("knob 'dtype' no longer has '{}': bf16 runs the same steps; allowed: one of "
                      "bf16, fp8, int8, fp8-with-mean, int8-with-mean",
                      format));
  }
  CHECK(contains(said("variant", std::string("fused-softmax")), "naive keeps its scores"));
  for (const char* variant : {"flash-3-tma", "flash-3-ping-pong", "flash-3"}) {
    CHECK(contains(said("variant", std::string(variant)), "lesson flash-attention-3"));
  }
  CHECK(contains(said("pass", std::string("backward-recompute")), "lesson attention-backward"));
  CHECK_NOTHROW(knob_table().params({{"pass", std::string("forward")}}));
  CHECK(contains(said("block_q", std::string("64")), "tile = 64x32"));
  CHECK(contains(said("smooth_k", false), "int8-with-mean"));
  for (const char* knob : {"rescale_above", "exp_polynomial"}) {
    CHECK(contains(said(knob, std::int64_t{8}), "no longer a knob"));
    CHECK(contains(said(knob, std::int64_t{8}), "the lesson's text"));
    CHECK_NOTHROW(knob_table().params({{knob, std::int64_t{0}}}));  // as older capsules have it
  }
}

TEST_CASE("knobs come to what the kernels are run with", "[flash_attention]") {
  CHECK(Choices{.heads = 6}.params().kv_heads == 3);
  CHECK(Choices{.heads = 3}.params().kv_heads == 3);
  const Params tall = Choices{.tile = tile_of(Edge::t64, Edge::t16)}.params();
  CHECK((tall.block_q == Edge::t64 && tall.block_k == Edge::t16));
  for (const Mask mask : all_of<Mask>()) {
    const Params params = Choices{.mask = static_cast<Sees>(mask)}.params();
    CHECK((params.mask == mask && params.score_mod == ScoreMod::none));
  }
  const Params alibi = Choices{.mask = Sees::alibi}.params();
  CHECK((alibi.mask == Mask::causal && alibi.score_mod == ScoreMod::alibi));
  const Params softcap = Choices{.mask = Sees::softcap}.params();
  CHECK((softcap.mask == Mask::causal && softcap.score_mod == ScoreMod::softcap));
  for (const ScoreFormat format : all_of<ScoreFormat>()) {
    const Params params = Choices{.dtype = format}.params();
    CHECK(name_of(format).starts_with(name_of(params.dtype)));
    CHECK(params.smooth_k != contains(name_of(format), "with-mean"));
    CHECK((params.data == Data::outliers) == is_quantized(params.dtype));
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

TEST_CASE("what cannot be together is refused with what can", "[flash_attention]") {
  const auto refused = [](const Params& params) { return error_of([&] { plan_of(params); }); };
  CHECK(contains(refused({.heads = 6, .kv_heads = 4}), "1, 2, 3, 6"));
  CHECK(contains(refused({.variant = Variant::naive, .broken = Break::skip_rescale}),
                 "mask-off-by-one"));
  CHECK(contains(refused({.mask = Mask::none, .broken = Break::mask_off_by_one}), "skip-rescale"));
  CHECK(contains(refused({.variant = Variant::flash_1, .broken = Break::materialize}), "break"));
  const auto knob_refuses = [](const char* assignment) {
    lab::Settings settings;
    return error_of([&] { knob_table().knobs().set(settings, assignment); });
  };
  CHECK(contains(knob_refuses("dtype=fp4"), "fp8, int8"));
  CHECK(error_of([] { plan_of({.seq = 0}); }) == "flash-attention: seq is 0; allowed: 1–65536");
}
