// What a run of a backward pass says: its trace against what is known without it, and its way through JSON.

#include "kernels/attention/attention_backward/run/run.hpp"

#include <cmath>
#include <numeric>

#include "kernels/attention/attention_backward/run/explained.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/attention/attention_backward/testing.hpp"

using namespace tilestep;
using namespace tilestep::attention_backward;
using tests::contains;

TEST_CASE("blocks own tiles of keys, and come to the chosen query one after another",
          "[attention_backward]") {
  const Trace trace = runs.trace({});
  REQUIRE(trace.steps.size() == 8);
  CHECK(trace.plan.blocks == 8);  // of one head of K and V
  CHECK(trace.chosen.block == 7);
  double sum = 0;
  for (int step = 0; step < 8; ++step) {
    const Step& at = trace.steps[static_cast<std::size_t>(step)];
    // Block k begins at the diagonal, and is at the last queries at its visit 7 − k.
    CHECK(at.k_tile == 7 - step);
    CHECK(at.order == step);
    CHECK(trace.visit(7, at.k_tile).block == at.k_tile);
    CHECK(trace.visit(7, at.k_tile).o_writes == 32);
    sum += static_cast<double>(at.dq);
    CHECK(sum / std::sqrt(32.0) ==
          Approx(trace.row.dq_after[static_cast<std::size_t>(step)]).margin(2e-3));
  }
  CHECK(sum / std::sqrt(32.0) == Approx(static_cast<double>(trace.row.dq[0])).epsilon(0x1p-7));
  for (int q = 0; q < 8; ++q) {
    for (int k = 0; k < 8; ++k) {
      CHECK(trace.visit(q, k).order == (k <= q ? q - k : -1));
      CHECK(trace.visit(q, k).rescaled == -1);
      CHECK(step_of(trace.steps, trace.visit(q, k)) == (k <= q ? q - k + 1 : 0));
    }
  }
  // Each goes through both query heads.
  for (const BlockLane& lane : trace.blocks) {
    CHECK(lane.tile == lane.block);
    CHECK(lane.visits == 2 * (8 - lane.tile));
    CHECK(lane.end - lane.begin == lane.visits);
  }
}

TEST_CASE("what is kept between the passes, by hand", "[attention_backward]") {
  const Trace again = runs.trace({});
  const std::int64_t numbers = 2 * 256 * 32 * 2, keys = 256 * 32 * 2;
  const auto kept = [](const Trace& trace) {
    std::int64_t sum = 0;
    for (const LedgerRow& row : trace.ledger) sum += row.kept;
    return sum;
  };
  CHECK(kept(again) == 2 * numbers + 2 * keys + 2 * 256 * 4);
  CHECK(tests::ledger_row(again, Tensor::p).held == 0);
  CHECK(tests::ledger_row(again, Tensor::dq_sums).held == 2 * 256 * 32 * 4);
  // A block fetches K once, whatever number of queries it walks over.
  CHECK(tests::ledger_row(again, Tensor::k).loaded == keys);
}

TEST_CASE("recompute or store: the table says what both come to", "[attention_backward]") {
  const lab::Report report = runs({.seq = 100, .mask = Mask::none});
  const lab::Table* passes = report.table("passes");
  REQUIRE(passes != nullptr);
  CHECK(passes->rows.size() == 7);  // 1024 … 65536
  Task task = task_of({.seq = 1024, .mask = Mask::none});
  const TilePlan plan = plan_of({.seq = 1024, .mask = Mask::none});
  const StoringPass store = storing_pass_of(plan, task);
  const double again = flops_of(plan, task, {});
  CHECK(again == 10.0 * 1024 * 1024 * 32 * 2);
  // A quarter more, where the mask hides nothing.
  CHECK(again == 1.25 * store.flops);
  // P is kept besides; for a soft cap the scores too, which are read once.
  const double weights = 2.0 * 1024 * 1024 * 2;
  double kept = 0;
  for (const auto bytes : memory_of(plan, task).kept) kept += static_cast<double>(bytes);
  CHECK(store.kept == kept + weights);
  CHECK(store.asked == 50'888'704);  // as the kernels once counted it
  task.mod = ScoreMod::softcap;
  CHECK(storing_pass_of(plan, task).kept == store.kept + weights);
  CHECK(storing_pass_of(plan, task).asked == store.asked + weights);
}

