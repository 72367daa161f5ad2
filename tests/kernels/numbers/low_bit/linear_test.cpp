// W4A16 against sums in double of the codes and scales that the quantizing kernel wrote.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <optional>
#include <random>

#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/numeric/small_float.hpp"
#include "kernels/catalog.hpp"
#include "kernels/numbers/low_bit/lesson.hpp"
#include "kernels/numbers/low_bit/reference.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/device.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::low_bit;
using namespace tilestep::tests;

namespace {

std::vector<std::uint16_t> normal_numbers(std::mt19937& random, std::size_t count) {
  std::normal_distribution<double> normal;
  std::vector<std::uint16_t> bits;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = numeric::round_to(numeric::kBf16, normal(random));
    bits.push_back(static_cast<std::uint16_t>(numeric::encode(numeric::kBf16, value)));
  }
  return bits;
}
double bf16(std::uint16_t bits) {
  return numeric::decode(numeric::kBf16, bits);
}

/// W in INT4 on a device, as `quantize` writes it and arranged; and as numbers.
class Layer {
 public:
  Layer(simt::Device& device, const Matrix& matrix, std::mt19937& random)
      : device_(device),
        matrix_(matrix),
        weights_(device, normal_numbers(random, count())),
        bytes_(device, count() / 2),
        scales_(device, count() / 128 * 2),
        zeros_(device, 0),
        ranges_(device, static_cast<std::size_t>(matrix.rows) + 1),
        codes_(lab::unwritten<std::uint32_t>(device, count() / 8)),
        pairs_(lab::unwritten<std::uint32_t>(device, count() / 256)) {
    const auto& kernels = kernels_of(device);
    const Quantized q{Format::int4,   Group::g128,   bytes_.span(),
                      scales_.span(), zeros_.span(), ranges_.span()};
    kernels.ranges(device, matrix, weights_.span(), ranges_.span());
    kernels.quantize(device, matrix, weights_.span(), q);
    kernels.arrange(device, matrix, q, {codes_.span(), pairs_.span()});
    const std::vector<int> codes = unpacked(Format::int4, bytes_.download());
    const std::vector<std::uint8_t> scales = scales_.download();
    for (std::size_t i = 0; i < count(); ++i) {
      const std::size_t at = i / 128 * 2;
      const double scale = numeric::decode(
          numeric::kFp16, static_cast<std::uint32_t>(scales[at] | scales[at + 1] << 8));
      numbers_.push_back((codes[i] < 8 ? codes[i] : codes[i] - 16) * scale);
    }
  }

  /// The first element of Y that is not what it should be; "": none. `change` makes other inputs of normal ones.
  std::string complaint(const LinearPlan& plan, int batch, std::mt19937& random,
                        const std::function<void(std::vector<std::uint16_t>& x)>& change = {}) {
    const auto columns = static_cast<std::size_t>(matrix_.columns);
    const auto rows = static_cast<std::size_t>(matrix_.rows);
    auto inputs = normal_numbers(random, static_cast<std::size_t>(batch) * columns);
    if (change) change(inputs);
    const simt::Buffer<std::uint16_t> x(device_, inputs);
    auto y = lab::unwritten<std::uint16_t>(device_, static_cast<std::size_t>(batch) * rows);
    kernels_of(device_).linear(device_, matrix_, {codes_.span(), pairs_.span()}, plan, batch,
                               x.span(), y.span());
    const std::vector<std::uint16_t> got = y.download();
    for (std::size_t n = 0; n < static_cast<std::size_t>(batch); ++n) {
      for (std::size_t row = 0; row < rows; ++row) {
        double sum = 0, magnitude = 0;
        for (std::size_t k = 0; k < columns; ++k) {
          const double product = numbers_[row * columns + k] * bf16(inputs[n * columns + k]);
          sum += product;
          magnitude += std::abs(product);
        }
        // Half a spacing of BF16, and FP32 sums that the tensor cores may truncate.
        const double bound = std::ldexp(std::abs(sum), -8) + std::ldexp(magnitude, -20);
        if (std::isnan(sum) && std::isnan(bf16(got[n * rows + row]))) continue;
        if (std::abs(bf16(got[n * rows + row]) - sum) <= bound) continue;
        return fmt::format("row {} of X, {} of W: {}, not {}", n, row, bf16(got[n * rows + row]),
                           sum);
      }
    }
    return "";
  }

 private:
  std::size_t count() const { return numeric::elements_of(matrix_.rows, matrix_.columns); }

