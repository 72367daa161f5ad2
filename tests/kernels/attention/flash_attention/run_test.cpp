// What a run of the lesson says: its trace against what is known without it, its limits, its way through JSON.

#include "kernels/attention/flash_attention/run/run.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "kernels/attention/flash_attention/run/explained.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/attention/flash_attention/testing.hpp"

using namespace tilestep;
using namespace tilestep::flash_attention;
using tests::contains;
using tests::error_of;

namespace {

Params small(Variant variant) {
  return {.variant = variant, .seq = 100, .heads = 2};
}

}  // namespace

TEST_CASE("the defaults' trace has the mask's tiles, in the blocks' order", "[flash_attention]") {
  const Trace trace = runs.trace({});
  REQUIRE(trace.plan.q_tiles == 8);
  REQUIRE(trace.plan.k_tiles == 8);
  CHECK(trace.plan.blocks == 16);
  CHECK(trace.chosen.query == 225);
  CHECK(trace.chosen.q_tile == 7);
  int visited = 0;
  for (int q = 0; q < 8; ++q) {
    for (int k = 0; k < 8; ++k) {
      const TileVisit& visit = trace.visit(q, k);
      const TileKind due = k < q ? TileKind::full : k == q ? TileKind::partial : TileKind::skipped;
      CHECK(visit.kind == due);
      CHECK(visit.order == (k <= q ? k : -1));
      CHECK(visit.begin == (k <= q ? k : -1));
      CHECK(visit.end == (k <= q ? k + 1 : -1));
      CHECK(visit.o_writes == (k == q ? 32 : 0));
      CHECK(step_of(trace.steps, visit) == (k <= q ? k + 1 : 0));
      visited += visit.order >= 0;
    }
  }
  CHECK(visited == 36);
  // The heavy tiles of queries come first, and the last is busy for eight tiles while the first has one.
  REQUIRE(trace.blocks.size() == 16);
  for (const BlockLane& lane : trace.blocks) {
    CHECK(lane.head == lane.block / 8);
    CHECK(lane.tile == 7 - lane.block % 8);
    CHECK(lane.visits == lane.tile + 1);
    CHECK(lane.end - lane.begin == lane.visits);
  }
  REQUIRE(trace.steps.size() == 8);
  CHECK(trace.steps[7].kind == TileKind::partial);
  CHECK(std::isinf(trace.steps[0].m_before));
  CHECK(trace.steps[0].rescale == 0);
}

TEST_CASE("the steps lead to the answer, and the answer is right", "[flash_attention]") {
  for (const Variant variant : {Variant::flash_1, Variant::flash_2}) {
    Params params = small(variant);
    params.mask = Mask::none;
    params.query = 70;
    CAPTURE(runs.words(params));
    const Trace trace = runs.trace(params);
    REQUIRE_FALSE(trace.steps.empty());
    const Step& last = trace.steps.back();
    CHECK(trace.answer.o_after.back() == Approx(trace.answer.exact[0]));
    CHECK(static_cast<double>(trace.answer.o[0]) == Approx(trace.answer.exact[0]).margin(0.02));
    CHECK(static_cast<double>(last.m_after) + std::log(static_cast<double>(last.l)) ==
          Approx(trace.answer.exact_lse).epsilon(1e-4));
    CHECK(trace.o_recorded);
    const double divisor = variant == Variant::flash_1 ? 1 : static_cast<double>(last.l);
    CHECK(static_cast<double>(last.o) / divisor == Approx(trace.answer.exact[0]).margin(0.02));
  }
}

TEST_CASE("naive's scores and weights are there, the others store none", "[flash_attention]") {
  const Trace naive = runs.trace({.variant = Variant::naive, .query = 100});
  REQUIRE(naive.scores.size() == 256);
  REQUIRE(naive.weights.size() == 256);
  double sum = 0;
  for (const float weight : naive.weights) sum += static_cast<double>(weight);
  CHECK(sum == Approx(1).margin(0.01));
  CHECK(naive.weights[101] == 0);
  CHECK(std::isinf(naive.scores[101]));
  REQUIRE(naive.steps.size() == 8);
  CHECK(naive.steps[0].tile_max ==
        *std::max_element(naive.scores.begin(), naive.scores.begin() + 32));
  CHECK(std::isinf(naive.steps[7].tile_max));
  CHECK(naive.visit(0, 7).kind == TileKind::skipped);
  CHECK(naive.visit(0, 7).order == 0);  // computed all the same
  CHECK(runs.trace({}).scores.empty());
}

