// The kernels of the loop under diagnosis: every plan gives the reference's numbers, over shapes and thread orders; and each
// kernel on its own.

#include <cmath>
#include <map>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/float_format.hpp"
#include "kernels/systems/triage/run/run.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/device.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::triage;

namespace {

simt::KernelEntry kTriageTable[] = {{"triage", kernels_emulated}};

/// Numbers of a step that are not the reference's.
int wrong_numbers(Program& program, int step) {
  Arrays& arrays = program.arrays();
  arrays.h.fill(0xFF);
  arrays.logits.fill(0xFF);
  program.run(step);
  arrays.device().synchronize();
  const Result got = result_of(program);
  int wrong = 0;
  const auto compare = [&](const std::vector<float>& its, std::size_t first,
                           const std::vector<double>& exact) {
    double largest = 1;
    for (const double one : exact) largest = std::max(largest, std::abs(one));
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double off = std::abs(static_cast<double>(its[first + i]) - exact[i]);
      wrong += off <= bound_of(arrays.shape(), largest) ? 0 : 1;
    }
  };
  for (int row = 0; row < arrays.shape().rows; ++row) {
    const auto at = static_cast<std::size_t>(row);
    const ReferenceRow exact =
        reference_row(arrays.shape(), arrays.numbers(), row, Arrays::tokens_of()[at]);
    compare(got.h, at * exact.h.size(), exact.h);
    compare(got.logits, at * exact.logits.size(), exact.logits);
  }
  return wrong;
}

std::vector<Plan> all_plans() {
  std::vector<Plan> plans{{}};
  plans.back().quick_norm = true;
  plans.emplace_back();
  for (const Fault fault : all_of<Fault>()) plans.push_back(Plan{}.with(fault));
  return plans;
}

std::vector<Shape> some_shapes() {
  std::vector<Shape> shapes(4);
  shapes[0].layers = 1;
  shapes[1].layers = 1;
  shapes[1].rows = 1;
  shapes[1].context = 1;
  shapes[1].splits = 3;
  shapes[2].rows = 3;
  shapes[2].context = 37;
  shapes[2].heads = 8;
  shapes[2].width = 48;
  shapes[2].inner = 40;
  shapes[2].vocabulary = 33;
  shapes[2].expert_blocks = 1;
  shapes[3].layers = 1;
  shapes[3].rows = 2;
  shapes[3].dim = 128;
  shapes[3].splits = 1;
  return shapes;
}

}  // namespace

TEST_CASE("Triage: every plan computes what the reference does, in any order of threads",
          "[triage]") {
  for (const auto order :
       {simt::ThreadOrder::ascending, simt::ThreadOrder::descending, simt::ThreadOrder::shuffled}) {
    simt::EmulationOptions options;
    options.order = order;
    const auto device = tests::device_under_test(kTriageTable, options);
    for (const Shape& shape : some_shapes()) {
      Arrays arrays(*device, shape, make_numbers(shape, 3, 100003));
      for (const Plan& plan : all_plans()) {
        INFO(key_of(plan) << ", width " << shape.width << ", context " << shape.context);
        Program program(arrays, plan);
        CHECK(wrong_numbers(program, kUsualStep) == 0);
        if (plan.has(Fault::rare)) CHECK(wrong_numbers(program, kLoop) == 0);
      }
    }
  }
}

