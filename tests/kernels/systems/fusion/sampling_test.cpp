// A token of a row of logits: by one kernel, by a kernel for each step, and in double.

#include <cmath>
#include <limits>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/philox.hpp"
#include "kernels/systems/fusion/reference.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/device.hpp"
#include "tests/part.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::fusion;
using tests::contains;

namespace {

simt::KernelEntry kSampleTable[] = {{"fusion", kernels_emulated}};
using Logits = std::vector<float>;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::unique_ptr<simt::Device> sample_device(
    simt::ThreadOrder order = simt::ThreadOrder::ascending) {
  simt::EmulationOptions options;
  options.order = order;
  return tests::device_under_test(kSampleTable, options);
}

/// Rows of normal logits, rounded to the format, of which a few stand out.
Logits logits_of(Dtype type, const SampleShape& shape, float spread, float out = 0) {
  std::mt19937 generator = lab::generator_of(shape.vocabulary);
  Logits all = lab::normal_floats(
      generator, static_cast<std::size_t>(shape.rows) * static_cast<std::size_t>(shape.vocabulary));
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = rounded_to(type, spread * all[i] + (i % 997 == 5 ? out : 0.0f));
  }
  return all;
}
std::vector<int> sampled(simt::Device& device, Dtype type, const SampleShape& shape,
                         const SampleRule& rule, const Logits& logits, bool apart = false) {
  const auto in = lab::uploaded(device, packed(type, logits));
  auto tokens = lab::unwritten<int>(device, static_cast<std::size_t>(shape.rows));
  simt::Buffer<float> scratch(device, logits.size() + static_cast<std::size_t>(shape.rows));
  const Kernels& kernels = fusion::kernels_of(device);
  if (apart) {
    kernels.sample_apart(device, type, shape, rule, in.span(), scratch.span(), tokens.span());
  } else {
    kernels.sample(device, type, shape, rule, in.span(), tokens.span());
  }
  device.synchronize();
  return tokens.download();
}
/// Samples, and compares each row with double.
std::vector<int> check_sample(simt::Device& device, Dtype type, const SampleShape& shape,
                              const SampleRule& rule, const Logits& logits, bool apart = false) {
  const std::vector<int> tokens = sampled(device, type, shape, rule, logits, apart);
  const auto width = static_cast<std::size_t>(shape.vocabulary);
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    INFO(name_of(type) << " " << shape.vocabulary << ", " << shape.cluster << " x " << shape.threads
                       << ", t " << rule.temperature << " k " << rule.top_k << " p " << rule.top_p
                       << ", row " << row << (apart ? ", apart" : ""));
    CHECK(wrong_token(std::span(logits).subspan(row * width, width), rule,
                      static_cast<std::uint32_t>(row), tokens[row]) == "");
  }
  return tokens;
}
const std::vector<SampleRule>& rules() {
  static const std::vector<SampleRule> kRules = {{},           {0},
                                                 {2, 1},       {0.7f, 50},
                                                 {1, 0, 0.9f}, {1.3f, 20, 0.6f},
                                                 {0.001f},     {1000, 300, 0.999f},
                                                 {1, 3000},    {5, 0, 0.5f},
                                                 {1, 0, 1e-6f}};
  return kRules;
}

}  // namespace

TEST_CASE("Philox: the published answers", "[fusion]") {
  CHECK(numeric::philox(0, 0) == 0xE169C58D6627E8D5u);
  CHECK(numeric::high_product(~0ull, ~0ull) == ~0ull - 1);
  CHECK(numeric::high_product(1ull << 63, 6) == 3);
}

TEST_CASE("Sampling: every rule and size against double", "[fusion]") {
  const auto device = sample_device(simt::ThreadOrder::shuffled);
  for (const Dtype type : all_of<Dtype>()) {
    for (const SampleShape& shape :
         {SampleShape{3, 1, 64, 2}, SampleShape{2, 7, 32, 1}, SampleShape{2, 127, 64, 1},
          SampleShape{3, 1000, 32, 8}, SampleShape{3, 4096, 64, 2}, SampleShape{2, 3001, 128}}) {
      const Logits logits = logits_of(type, shape, 3);
      for (const SampleRule& rule : rules()) check_sample(*device, type, shape, rule, logits);
    }
  }
  const SampleShape flat{2, 4096, 32, 1};
  for (const SampleRule& rule : rules()) {
    check_sample(*device, Dtype::bf16, flat, rule, Logits(8192, 1.5f));  // all tie
    check_sample(*device, Dtype::fp32, flat, rule, logits_of(Dtype::fp32, flat, 1e-3f));
    if (!rule.greedy()) {
      check_sample(*device, Dtype::bf16, flat, rule, logits_of(Dtype::bf16, flat, 3, 12), true);
    }
  }
  // Long enough that the bound on the k-th largest is raised, and few of the listed ones are candidates.
  const SampleShape wide{1, 65536, 128, 2};
  const Logits logits = logits_of(Dtype::bf16, wide, 2.5f, 12);
  for (const SampleRule& rule : {SampleRule{1, 40, 0.9f}, SampleRule{1, 0, 0.9f}, SampleRule{}}) {
    check_sample(*device, Dtype::bf16, wide, rule, logits);
  }
}

