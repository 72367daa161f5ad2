// W · x from codes: the same whether codes become numbers in registers or in memory, in every order of the threads; how
// many bytes that takes; and what comes of a scale or a zero point that is not the group's.
#include <cmath>
#include <set>

#include "kernels/base/numeric/small_float.hpp"
#include "kernels/numbers/low_bit/lesson.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/device.hpp"
#include "tests/part.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::low_bit;
using tests::contains, tests::error_of;

namespace {

const tests::Runs run(lesson(), knob_table(), trace_from_json);

/// By the format's definition: a code's number times a scale.
double number(const Trace& trace, std::size_t weight) {
  return numbers_of(trace.format)[static_cast<std::size_t>(trace.codes[weight])];
}
double number_times(const Trace& trace, std::size_t weight, float step) {
  return number(trace, weight) * static_cast<double>(step);
}
std::size_t group_of_weight(const Trace& trace, std::size_t weight) {
  return static_cast<std::size_t>(trace.group_at(static_cast<int>(weight)));
}

/// Bytes of W as its format is defined.
int bytes_of(const Trace& trace) {
  const auto bits = static_cast<std::size_t>(code_bits(trace.format)) * kWeightCount +
                    static_cast<std::size_t>(scale_bits(trace.format) * trace.steps);
  int bytes = static_cast<int>(bits / 8);
  if (trace.format == Format::q4_k) bytes += 4 * kWeightCount / kSuperBlock;
  // NVFP4's scale of all follows from what W spans.
  if (trace.format == Format::nvfp4) bytes += static_cast<int>(sizeof(Range));
  return bytes;
}

constexpr Group kGroups[] = {Group::g16, Group::g32, Group::g128, Group::row, Group::tensor};

std::int64_t differing(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  std::int64_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] == b[i] ? 0 : 1;
  return count;
}

}  // namespace

TEST_CASE("a fused product reads codes and scales once, an unfused one writes and reads numbers",
          "[low_bit]") {
  tests::Part part("W's way", 3);
  for (const Format format : all_of<Format>()) {
    for (const Group group : kGroups) {
      if (has_own_group(format) && group != Group::g32) continue;
      if (part.skips()) continue;
      const Params params{.format = format, .group = group};
      INFO(run.words(params));
      const Trace fused = run.trace(params);
      REQUIRE(fused.ways.size() == 1);
      CHECK(fused.ways[0].moved() == bytes_of(fused));
      CHECK(fused.ways[0].written + fused.ways[0].read_back == 0);
      CHECK(fused.ways[0].numbers == 4 * kWeightCount);
      CHECK(fused.ways[0].fmas == kWeightCount);
      Params apart = params;
      apart.broken = Break::unfused;
      const lab::Report report = run(apart);
      CHECK(tests::failed_checks(report) == "");
      const Trace unfused = run.read(report.trace);
      REQUIRE(unfused.ways.size() == 2);
      CHECK(unfused.ways[1] == fused.ways[0]);
      CHECK(unfused.ways[0].moved() == bytes_of(fused) + 8 * kWeightCount);
      CHECK(unfused.y == fused.y);
      CHECK(unfused.values == fused.values);
    }
  }
}

TEST_CASE("W · x is the same in every order of the threads", "[low_bit]") {
  for (const Break broken : {Break::none, Break::unfused, Break::scale_after_sum}) {
    const Params params{.format = Format::nvfp4, .broken = broken};
    INFO(run.words(params));
    const Trace trace = run.trace(params);
    tests::in_other_orders(
        1, [&](simt::Device& device) { CHECK(run.trace(params, device) == trace); });
  }
}

TEST_CASE("one scale: every group has that of all weights", "[low_bit]") {
  for (const Format format :
       {Format::int8, Format::int4, Format::int4_zero, Format::fp8_e4m3, Format::nvfp4}) {
    const Params params{.format = format, .broken = Break::one_scale};
    INFO(run.words(params));
    const lab::Report report = run(params);
    CHECK(tests::failed_checks(report) == "");
    CHECK(contains(report.summary, "one-scale"));
    const Trace trace = run.read(report.trace), sound = run.trace({.format = format});
    REQUIRE(trace.wronged.size() == trace.groups.size());
    int others = 0;
    for (std::size_t g = 0; g < trace.groups.size(); ++g) {
      CHECK(trace.groups[g].step == trace.groups[0].step);
      CHECK(trace.wronged[g].own_step == sound.groups[g].step);
      CHECK(trace.wronged[g].own_rms == Approx(sound.groups[g].rms));
      CHECK(trace.wronged[g].step == trace.groups[g].step);
      others += trace.groups[g].step == sound.groups[g].step ? 0 : 1;
    }
    CHECK(others > trace.steps / 2);
    if (has_own_group(format)) continue;
    // The very scale that a group of all weights has.
    const Trace all = run.trace({.format = format, .group = Group::tensor});
    CHECK(trace.groups[0].step == all.groups[0].step);
    CHECK(trace.codes == all.codes);
    CHECK(differing(trace.values, all.values) == 0);
  }
}

