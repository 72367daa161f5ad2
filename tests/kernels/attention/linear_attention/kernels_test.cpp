// The kernels against double: every rule, size of a head and of a chunk, at odd lengths and in any order of threads;
// features; what a chunk leaves for the next.

#include <cmath>

#include "kernels/attention/linear_attention/run/run.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/float_format.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/device.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::linear_attention;

namespace {

simt::KernelEntry kHeadTable[] = {{"linear-attention", kernels_emulated}};

std::unique_ptr<simt::Device> head_device(simt::ThreadOrder order = simt::ThreadOrder::ascending) {
  simt::EmulationOptions options;
  options.order = order;
  return tests::device_under_test(kHeadTable, options);
}

/// Heads with keys that come again, mapped by double: each head has other numbers.
struct Heads {
  Shape shape;
  Words q, k, v;
  std::vector<float> log_gates, betas;

  Heads(const Shape& of, Feature feature) : shape(of) {
    for (int head = 0; head < shape.heads; ++head) {
      Inputs one = make_inputs(
          {.tokens = shape.tokens, .dim = shape.dim, .repeat = 5, .gate = 0.85, .beta = 0.7},
          11 + head);
      const FeatureShape features{shape.tokens, shape.dim, feature, corrects(shape.rule)};
      const auto add = [&](Words& to, const Words& from) {
        for (const double value : reference_features(from, features, one.omega).value)
          to.push_back(numeric::Bf16::bits(static_cast<float>(value)));
      };
      add(q, one.q);
      add(k, one.k);
      v.insert(v.end(), one.v.begin(), one.v.end());
      log_gates.insert(log_gates.end(), one.log_gates.begin(), one.log_gates.end());
      betas.insert(betas.end(), one.betas.begin(), one.betas.end());
    }
  }
  Memory on(simt::Device& device, int chunk) const {
    Shape its = shape;
    its.chunk = chunk;
    return {device, its, q, k, v, log_gates, betas};
  }
  ReferenceHead reference(int head, Way way) const {
    const auto rows = static_cast<std::size_t>(shape.tokens);
    const auto count = rows * static_cast<std::size_t>(shape.dim);
    const auto part = [&](const auto& of, std::size_t each) {
      return std::span(of).subspan(static_cast<std::size_t>(head) * each, each);
    };
    return reference_head(
        {part(q, count), part(k, count), part(v, count), part(log_gates, rows), part(betas, rows)},
        shape.dim, shape.rule, way);
  }
  void check(const Results& results, Way way) const {
    const auto rows = static_cast<std::size_t>(shape.tokens),
               dim = static_cast<std::size_t>(shape.dim);
    for (int head = 0; head < shape.heads; ++head) {
      const auto at = static_cast<std::size_t>(head);
      const ReferenceHead exact = reference(head, way);
      const auto o = std::span(results.o).subspan(at * rows * dim, rows * dim);
      const auto state = std::span(results.state).subspan(at * dim * dim, dim * dim);
      const lab::Closest of_o = compared(Words(o.begin(), o.end()), exact.o, shape.dim);
      const lab::Closest of_state =
          compared(std::vector<float>(state.begin(), state.end()), exact.state);
      INFO("head " << head << ", " << of_o.where() << ": " << of_o.error() << " of " << of_o.bound()
                   << "; state " << of_state.error() << " of " << of_state.bound());
      CHECK(of_o.ok());
      CHECK(of_state.ok());
    }
  }
};

Results recurrent(simt::Device& device, const Heads& heads) {
  Memory memory = heads.on(device, 16);
  kernels_of(device).recurrent(device, memory.shape(), memory.arrays(), false, {}, {});
  device.synchronize();
  return memory.results();
}
Results chunked(simt::Device& device, const Heads& heads, int chunk) {
  Memory memory = heads.on(device, chunk);
  kernels_of(device).chunked(device, memory.shape(), memory.arrays(), Break::none, {});
  device.synchronize();
  return memory.results();
}

constexpr Rule kRules[] = {Rule::sum, Rule::gate, Rule::delta, Rule::gated_delta};

}  // namespace

TEST_CASE("Linear attention: token by token and by chunks, every rule is double's",
          "[linear_attention]") {
  const auto device = head_device();
  tests::Part part("linear attention", 2);
  for (const Rule rule : kRules) {
    for (const Feature feature : {Feature::elu, Feature::relu, Feature::random, Feature::none}) {
      for (const auto& [tokens, dim] :
           {std::pair{1, 16}, {37, 16}, {16, 32}, {65, 32}, {77, 64}, {131, 16}}) {
        if (part.skips()) continue;
        INFO(name_of(rule) << " " << name_of(feature) << " " << tokens << " " << dim);
        const Heads heads({tokens, 2, dim, rule}, feature);
        heads.check(recurrent(*device, heads), Way::recurrent);
        for (const int chunk : {16, 32, 64, 128}) {
          if (chunk == 128 && (corrects(rule) || dim > 32)) continue;
          INFO("chunks of " << chunk);
          heads.check(chunked(*device, heads, chunk), Way::chunked);
        }
      }
    }
  }
}

