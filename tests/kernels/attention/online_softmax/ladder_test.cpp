#include <limits>
#include <random>

#include "kernels/attention/online_softmax/kernels.hpp"
#include "kernels/attention/online_softmax/reference.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/lab/result.hpp"
#include "tests/catch.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::online_softmax;
using namespace tilestep::tests;

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

std::vector<float> random_rows(std::size_t count, float size) {
  std::mt19937 generator(17);
  std::vector<float> values = lab::uniform_floats(generator, count);
  for (float& value : values) value *= size;
  return values;
}

std::vector<float> softmax(simt::Device& device, Rung rung, const RowShape& shape,
                           const std::vector<float>& host) {
  const simt::Buffer<float> input(device, host);
  simt::Buffer<float> output(device, host.size());
  return lab::result_of(device, output, [&] {
    online_softmax::kernels_of(device).softmax_rows(device, rung, shape, input.span(),
                                                    output.span());
  });
}

bool is_softmax(const std::vector<float>& got, const std::vector<float>& input,
                std::size_t columns) {
  const double tolerance = ladder_tolerance(static_cast<int>(columns), 8);
  lab::Closest closest;
  for (std::size_t row = 0; row < input.size() / columns; ++row) {
    const auto exact = reference_softmax(std::span(input).subspan(row * columns, columns));
    for (std::size_t i = 0; i < columns; ++i) {
      // Weights under FP32's normal numbers have fewer digits.
      closest.add(got[row * columns + i], exact[i], tolerance * exact[i] + 0x1.0p-126);
    }
  }
  return closest.ok();
}

}  // namespace

TEST_CASE("every rung gives the softmax of every row", "[online_softmax]") {
  const auto device = test_device(simt::ThreadOrder::shuffled, 3);
  const auto many = random_rows(127 * 60, 4);
  for (const Rung rung : kRungs) {
    CHECK(is_softmax(softmax(*device, rung, {127, 60, 128}, many), many, 60));
    for (const std::size_t rows : {1, 3}) {
      for (const int columns : {1, 2, 3, 4, 127, 128, 1000, 1001, 4096, 4100, 8192}) {
        for (const int threads : kRowBlocks) {
          if (rung == Rung::online_one_read && columns > one_read_columns(threads)) continue;
          if (kFewShapes && threads > 128) continue;
          const auto input = random_rows(rows * static_cast<std::size_t>(columns), 4);
          const auto got = softmax(*device, rung, {rows, columns, threads}, input);
          INFO(name_of(rung) << " " << rows << " x " << columns << ", " << threads << " threads");
          CHECK(is_softmax(got, input, static_cast<std::size_t>(columns)));
        }
      }
    }
  }
}

TEST_CASE("the widest rows fit, wider ones are refused in words", "[online_softmax]") {
  const auto device = test_device();
  for (const int threads : kRowBlocks) {
    for (const int columns : {one_read_columns(threads), one_read_columns(threads) - 1}) {
      const auto input = random_rows(static_cast<std::size_t>(columns), 4);
      const auto got = softmax(*device, Rung::online_one_read, {1, columns, threads}, input);
      INFO(columns << " columns, " << threads << " threads");
      CHECK(is_softmax(got, input, static_cast<std::size_t>(columns)));
    }
  }
  const auto wide = random_rows(40000, 4);
  const std::string sentence = error_of([&] {
    softmax(*device, Rung::online_one_read, {1, 40000, 1024}, wide);
  });
  CHECK(contains(sentence, "1–32768"));
  const auto got = softmax(*device, Rung::online_two_pass, {1, 40000, 1024}, wide);
  CHECK(is_softmax(got, wide, 40000));
}

TEST_CASE("large scores, masked elements and masked rows", "[online_softmax]") {
  const auto device = test_device(simt::ThreadOrder::descending);
  const int columns = GENERATE(300, 301);
  const auto width = static_cast<std::size_t>(columns);
  auto input = random_rows(3 * width, 4);
  for (std::size_t i = 0; i < width; ++i) {
    input[i] += 1000;                   // exp(1000) alone is far past FP32
    input[width + i] = kMinusInfinity;  // a row of nothing
    if (i < 200) input[2 * width + i] = kMinusInfinity;
  }
  for (const Rung rung : kRungs) {
    INFO(name_of(rung) << ", " << columns << " columns");
    const auto got = softmax(*device, rung, {3, columns, 128}, input);
    CHECK(is_softmax(got, input, width));
    for (std::size_t i = 0; i < width; ++i) CHECK(got[width + i] == 0.0f);
  }
}

TEST_CASE("shapes that mean nothing are refused", "[online_softmax]") {
  const auto device = test_device();
  for (const Rung rung : kRungs) {
    const auto refused = [&](const RowShape& shape, std::size_t elements) {
      return error_of([&] { softmax(*device, rung, shape, random_rows(elements, 1)); });
    };
    CHECK(contains(refused({0, 8, 128}, 0), "rows is 0"));
    CHECK(contains(refused({8, 0, 128}, 0), "columns is 0"));
    CHECK(contains(refused({1, 8, 100}, 8), "128, 256, 512"));
  }
  simt::Buffer<float> nothing(*device, 0);
  const auto refused = [&](const AttentionShape& shape) {
    return error_of([&] {
      online_softmax::kernels_of(*device).attention(*device, shape, Accumulator::fp32,
                                                    nothing.span(), nothing.span(), nothing.span());
    });
  };
  CHECK(contains(refused({1, 0, 4, 1, false}), "keys is 0"));
  CHECK(contains(refused({1, 4, 0, 1, false}), "1–1024"));
  CHECK(contains(refused({1, 4, 4, 129, false}), "1–128"));
  CHECK(contains(refused({0, 4, 4, 1, false}), "queries is 0"));
}