  simt::Device& device_;
  Matrix matrix_;
  simt::Buffer<std::uint16_t> weights_;
  simt::Buffer<std::uint8_t> bytes_, scales_, zeros_;
  simt::Buffer<Range> ranges_;
  simt::Buffer<std::uint32_t> codes_, pairs_;
  std::vector<double> numbers_;
};

struct Case {
  LinearPlan plan;
  int batch;
};
// Whole tiles and parts of one, more groups than stages and fewer, each number of blocks that share a tile.
constexpr Case kCases[] = {{{}, 1},
                           {{.stages = 2, .blocks = 2}, 3},
                           {{.blocks = 3}, 8},
                           {{.stages = 4, .blocks = 5}, 5},
                           {{16, 1}, 5},
                           {{16, 2}, 16},
                           {{32, 4}, 9},
                           {{64, 2}, 70},
                           {{128, 4}, 1},
                           {{128, 1}, 100}};

}  // namespace

TEST_CASE("W4A16: Y is X · W of the codes and scales, in every plan and order", "[low_bit]") {
  Part part("W4A16", 4);
  std::mt19937 random(7);
  for (const simt::EmulationOptions& order :
       {simt::EmulationOptions{},
        simt::EmulationOptions{.order = simt::ThreadOrder::shuffled,
        .seed = 5,
        .completion = simt::Completion::seeded},
        simt::EmulationOptions{.order = simt::ThreadOrder::descending,
        .completion = simt::Completion::early_copies}}) {
    const auto device = device_under_test(emulated_kernels(), order);
    std::optional<Layer> layer;
    for (const Case& one : kCases) {
      if (part.skips()) continue;
      if (!layer) layer.emplace(*device, Matrix{128, 512}, random);
      INFO(one.plan.tile << " rows of X, " << one.plan.splits << " blocks, batch " << one.batch);
      CHECK(layer->complaint(one.plan, one.batch, random) == "");
    }
  }
  if (part.skips()) return;
  // More groups than a ring has stages, two tiles of W; the GEMV's blocks have five or six tiles.
  const auto device = device_under_test(emulated_kernels());
  Layer layer(*device, {256, 1280}, random);
  CHECK(layer.complaint({16, 1}, 2, random) == "");
  CHECK(layer.complaint({.blocks = 3}, 2, random) == "");
}

TEST_CASE("W4A16: the GEMV's digits hold inputs of every size", "[low_bit]") {
  const auto device = device_under_test(emulated_kernels());
  std::mt19937 random(3);
  Layer layer(*device, {128, 256}, random);
  const auto bits = [](double value) {
    return static_cast<std::uint16_t>(numeric::encode(numeric::kBf16, value));
  };
  using Inputs = std::vector<std::uint16_t>;
  CHECK(layer.complaint({}, 1, random, [](Inputs& x) { std::fill(x.begin(), x.end(), 0); }) == "");
  CHECK(layer.complaint({}, 1, random, [&](Inputs& x) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = bits(std::ldexp(1.5, i < 128 ? 110 : -110));
  }) == "");
  // One is 2^10 times as large as the others of its group, and multiplied by whatever its code is.
  CHECK(layer.complaint({}, 2, random, [&](Inputs& x) { x[5] = bits(-1024); }) == "");
  CHECK(layer.complaint({}, 1, random, [](Inputs& x) { x[200] = 0x7FC0; }) == "");
}

TEST_CASE("W4A16: shapes and plans that there are not are refused by name", "[low_bit]") {
  const auto device = device_under_test(emulated_kernels());
  std::mt19937 random(1);
  Layer layer(*device, {128, 256}, random);
  const auto refused = [&](const auto& act, const char* words) {
    const std::string said = tests::error_of(act);
    INFO(said);
    CHECK(contains(said, words));
  };
  refused([&] { layer.complaint({0}, 9, random); }, "batch is 9; allowed: 1–8");
  refused([&] { layer.complaint({.blocks = 9}, 1, random); },
          "blocks of the GEMV is 9; allowed: 1–8");
  refused([&] { layer.complaint({.stages = 3}, 1, random); }, "multiples of 2");
  refused([&] { layer.complaint({.stages = 64}, 1, random); }, "stages is 64");
  refused([&] { layer.complaint({48, 1}, 9, random); }, "allowed: 16, 32, 64, 128");
  refused([&] { layer.complaint({16, 4}, 9, random); }, "multiples of 4");
  refused([&] { Layer(*device, {96, 256}, random); }, "multiples of 128");
}
