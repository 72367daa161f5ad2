// What a run says: its trace against what is known without it, its lanes, its way through JSON.

#include "kernels/attention/flash_attention_3/run/run.hpp"

#include <cmath>
#include <map>

#include "kernels/attention/flash_attention_3/bench/bench.hpp"
#include "kernels/base/simt/backends.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"
#include "tests/traces.hpp"

using namespace tilestep;
using namespace tilestep::flash_attention_3;
using tests::contains;

namespace {

const tests::Runs runs(lesson(), knob_table(), trace_from_json);

Params small(Rung variant) {
  return {.variant = variant, .seq = 200, .heads = 2, .head_dim = Columns::d64};
}

}  // namespace

TEST_CASE("the rungs hold the lesson's checks under every mask that they have",
          "[flash_attention_3]") {
  for (const Rung variant : all_of<Rung>()) {
    for (const HopperMask mask : all_of<HopperMask>()) {
      Params params = small(variant);
      params.mask = mask;
      const lab::Report report = runs(params);
      CHECK(report.ok());
      CHECK(report.summary.back() == '.');
      const Trace trace = trace_from_json(report.trace);
      CHECK(trace.clock_unit == "words");
      CHECK((to_json(trace) == report.trace));
      const Step& last = trace.steps.back();
      CHECK(static_cast<double>(last.m_after) + std::log(static_cast<double>(last.l)) ==
            Approx(trace.answer.exact_lse).epsilon(1e-4));
      CHECK(static_cast<double>(trace.answer.o[5]) == Approx(trace.answer.exact[5]).margin(0.02));
    }
  }
}

TEST_CASE("its tiles are those of its kernels", "[flash_attention_3]") {
  for (const Columns dim : all_of<Columns>()) {
    for (const Keys keys : all_of<Keys>()) {
      const TilePlan plan = plan_of({.head_dim = dim, .block_k = keys});
      CHECK(plan.block_q == (dim == Columns::d64 ? 192 : 128));
      CHECK(plan.block_k == (keys == Keys::k128 ? 128 : 64));
      CHECK(plan.threads == plan.block_q * 2 + 128);
      CHECK(plan.shared_bytes <= static_cast<std::size_t>(kMostSharedBytes));
    }
  }
}

TEST_CASE("the chosen block's bytes, by hand", "[flash_attention_3]") {
  // Two tiles of 128 queries of four, each with all keys.
  const Trace third = runs.trace({.variant = Rung::pipelined});
  CHECK(tests::ledger_row(third, Tensor::q).loaded == 2 * 128 * 128 * 2);
  CHECK(tests::ledger_row(third, Tensor::v).loaded == 2 * 512 * 128 * 2);
  CHECK(tests::ledger_row(third, Tensor::v).whole_loaded == 4 * 512 * 128 * 2);
  CHECK(tests::ledger_row(third, Tensor::o).stored ==
        2 * 128 * 128 * 4);  // FP32 where it is explained
  CHECK(tests::ledger_row(third, Tensor::o).whole_stored == 512 * 128 * 2);
}

namespace {

/// Whether the lane's softmax runs while its products with V are under way. Clocks count Hopper's words, of which
/// softmax has none.
bool weighs_under_products(const std::vector<Span>& spans, int lane) {
  for (const Span& softmax : spans) {
    if (softmax.lane != lane || softmax.what != Activity::softmax) continue;
    for (const Span& values : spans) {
      if (values.lane != lane || values.what != Activity::values) continue;
      if (values.begin <= softmax.begin && values.end > softmax.end) return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("flash-3's lanes: who weighs while the tensor cores multiply", "[flash_attention_3]") {
  for (const Rung variant : all_of<Rung>()) {
    CAPTURE(std::string(name_of(variant)));
    const Trace trace = runs.trace({.variant = variant});
    const auto spans = spans_of(trace);
    REQUIRE_FALSE(spans.empty());
    std::map<std::pair<int, Activity>, int> counts;
    for (const Span& span : spans) {
      CHECK(span.begin <= span.end);
      ++counts[{span.lane, span.what}];
    }
    const int turns = variant == Rung::pipelined ? 2 : 1;
    CHECK(counts[{0, Activity::copies}] == turns * 2 * 8);  // K and V of eight tiles
    for (const int lane : {1, 2}) {
      CHECK(counts[{lane, Activity::scores}] == turns * 8);
      CHECK(counts[{lane, Activity::softmax}] == turns * 8);
      CHECK(counts[{lane, Activity::values}] == turns * 8);
      CHECK(counts[{lane, Activity::stores}] == turns);
    }
    // In a warpgroup of its own softmax runs under products with flash-3 alone.
    CHECK(weighs_under_products(spans, 1) == (variant == Rung::pipelined));
    // Events are in the order of the clock, the tiles of keys from the last to the first.
    for (std::size_t i = 1; i < trace.events.size(); ++i) {
      CHECK(trace.events[i - 1].clock <= trace.events[i].clock);
    }
    CHECK(trace.steps.front().k_tile == 7);
    CHECK(trace.steps.back().k_tile == 0);
  }
}

TEST_CASE("what is left out on Hopper shows in trace and result", "[flash_attention_3]") {
  for (const Omission omits : {Omission::skip_rescale, Omission::mask_off_by_one}) {
    Params params = small(Rung::pipelined);
    params.mask = HopperMask::causal;
    params.omits = omits;
    const lab::Report report = runs(params);
    CHECK(report.ok());
    CHECK(contains(report.summary, "numbers of O"));
    CHECK(report.table("broken") != nullptr);
    const Trace trace = trace_from_json(report.trace);
    CHECK(trace.result.wrong > 0);
    CHECK(trace.result.head >= 0);
  }
  CHECK_THROWS_AS(plan_of({.omits = Omission::mask_off_by_one}), Error);
}

TEST_CASE("of a large problem on Hopper a part runs, in every order of threads alike",
          "[flash_attention_3]") {
  const Excerpt excerpt = excerpt_of({.seq = 8192, .heads = 16});
  CHECK(excerpt.params.heads == 1);
  CHECK(flops_of(plan_of(excerpt.params), task_of(excerpt.params)) <= kMostFlops);
  CHECK(contains(excerpt.cut, "head 0 of 16"));
  const Params params = small(Rung::pipelined);
  CHECK((runs(params).trace ==
         runs(params, *tests::test_device(simt::ThreadOrder::descending)).trace));
}

TEST_CASE("attention's bench on Hopper times its rungs beside flash-2", "[flash_attention_3]") {
  tests::TimedEmulation device;
  device.pretend().memory_bytes = std::size_t{1} << 34;
  BenchSizes sizes;
  sizes.lengths = {136};
  sizes.heads = {2, 1};
  sizes.counted_length = 64;
  sizes.counted_heads = 1;
  sizes.pace.rounds = 1;
  sizes.pace.peers = false;
  const lab::Report report = bench_report(device, tests::unwatched, sizes);
  tests::check_holds(report);
  CHECK(tests::table_in(report, "ladder_measured").rows.size() == 2 * 2 * 4);
  CHECK(tests::table_in(report, "pipes").rows.size() == 2 * 4);
  CHECK(tests::table_in(report, "resources").rows.size() == 2 * 4);
  REQUIRE(report.measurement("attention_rate", "flash-3 128 full 136") != nullptr);
  CHECK(report.measurement("attention_rate", "flash-3 128 full 136")->value ==
        Approx(4.0 * 136 * 136 * 128 / 1e9));
}