TEST_CASE("one key too many shows in a backward pass's trace, and its checks are sound",
          "[attention_backward]") {
  const Params params{.seq = 100, .omits = Omission::mask_off_by_one};
  const lab::Report report = runs(params);
  CHECK(report.ok());
  const Trace trace = trace_from_json(report.trace);
  CHECK(trace.result.outcome == "wrong numbers");
  CHECK(trace.result.elements == 2 * 100 * 32 + 2 * 100 * 32);
  CHECK(trace.result.tensor == Tensor::dq);
  const auto count = [](const std::vector<int>& wrong) {
    return std::accumulate(wrong.begin(), wrong.end(), 0);
  };
  CHECK(count(trace.wrong) > 0);
  CHECK(count(trace.wrong_dk) > 0);
  CHECK(count(trace.wrong_dv) > 0);
  // Of a single head all that is wrong is in its tiles.
  Params one = params;
  one.heads = 1;
  const Trace of_head = runs.trace(one);
  CHECK(count(of_head.wrong) + count(of_head.wrong_dk) + count(of_head.wrong_dv) ==
        of_head.result.wrong);
  CHECK(report.table("broken") != nullptr);
  CHECK(contains(report.summary, "dQ, dK and dV"));
}

TEST_CASE("a forward pass without its rescale leaves a wrong log-sum-exp to the backward pass",
          "[attention_backward]") {
  const Params params{.seq = 100, .omits = Omission::skip_rescale};
  const lab::Report report = runs(params);
  CHECK(report.ok());
  const Trace trace = trace_from_json(report.trace);
  CHECK(trace.result.outcome == "wrong numbers");
  CHECK(std::abs(static_cast<double>(trace.row.lse) - trace.row.exact_lse) > 1e-3);
  CHECK(sum_of(trace.row.p) != Approx(1).margin(1e-3));
}

TEST_CASE(
    "tiles of a backward pass fit into shared memory, and say so where they were made smaller",
    "[attention_backward]") {
  int resized = 0;
  for (const HeadDim dim : all_of<HeadDim>()) {
    for (const Edge edge : all_of<Edge>()) {
      const TilePlan plan = plan_of({.head_dim = dim, .block_q = edge, .block_k = edge});
      CHECK(plan.shared_bytes <= static_cast<std::size_t>(kMostSharedBytes));
      CHECK(plan.threads == plan.block_k * 2);
      const bool as_asked = plan.block_q == size_of(edge) && plan.block_k == size_of(edge);
      CHECK(plan.resized.empty() == as_asked);
      resized += !as_asked;
    }
  }
  CHECK(resized > 0);
}

TEST_CASE("what a backward pass cannot have is refused with what it can", "[attention_backward]") {
  const auto refused = [](const Params& params) {
    return tests::error_of([&] { plan_of(params); });
  };
  CHECK(contains(refused({.heads = 6, .kv_heads = 4}), "1, 2, 3, 6"));
  CHECK(
      contains(refused({.mask = Mask::none, .omits = Omission::mask_off_by_one}), "skip-rescale"));
}

TEST_CASE("of a large backward pass a part runs, and says so", "[attention_backward]") {
  const Excerpt excerpt = excerpt_of({.seq = 16384, .heads = 16, .head_dim = HeadDim::d128});
  CHECK(excerpt.params.heads == 1);
  CHECK(excerpt.params.seq < 16384);
  const TilePlan plan = plan_of(excerpt.params);
  CHECK(flops_of(plan, task_of(excerpt.params), excerpt.begins) <= kMostFlops);
  CHECK(contains(excerpt.cut, "head 0 of 16"));
}