TEST_CASE("the ledger is that of the formula, by hand too", "[flash_attention]") {
  const Trace flash = runs.trace({});
  const LedgerRow keys = tests::ledger_row(flash, Tensor::k);
  CHECK(keys.loaded == 2 * 36 * 32 * 32 * 2);
  CHECK(keys.loaded == keys.formula_loaded);
  CHECK(keys.whole_loaded == keys.loaded);
  CHECK(keys.held == 256 * 32 * 2);
  CHECK(tests::ledger_row(flash, Tensor::q).loaded == 2 * 256 * 32 * 2);
  CHECK(tests::ledger_row(flash, Tensor::s).held == 0);
  const LedgerRow scores = tests::ledger_row(runs.trace({.variant = Variant::naive}), Tensor::s);
  CHECK(scores.loaded == 2 * 256 * 256 * 2);
  CHECK(scores.stored == 2 * 256 * 256 * 2);
  CHECK(scores.held == 2 * 256 * 256 * 2);
}

TEST_CASE("a break shows in trace and result, the checks are of the sound kernel",
          "[flash_attention]") {
  for (const Variant variant : {Variant::flash_1, Variant::flash_2}) {
    for (const Break broken : {Break::skip_rescale, Break::mask_off_by_one}) {
      Params params = small(variant);
      params.broken = broken;
      CAPTURE(runs.words(params));
      const lab::Report report = runs(params);
      CHECK(report.ok());
      const Trace trace = trace_from_json(report.trace);
      CHECK(trace.result.outcome == "wrong numbers");
      CHECK(trace.result.wrong > 0);
      CHECK(trace.result.head >= 0);
      CHECK(trace.result.largest > 0);
      int of_head = 0;
      for (const int wrong : trace.wrong) of_head += wrong;
      CHECK(of_head > 0);
      CHECK(of_head <= trace.result.wrong);
      CHECK(report.table("broken") != nullptr);
      if (broken == Break::skip_rescale) {
        for (std::size_t i = 1; i < trace.steps.size(); ++i) CHECK(trace.steps[i].rescale == 1);
      }
    }
  }
  const lab::Report more = runs({.broken = Break::materialize});
  CHECK(more.ok());
  const Trace trace = trace_from_json(more.trace);
  CHECK(trace.result.outcome == "more bytes");
  CHECK(trace.result.wrong == 0);
  CHECK(trace.result.more_bytes == 2 * 36 * 32 * 32 * 2);
  CHECK(trace.scores.size() == 256);
}

TEST_CASE("of a large problem a part runs, and says so", "[flash_attention]") {
  const Params large{.variant = Variant::flash_2,
                     .seq = 65536,
                     .heads = 16,
                     .kv_heads = 4,
                     .head_dim = HeadDim::d128,
                     .block_q = Edge::t128,
                     .block_k = Edge::t128};
  const Excerpt excerpt = excerpt_of(large);
  CHECK(excerpt.params.heads == 1);
  CHECK(excerpt.params.seq < 65536);
  CHECK(excerpt.params.seq >= 256);
  CHECK(contains(excerpt.cut, "head 0 of 16"));
  CHECK(contains(excerpt.cut, "of 65536"));
  CHECK(tile_flops(plan_of(excerpt.params), task_of(excerpt.params), excerpt.begins) <= kMostFlops);
  CHECK(excerpt_of({}).cut.empty());
  // Alibi's slopes are of all heads.
  Params alibi = large;
  alibi.score_mod = ScoreMod::alibi;
  CHECK(excerpt_of(alibi).params.heads == 16);
  CHECK(excerpt_of(alibi).params.seq < excerpt.params.seq);
  // Small tiles of a long sequence: as many as can be drawn.
  const Excerpt window = excerpt_of({.seq = 8192, .heads = 1, .mask = Mask::sliding_window});
  const Plan plan = plan_of(window.params);
  CHECK(plan.q_tiles * plan.k_tiles <= kMostTiles);
  // Documents begin where they do in the whole.
  const Excerpt documents = excerpt_of({.seq = 8192, .heads = 1, .mask = Mask::document});
  std::vector<int> whole = begins_of(document_lengths(8192, 1));
  whole.resize(documents.begins.size());
  CHECK(documents.begins == whole);
}

TEST_CASE("the whole problem is in the ledger of a part", "[flash_attention]") {
  const Trace trace = runs.trace({.seq = 32768, .heads = 32, .head_dim = HeadDim::d64});
  CHECK(trace.shape.asked_length == 32768);
  CHECK(trace.shape.length < 32768);
  CHECK_FALSE(trace.plan.cut.empty());
  CHECK(trace.asked_rule().length == 32768);
  CHECK(trace.rule().length == trace.shape.length);
  for (const LedgerRow& row : trace.ledger) {
    CHECK(row.whole_loaded >= row.formula_loaded);
    CHECK(row.whole_stored >= row.formula_stored);
  }
}

TEST_CASE("what is chosen past the end is the last", "[flash_attention]") {
  const Trace trace = runs.trace({.seq = 40, .heads = 2, .query = 1000});
  CHECK(trace.chosen.query == 39);
}

TEST_CASE("a run is the same in every order of threads", "[flash_attention]") {
  for (const Variant variant : {Variant::flash_1, Variant::flash_2}) {
    CAPTURE(std::string(name_of(variant)));
    const auto device = test_device(simt::ThreadOrder::descending);
    CHECK((runs(small(variant), *device).trace == runs(small(variant)).trace));
  }
}
