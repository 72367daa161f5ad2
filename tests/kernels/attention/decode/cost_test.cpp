// Formulas against numbers that others have published or that can be counted by hand.

#include "kernels/attention/decode/cost.hpp"

#include "kernels/attention/decode/run/run.hpp"
#include "tests/catch.hpp"

using namespace tilestep;
using namespace tilestep::decode;
using tests::contains;
using tests::error_of;

namespace {

const Model& model(std::string_view name) {
  for (const Model& one : models()) {
    if (one.name == name) return one;
  }
  throw Error("no such model");
}

}  // namespace

TEST_CASE("Decode: the cache of real models is exact", "[decode]") {
  CHECK(token_bytes(model("Llama 2 7B"), KvType::bf16) == 512 * 1024);
  CHECK(token_bytes(model("Llama 3.1 8B"), KvType::bf16) == 128 * 1024);
  CHECK(token_bytes(model("Llama 3.1 70B"), KvType::bf16) == 320 * 1024);
  CHECK(token_bytes(model("Llama 3.1 70B"), KvType::int4) == 80 * 1024);
  CHECK(token_bytes(model("DeepSeek-V3"), KvType::bf16) == 61 * 576 * 2);
  CHECK(token_bytes(model("DeepSeek-V3 with mha"), KvType::bf16) == 61 * 128 * (192 + 128) * 2);
}

TEST_CASE("Decode: only absorbed mla stands right of the ridge", "[decode]") {
  const auto point = [](const char* name) {
    return intensity(model(name).layer, KvType::bf16, Scales::token);
  };
  CHECK(point("Llama 2 7B") == 1);
  CHECK(point("Llama 3.1 70B") == 8);
  CHECK(point("DeepSeek-V3") == Approx(241.8).epsilon(0.001));
  CHECK(point("DeepSeek-V3") > kRidge);
  CHECK(point("Falcon 7B") < kRidge);
  CHECK(roof_at(kRidge) == Approx(kPeakFlops));
  CHECK(roof_at(1) == kPeakBytes);
}

TEST_CASE("Decode: weights and cache weigh the same at the crossing", "[decode]") {
  const double token = kModelLayers * token_bytes(model_layer(Scheme::gqa), KvType::bf16);
  const double batch = crossing_batch(kModelWeightBytes, token, 8192);
  CHECK(batch == Approx(14.96).epsilon(0.001));
  CHECK(batch * token * 8192 == Approx(kModelWeightBytes));
  CHECK(crossing_batch(1, 1, 0) > 1e300);
}

TEST_CASE("Decode: rows of queries move the same attention to the right", "[decode]") {
  const LayerShape gqa = model_layer(Scheme::gqa);
  CHECK(attention_of(gqa, 1, 8192).intensity() == Approx(4).epsilon(0.01));
  CHECK(attention_of(gqa, 4096, 8192).intensity() > kRidge);
  // Without the absorbed product a head multiplies by 192 and 128 numbers in place of 576 and 512.
  const LayerShape mla = model("DeepSeek-V3").layer;
  CHECK(attention_of(mla, 2, 1000).flops / attention_of(mla, 1, 1000).flops ==
        Approx(2 * 320.0 / 1088));
}

TEST_CASE("Decode: rows of a prompt are free while the weights are read", "[decode]") {
  Params params;
  params.batch = 40;  // more than a step is shown for at least
  const double reading = kModelWeightBytes / kPeakBytes;
  CHECK(mixed_step(params, 1).weights == Approx(reading));
  CHECK(mixed_step(params, 166).weights == Approx(reading));  // 206 rows in all
  CHECK(mixed_step(params, 207).weights == Approx(2 * kModelWeights * 247 / kPeakFlops));
  CHECK(mixed_step(params, 207).weights > reading);
  // 40 requests of 8192 tokens of 128 KiB each, at 4.8 TB/s.
  CHECK(mixed_step(params, 1).cache == Approx(40.0 * 8192 * 131072 / 4.8e12));
  CHECK(mixed_step(params, 4096).cache == mixed_step(params, 1).cache);
  // 32 layers, 32 heads, 4096 rows, 8192 tokens, keys and values of 128.
  CHECK(mixed_step(params, 4096).chunk == Approx(32 * 2.0 * 32 * 4096 * 8192 * 256 / kPeakFlops));
  params.kv_dtype = KvType::int4;
  CHECK(mixed_step(params, 1).cache == Approx(40.0 * 8192 * 131072 / 4.8e12 / 4));
  // Absorbed decoding of one latent row by 32 heads is still the memory's.
  params = {};
  params.scheme = Scheme::mla;
  CHECK(mixed_step(params, 1).cache == Approx(32.0 * 8192 * 32 * 576 * 2 / 4.8e12));
}

TEST_CASE("Decode: what it had once is answered with what took its place", "[decode]") {
  const std::pair<const char*, lab::KnobValue> retired[] = {
      {"head_dim", std::string("128")},  {"prefix_read", std::string("per-request")},
      {"serving_step", std::int64_t{3}}, {"request", std::int64_t{1}},
      {"head", std::int64_t{7}},         {"component", std::int64_t{2}},
      {"page_size", std::string("64")},  {"prefix", std::int64_t{48}},
      {"requests", std::int64_t{9}},     {"break", std::string("stale-page")},
      {"kv_dtype", std::string("fp16")}};
  for (const auto& knob : retired) {
    const std::string said = error_of([&] { knob_table().params({{knob.first, knob.second}}); });
    INFO(said);
    CHECK(contains(said, "no longer"));
    CHECK(contains(said, knob.first));
  }
  // As recordings and capsules of before have them.
  CHECK_NOTHROW(knob_table().params(
      {{"head_dim", std::string("32")}, {"head", std::int64_t{0}}, {"prefix", std::int64_t{0}}}));
}

TEST_CASE("Decode: what cannot be together is refused", "[decode]") {
  const auto refused = [](const lab::Settings& settings) {
    return error_of([&] { knob_table().params(settings); });
  };
  using Settings = lab::Settings;
  CHECK(contains(refused(Settings{{"heads", std::int64_t{8}}, {"kv_heads", std::int64_t{3}}}),
                 "1, 2, 4, 8"));
  CHECK(contains(refused(Settings{{"scheme", "mqa"}, {"heads", std::int64_t{128}}}), "1–64"));
  CHECK(contains(refused(Settings{{"scheme", "mla"}, {"kv_dtype", "fp8"}}), "bf16"));
  CHECK(contains(refused(Settings{{"scheme", "mla"}, {"break", "repeat-kv"}}), "none"));
  CHECK(contains(refused(Settings{{"splits", std::int64_t{1}}, {"break", "unmerged-splits"}}),
                 "none"));
}