TEST_CASE("Triage: a product is the same however its weights lie in memory", "[triage]") {
  const auto device = tests::device_under_test(kTriageTable);
  const Kernels& kernels = triage::kernels_of(*device);
  struct Size {
    int rows, k, tokens;
  };
  for (const Size& size : {Size{5, 16, 1}, {17, 64, 4}, {64, 272, 7}, {3, 1040, 8}}) {
    const int rows = size.rows, k = size.k, tokens = size.tokens;
    std::mt19937 generator = lab::generator_of(rows);
    const auto count = static_cast<std::size_t>(rows * k);
    std::vector<std::uint16_t> packs(count), columns(count),
        odd(static_cast<std::size_t>(rows) * static_cast<std::size_t>(k + 1));
    std::vector<float> floats(count), scales(static_cast<std::size_t>(rows));
    std::vector<unsigned char> bytes(count);
    for (float& scale : scales) scale = std::ldexp(1.0f, -6 - static_cast<int>(generator() % 3));
    for (int row = 0; row < rows; ++row) {
      for (int i = 0; i < k; ++i) {
        const auto at = static_cast<std::size_t>(row * k + i);
        const int byte = static_cast<int>(generator() % 255) - 127;
        bytes[at] = static_cast<unsigned char>(byte);
        floats[at] = static_cast<float>(byte) * scales[static_cast<std::size_t>(row)];
        packs[at] = numeric::Bf16::bits(floats[at]);
        columns[static_cast<std::size_t>(i * rows + row)] = packs[at];
        odd[static_cast<std::size_t>(row * (k + 1) + i)] = packs[at];
      }
    }
    const std::vector<float> x =
        lab::uniform_floats(generator, static_cast<std::size_t>(tokens * k));
    std::vector<double> exact;
    for (int token = 0; token < tokens; ++token) {
      for (int row = 0; row < rows; ++row) {
        double sum = 0;
        for (int i = k - 1; i >= 0; --i) {
          sum += static_cast<double>(floats[static_cast<std::size_t>(row * k + i)]) *
                 static_cast<double>(x[static_cast<std::size_t>(token * k + i)]);
        }
        exact.push_back(sum);
      }
    }
    simt::Buffer<std::uint16_t> w(*device, packs), by_column(*device, columns), apart(*device, odd),
        expanded(*device, count);
    simt::Buffer<float> w_floats(*device, floats), its_scales(*device, scales), its_x(*device, x),
        y(*device, exact.size());
    simt::Buffer<unsigned char> w_bytes(*device, bytes);
    const auto check = [&](Weights weights, simt::Span<const std::uint16_t> of, int pitch,
                           bool adds) {
      INFO(static_cast<int>(weights) << ": " << rows << " x " << k << ", " << tokens);
      y.fill(adds ? 0 : 0xFF);
      kernels.product(
          *device, "product", weights, {rows, k, pitch, tokens, adds},
          {of, w_floats.span(), w_bytes.span(), its_scales.span(), its_x.span(), y.span()}, {});
      const std::vector<float> got = y.download();
      int wrong = 0;
      for (std::size_t i = 0; i < exact.size(); ++i) {
        wrong += std::abs(static_cast<double>(got[i]) - exact[i]) <= 0x1p-22 * k * 2 ? 0 : 1;
      }
      CHECK(wrong == 0);
    };
    for (const bool adds : {false, true}) {
      check(Weights::packs, w.span(), k, adds);
      check(Weights::single, apart.span(), k + 1, adds);
      check(Weights::columns, by_column.span(), k, adds);
      check(Weights::floats, {}, k, adds);
      check(Weights::bytes, {}, k, adds);
    }
    kernels.dequant(*device, rows, k, w_bytes.span(), its_scales.span(), expanded.span(), {});
    CHECK(expanded.download() == packs);
  }
}

TEST_CASE("Triage: shapes that a kernel does not take are refused", "[triage]") {
  const auto device = tests::device_under_test(kTriageTable);
  const Kernels& kernels = triage::kernels_of(*device);
  simt::Buffer<std::uint16_t> w(*device, 64);
  simt::Buffer<float> x(*device, 64), y(*device, 64);
  const ProductArrays arrays{.w = w.span(), .x = x.span(), .y = y.span()};
  const auto product = [&](const Product& shape) {
    kernels.product(*device, "product", Weights::packs, shape, arrays, {});
  };
  CHECK_THROWS_AS(product({4, 12, 12, 1, false}), Error);
  CHECK_THROWS_AS(product({4, 8, 9, 1, false}), Error);
  CHECK_THROWS_AS(product({4, 8, 8, 9, false}), Error);
  Shape shape;
  shape.heads = 6;
  CHECK_THROWS_AS(kernels.norm(*device, shape, false, x.span(), x.span(), y.span(), {}), Error);
}

TEST_CASE("Triage: a router with room in each expert spreads rows, one without sends all to one",
          "[triage]") {
  const auto device = tests::device_under_test(kTriageTable);
  const Shape shape;
  Arrays arrays(*device, shape, make_numbers(shape, 1, 100003));
  const auto most = [&](const Plan& plan) {
    Program program(arrays, plan);
    program.run(1);
    std::map<int, int> rows;
    int largest = 0;
    for (const int expert : result_of(program).chosen) largest = std::max(largest, ++rows[expert]);
    return largest;
  };
  CHECK(most(Plan{}) == 1);
  CHECK(most(Plan{}.with(Fault::padding)) == 2);
  CHECK(most(Plan{}.with(Fault::straggler)) == 4);
}