TEST_CASE("Sampling: rows whose largest logits are more than a block notes", "[fusion]") {
  const auto device = sample_device(simt::ThreadOrder::shuffled);
  const SampleShape shape{1, 16384, 64, 2};
  Logits rising(16384), flat(16384, 3), masked(16384, -kInfinity), huge(16384, -1e30f);
  for (std::size_t i = 0; i < rising.size(); ++i) {
    rising[i] = static_cast<float>(i) * 0x1p-10f;
    if (i % 5000 == 77) masked[i] = huge[i] = static_cast<float>(i);
    if (i % 3 == 0) flat[i] = 4;
  }
  huge[9000] = huge[9001] = 2e30f;
  for (const SampleRule& rule : {SampleRule{1, 30, 0.9f}, SampleRule{1, 0, 0.9f}, SampleRule{}}) {
    for (const Logits& logits : {rising, flat, masked, huge}) {
      check_sample(*device, Dtype::fp32, shape, rule, logits);
    }
  }
}

TEST_CASE("Sampling: the token depends on the seed alone, not on order or shape", "[fusion]") {
  const SampleShape shape{3, 4096, 128, 1};
  for (const SampleRule& rule : rules()) {
    for (const float out : {0.0f, 12.0f}) {
      const Logits logits = logits_of(Dtype::bf16, shape, 2.5f, out);
      const std::vector<int> tokens = sampled(*sample_device(), Dtype::bf16, shape, rule, logits);
      for (const SampleShape& other : {SampleShape{3, 4096, 32, 4}, SampleShape{3, 4096, 256, 2}}) {
        CHECK(sampled(*sample_device(simt::ThreadOrder::shuffled), Dtype::bf16, other, rule,
                      logits) == tokens);
      }
      SampleRule again = rule;
      again.seed = 2;
      if (rule == SampleRule{}) {
        CHECK(sampled(*sample_device(), Dtype::bf16, shape, again, logits) != tokens);
      }
    }
  }
}

TEST_CASE("Sampling: NaN and infinite logits", "[fusion]") {
  const auto device = sample_device();
  const SampleShape shape{1, 96, 32, 2};
  for (const SampleRule& rule : rules()) {
    Logits logits(96, -kInfinity);
    logits[3] = NAN;
    CHECK(check_sample(*device, Dtype::fp32, shape, rule, logits) == std::vector<int>{-1});
    logits[70] = -3e38f;
    CHECK(check_sample(*device, Dtype::fp32, shape, rule, logits) == std::vector<int>{70});
    logits[20] = logits[90] = 5;
    logits[21] = -0.0f;
    logits[22] = 0.0f;
    check_sample(*device, Dtype::fp32, shape, rule, logits);
    Logits other(96, NAN);
    other[0] = other[50] = other[95] = -2;
    check_sample(*device, Dtype::fp16, shape, rule, other);
    logits[40] = logits[80] = kInfinity;
    check_sample(*device, Dtype::bf16, shape, rule, logits);
  }
}

TEST_CASE("Sampling: what is not allowed is refused in words", "[fusion]") {
  const auto device = sample_device();
  const auto refused = [&](const SampleShape& shape, const SampleRule& rule) {
    return tests::error_of([&] { sampled(*device, Dtype::bf16, shape, rule, Logits(8)); });
  };
  CHECK(contains(refused({1, 8, 48}, {}), "32, 64"));
  CHECK(contains(refused({1, 8, 64, 3}, {}), "1, 2, 4, 8"));
  CHECK(contains(refused({1, 8, 64}, {-1}), "0.001"));
  CHECK(contains(refused({1, 8, 64}, {1, -1}), "top_k is -1"));
  CHECK(contains(refused({1, 8, 64}, {1, 0, 0}), "above 0"));
}
