// A cache in fewer bits: every number is within half a step of itself, and channels keep outliers to themselves.

#include "kernels/attention/kv_cache/quantize.hpp"

#include <cmath>

#include "kernels/base/lab/names.hpp"
#include "tests/catch.hpp"

using namespace tilestep;
using namespace tilestep::kv_cache;

TEST_CASE("Decode: a quantized number is within half a step", "[decode]") {
  const Case params{.heads = 2, .kv_heads = 2};
  const Inputs inputs = make_inputs(params, std::vector<int>{40, 7});
  for (const KvType type : {KvType::int8, KvType::int4}) {
    for (const Scales scales : all_of<Scales>()) {
      const Quantized numbers = quantized(inputs.k, inputs, 32, type, scales);
      for (std::size_t i = 0; i < inputs.k.size(); ++i) {
        const std::size_t row = i / 32, head = row / 16 % 2;
        const float scale = numbers.scales[scales == Scales::token ? row : head * 32 + i % 32];
        CHECK(std::abs(numbers.values[i] - inputs.k[i]) <= 0.5001f * scale);
      }
    }
  }
}

TEST_CASE("Decode: two numbers of 4 bits lie in a byte, the first in the low half", "[decode]") {
  Inputs inputs;
  inputs.layer.cached_heads = 1;
  inputs.page_size = 1;
  const Quantized numbers = quantized({7, -7, 1, 0}, inputs, 4, KvType::int4, Scales::token);
  CHECK(numbers.scales == std::vector<float>{1});
  CHECK(numbers.bytes == std::vector<std::uint8_t>{0x97, 0x01});
  const Quantized zeros = quantized({0, 0}, inputs, 2, KvType::int8, Scales::token);
  CHECK(zeros.scales == std::vector<float>{1});
  CHECK(quantized({1.5f}, inputs, 1, KvType::bf16, Scales::token).bytes ==
        std::vector<std::uint8_t>{0xC0, 0x3F});
}

TEST_CASE("Decode: outliers of a channel cost less where the channel has a scale of its own",
          "[decode]") {
  const Case params{.heads = 4, .kv_heads = 2, .head_dim = 64};
  const Inputs inputs = make_inputs(params, std::vector<int>{200});
  for (const KvType type : {KvType::int8, KvType::int4}) {
    const FormatError by_token = format_error(inputs, 0, type, Scales::token);
    const FormatError by_channel = format_error(inputs, 0, type, Scales::channel);
    CHECK(by_channel.key < by_token.key);
    CHECK(by_channel.output < by_token.output);
  }
  CHECK(format_error(inputs, 0, KvType::int8, Scales::token).output <
        format_error(inputs, 0, KvType::int4, Scales::token).output);
  CHECK(format_error(inputs, 0, KvType::bf16, Scales::token).output == 0);
}