TEST_CASE("Linear attention: the widest heads", "[linear_attention]") {
  const auto device = head_device();
  for (const Rule rule : {Rule::gate, Rule::gated_delta}) {
    INFO(name_of(rule));
    const Heads heads({35, 1, 128, rule}, Feature::none);
    heads.check(recurrent(*device, heads), Way::recurrent);
    heads.check(chunked(*device, heads, 32), Way::chunked);
  }
}

TEST_CASE("Linear attention: any order of threads leaves the same", "[linear_attention]") {
  const Heads heads({45, 1, 32, Rule::gated_delta}, Feature::elu);
  const auto first = head_device();
  const Results one = recurrent(*first, heads), many = chunked(*first, heads, 16);
  for (const auto order : {simt::ThreadOrder::descending, simt::ThreadOrder::shuffled}) {
    const auto device = head_device(order);
    CHECK(recurrent(*device, heads).o == one.o);
    CHECK(chunked(*device, heads, 16).o == many.o);
  }
}

TEST_CASE("Linear attention: a state goes on where it was left", "[linear_attention]") {
  const auto device = head_device();
  for (const Rule rule : kRules) {
    const Heads heads({29, 1, 16, rule}, Feature::none);
    const Results whole = recurrent(*device, heads);
    // The first 20 tokens by chunks, the others token by token.
    Memory memory = heads.on(*device, 16);
    Shape before = memory.shape(), after = memory.shape();
    before.tokens = 20;
    after.tokens = 9;
    Arrays arrays = memory.arrays();
    kernels_of(*device).chunked(*device, before, arrays, Break::none, {});
    for (auto* words : {&arrays.q, &arrays.k, &arrays.v}) words->data += 20 * 16;
    arrays.o.data += 20 * 16;
    for (auto* numbers : {&arrays.log_gates, &arrays.betas}) numbers->data += 20;
    for (auto* words : {&arrays.q, &arrays.k, &arrays.v}) words->count = 9 * 16;
    arrays.o.count = 9 * 16;
    for (auto* numbers : {&arrays.log_gates, &arrays.betas}) numbers->count = 9;
    kernels_of(*device).recurrent(*device, after, arrays, true, {}, {});
    device->synchronize();
    INFO(name_of(rule));
    heads.check(memory.results(), Way::chunked);
  }
}

TEST_CASE("Linear attention: features are double's", "[linear_attention]") {
  const auto device = head_device();
  for (const int dim : {16, 32, 64, 128}) {
    const Inputs inputs = make_inputs({.tokens = 9, .dim = dim, .repeat = 3}, 5);
    for (const Feature feature : {Feature::elu, Feature::relu, Feature::random, Feature::none}) {
      for (const bool unit : {false, true}) {
        INFO(dim << " " << name_of(feature) << " " << unit);
        const FeatureShape shape{9, dim, feature, unit};
        const auto x = lab::uploaded(*device, inputs.k),
                   omega_words = lab::uploaded(*device, inputs.q);
        const auto omega = lab::uploaded(*device, inputs.omega);
        auto out = lab::unwritten<std::uint16_t>(*device, inputs.k.size());
        kernels_of(*device).features(*device, shape, x.span(), omega.span(), out.span());
        device->synchronize();
        const lab::Closest closest =
            compared(out.download(), reference_features(inputs.k, shape, inputs.omega), dim);
        INFO(closest.where() << ": " << closest.error() << " of " << closest.bound());
        CHECK(closest.ok());
      }
    }
  }
}

TEST_CASE("Linear attention: random features come near softmax's exponential",
          "[linear_attention]") {
  // On average over many sets of features, at √dim = 4.
  const Inputs inputs = make_inputs({.tokens = 2, .dim = 16, .repeat = 2}, 3);
  std::mt19937 generator = lab::generator_of(9);
  Words x(inputs.q.begin(), inputs.q.begin() + 16);
  for (std::uint16_t& word : x) word = numeric::Bf16::bits(0.5f * numeric::Bf16::value(word));
  double exact = 0, mean = 0;
  for (const float one : values_of(x)) exact += static_cast<double>(one * one);
  exact = std::exp(exact / 4);
  constexpr int kSets = 400;
  for (int i = 0; i < kSets; ++i) {
    const auto omega = lab::normal_floats(generator, 256);
    for (const double f : reference_features(x, {1, 16, Feature::random, false}, omega).value)
      mean += f * f / kSets;
  }
  CHECK(mean == Approx(exact).epsilon(0.15));
}

TEST_CASE("Linear attention: what is not allowed is refused by name", "[linear_attention]") {
  const auto device = head_device();
  const auto refused = [&](const Shape& shape) {
    try {
      kernels_of(*device).chunked(*device, shape, {}, Break::none, {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused({0}).find("tokens is 0; allowed: 1") != std::string::npos);
  CHECK(refused({5, 1, 48}).find("16, 32, 64, 128") != std::string::npos);
  CHECK(refused({5, 1, 16, Rule::sum, 48}).find("16, 32, 64, 128") != std::string::npos);
  CHECK(refused({5, 1, 16, Rule::delta, 128}).find("allowed: 16, 32, 64") != std::string::npos);
}