TEST_CASE("one scale: Q4_K's groups have that of their super-block", "[low_bit]") {
  const Trace trace = run.trace({.format = Format::q4_k, .broken = Break::one_scale});
  std::set<float> first_block, all;
  for (std::size_t g = 0; g < trace.groups.size(); ++g) {
    all.insert(trace.groups[g].step);
    if (g < 8) first_block.insert(trace.groups[g].step);
  }
  CHECK(first_block.size() == 1);
  CHECK(all.size() > 1);
}

TEST_CASE("a zero point off by one: each weight is a step too low", "[low_bit]") {
  for (const Group group : {Group::g16, Group::row}) {
    const Params params{
        .format = Format::int4_zero, .group = group, .broken = Break::wrong_zero_point};
    INFO(run.words(params));
    const lab::Report report = run(params);
    CHECK(tests::failed_checks(report) == "");
    const Trace trace = run.read(report.trace);
    Params right = params;
    right.broken = Break::none;
    const Trace sound = run.trace(right);
    CHECK(trace.codes == sound.codes);
    for (std::size_t i = 0; i < trace.values.size(); ++i) {
      const float step = trace.groups[group_of_weight(trace, i)].step;
      REQUIRE(
          static_cast<double>(trace.values[i]) ==
          Approx(static_cast<double>(sound.values[i]) - static_cast<double>(step)).margin(1e-6));
    }
  }
  // Q4_K has a minimum in its place.
  const Trace trace = run.trace({.format = Format::q4_k, .broken = Break::wrong_zero_point});
  for (std::size_t i = 0; i < trace.values.size(); ++i) {
    const float step = trace.groups[group_of_weight(trace, i)].step;
    REQUIRE(static_cast<double>(trace.values[i]) == Approx(number_times(trace, i, step)));
  }
}

TEST_CASE("a scale after the sum: a row's numbers are all multiplied by its first group's",
          "[low_bit]") {
  for (const Format format : {Format::int8, Format::int4, Format::nvfp4, Format::fp8_e5m2}) {
    const Params params{.format = format, .broken = Break::scale_after_sum};
    INFO(run.words(params));
    const lab::Report report = run(params);
    CHECK(tests::failed_checks(report) == "");
    const Trace trace = run.read(report.trace);
    const std::vector<std::uint16_t> input = input_of(params);
    REQUIRE(trace.y.size() == static_cast<std::size_t>(kMatrix.rows));
    for (std::size_t row = 0; row < trace.y.size(); ++row) {
      const std::size_t first = row * static_cast<std::size_t>(kMatrix.columns);
      const float step = trace.groups[group_of_weight(trace, first)].step;
      double sum = 0, magnitude = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(kMatrix.columns); ++i) {
        const double w = number_times(trace, first + i, step);
        REQUIRE(static_cast<double>(trace.values[first + i]) == Approx(w).margin(1e-12));
        const double product = w * numeric::decode(numeric::kBf16, input[i]);
        sum += product;
        magnitude += std::abs(product);
      }
      CHECK(std::abs(static_cast<double>(trace.y[row]) - sum) <= 1e-5 * magnitude);
      CHECK(trace.y[row] != trace.sound_y[row]);
    }
  }
}

TEST_CASE("what cannot be broken is refused with what can", "[low_bit]") {
  const auto refusal = [](const Params& params) { return error_of([&] { run(params); }); };
  CHECK(contains(refusal({.broken = Break::wrong_zero_point}),
                 "none, unfused, one-scale, scale-after-sum"));
  CHECK(contains(refusal({.group = Group::tensor, .broken = Break::one_scale}), "none, unfused"));
  CHECK(contains(refusal({.format = Format::ternary, .broken = Break::scale_after_sum}),
                 "group = tensor"));
  CHECK(contains(refusal({.group = Group::row, .broken = Break::scale_after_sum}), "one-scale"));
  CHECK(contains(refusal({.format = Format::q4_k, .broken = Break::scale_after_sum}),
                 "wrong-zero-point"));
}

TEST_CASE("a thread reads its group's scale once for its eight weights", "[low_bit]") {
  for (const Format format : {Format::int4, Format::nvfp4, Format::int8}) {
    const lab::Report report = run({.format = format});
    const lab::Measurement* loads = report.measurement("scale_loads");
    REQUIRE(loads != nullptr);
    CHECK(loads->value == 1);
  }
  CHECK(run({.format = Format::q4_k}).measurement("scale_loads") == nullptr);
}
