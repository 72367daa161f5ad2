// What a run of a backward pass says: its trace against what is known without it, and its way through JSON.

#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "kernels/attention/flash_attention/ledger.hpp"
#include "kernels/attention/flash_attention/run.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/attention/flash_attention/pairwise.hpp"
#include "tests/kernels/attention/flash_attention/testing.hpp"
#include "tests/lesson_contract/damage.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::flash_attention;
using tests::contains;

namespace tilestep::flash_attention {
nlohmann::json trace_again(const nlohmann::json& trace);
}

namespace {

constexpr Pass kPasses[] = {Pass::backward_recompute, Pass::backward_store};

lab::Report report_with(const Params& params) {
  lab::NoProgress nobody;
  const auto device = emulated();
  return lesson().run(knob_table().settings(params), *device, nobody);
}
Trace trace_with(const Params& params) {
  return trace_from_json(report_with(params).trace);
}
LedgerRow row_of(const Trace& trace, Tensor tensor) {
  for (const LedgerRow& row : trace.ledger) {
    if (row.tensor == tensor) return row;
  }
  return {};
}
double sum_of(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// How many values each choice has, in the order of `params_of`.
constexpr std::array<int, 9> kChoices{2, 5, 3, 4, 2, 4, 3, 3, 3};

Params params_of(const std::array<int, 9>& c, int seed) {
  constexpr HeadDim kHeadDims[] = {HeadDim::d32, HeadDim::d64, HeadDim::d80, HeadDim::d128};
  constexpr int kLengths[] = {1, 33, 70, 100};
  constexpr int kHeads[][2] = {{1, 1}, {2, 1}, {2, 2}};
  constexpr int kWindows[][2] = {{0, 0}, {20, 5}, {300, 0}};
  Params params;
  params.pass = kPasses[c[0]];
  params.mask = static_cast<Mask>(c[1]);
  params.score_mod = static_cast<ScoreMod>(c[2]);
  params.head_dim = kHeadDims[c[3]];
  params.dtype = static_cast<DataType>(c[4]);
  params.seq = kLengths[c[5]];
  params.block_q = static_cast<Edge>(c[6]);
  params.block_k = static_cast<Edge>((c[6] + seed) % 3);
  params.heads = kHeads[c[7]][0];
  params.kv_heads = kHeads[c[7]][1];
  params.window = kWindows[c[8]][0];
  params.sinks = kWindows[c[8]][1];
  params.head = seed % params.heads;
  params.query = seed * 7 % params.seq;
  params.component = seed % 32;
  params.seed = seed;
  return params;
}

/// What the chosen query's row must be by what else the trace says.
void check_row(const Trace& trace) {
  const BackwardRow& row = trace.backward;
  const auto length = static_cast<std::size_t>(trace.shape.length);
  REQUIRE(row.ds.size() == length);
  REQUIRE(row.dq.size() == static_cast<std::size_t>(trace.shape.head_dim));
  const bool sees = row.lse > -INFINITY;
  const double unit = trace.dtype == DataType::fp32 ? 1e-5 : 0x1p-7;
  CHECK(sum_of(row.p) == Approx(sees ? 1 : 0).margin(unit));
  double pulled = 0;  // Σ P ∘ dP, which is D
  int wrong = 0;
  for (std::size_t key = 0; key < length; ++key) {
    const double p = static_cast<double>(row.p[key]), dp = static_cast<double>(row.dp[key]);
    const double ds = p * (dp - static_cast<double>(row.d));
    pulled += p * dp;
    // A modifier's slope is between 0 and 1.
    const double off = std::abs(static_cast<double>(row.ds[key]) - ds);
    const double most = trace.score_mod == ScoreMod::softcap ? std::abs(ds) : 0;
    wrong += !(off <= most + unit * std::abs(ds) + 1e-6);
  }
  CHECK(wrong == 0);
  CHECK(pulled == Approx(static_cast<double>(row.d)).margin(0.06));
  const auto c = static_cast<std::size_t>(trace.chosen.component);
  CHECK(row.dq_after.size() == trace.steps.size());
  if (!trace.steps.empty()) CHECK(row.dq_after.back() == Approx(row.exact_dq[c]).margin(1e-12));
}

}  // namespace

TEST_CASE("a backward pass's run holds its checks and comes back from JSON", "[flash_attention]") {
  int seed = 0;
  for (const auto& choice : pairwise(kChoices)) {
    const Params params = params_of(choice, ++seed);
    CAPTURE(words(params));
    const lab::Report report = report_with(params);
    for (const lab::Check& check : report.checks) {
      CAPTURE(check.id, check.max_error, check.tolerance);
      CHECK(check.ok);
    }
    std::set<std::string> checked;
    for (const lab::Check& check : report.checks) checked.insert(check.id);
    for (const char* id : {"output", "log_sum_exp", "asked", "visits", "d", "dq", "dk", "dv"}) {
      CHECK(checked.count(id) == 1);
    }
    CHECK(checked.count("recorded_parts") == (params.pass == Pass::backward_recompute ? 1 : 0));
    CHECK(report.summary.starts_with(name_of(params.pass)));
    const Trace trace = trace_from_json(report.trace);
    CHECK((to_json(trace) == report.trace));
    check_row(trace);
  }
}

TEST_CASE("blocks own tiles of keys, and come to the chosen query one after another",
          "[flash_attention]") {
  const Trace trace = trace_with({.pass = Pass::backward_recompute});
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
          Approx(trace.backward.dq_after[static_cast<std::size_t>(step)]).margin(2e-3));
  }
  CHECK(sum / std::sqrt(32.0) == Approx(static_cast<double>(trace.backward.dq[0])).epsilon(0x1p-7));
  for (int q = 0; q < 8; ++q) {
    for (int k = 0; k < 8; ++k) {
      CHECK(trace.visit(q, k).order == (k <= q ? q - k : -1));
      CHECK(trace.visit(q, k).rescaled == -1);
      CHECK(trace.step_of(trace.visit(q, k)) == (k <= q ? q - k + 1 : 0));
    }
  }
  // Each goes through both query heads.
  for (const BlockLane& lane : trace.blocks) {
    CHECK(lane.k_tile == lane.block);
    CHECK(lane.q_tile == -1);
    CHECK(lane.visits == 2 * (8 - lane.k_tile));
    CHECK(lane.end - lane.begin == lane.visits);
  }
  // The second head comes after the first.
  const Trace second = trace_with({.pass = Pass::backward_recompute, .head = 1});
  CHECK(second.steps.front().order == 1);
  CHECK(second.steps.back().order == 15);
}

TEST_CASE("stored weights are those of the forward pass", "[flash_attention]") {
  const Trace stored = trace_with({.pass = Pass::backward_store, .query = 100});
  const Trace forward = trace_with({.variant = Variant::naive, .query = 100});
  CHECK(stored.backward.p == forward.weights);
  CHECK(stored.backward.lse == forward.answer.lse);
  CHECK(stored.plan.runs == Variant::naive);
  CHECK_FALSE(stored.plan.instead.empty());
  CHECK(stored.steps.size() == 8);
  for (const TileVisit& visit : stored.visits) CHECK(visit.order == 0);
  // Both passes come to the same gradients, in BF16.
  const Trace again = trace_with({.pass = Pass::backward_recompute, .query = 100});
  for (std::size_t c = 0; c < 32; ++c) {
    CHECK(static_cast<double>(again.backward.dk[c]) ==
          Approx(static_cast<double>(stored.backward.dk[c])).margin(2e-3));
  }
}

TEST_CASE("what is kept between the passes, by hand", "[flash_attention]") {
  const Trace again = trace_with({.pass = Pass::backward_recompute});
  const Trace stored = trace_with({.pass = Pass::backward_store});
  const std::int64_t numbers = 2 * 256 * 32 * 2, keys = 256 * 32 * 2;
  const std::int64_t weights = 2 * 256 * 256 * 2;
  const auto kept = [](const Trace& trace) {
    std::int64_t sum = 0;
    for (const LedgerRow& row : trace.ledger) sum += row.kept;
    return sum;
  };
  CHECK(kept(again) == 2 * numbers + 2 * keys + 2 * 256 * 4);
  CHECK(kept(stored) == kept(again) + weights);
  CHECK(row_of(again, Tensor::p).held == 0);
  CHECK(row_of(stored, Tensor::ds).held == weights);
  CHECK(row_of(stored, Tensor::ds).kept == 0);
  CHECK(row_of(again, Tensor::dq_sums).held == 2 * 256 * 32 * 4);
  // A block fetches K once, whatever number of queries it walks over.
  CHECK(row_of(again, Tensor::k).loaded == keys);
  CHECK(row_of(stored, Tensor::p).loaded == 2 * weights);
  const Trace capped = trace_with({.pass = Pass::backward_store, .score_mod = ScoreMod::softcap});
  CHECK(row_of(capped, Tensor::s).kept == weights);
  CHECK(kept(trace_with({})) == 0);
}

TEST_CASE("recompute or store: the table says what both come to", "[flash_attention]") {
  const lab::Report report =
      report_with({.pass = Pass::backward_recompute, .seq = 100, .mask = Mask::none});
  const lab::Table* passes = report.table("passes");
  REQUIRE(passes != nullptr);
  CHECK(passes->rows.size() == 7);  // 1024 … 65536
  const Task task = task_of({.seq = 1024, .mask = Mask::none});
  const Plan plan =
      backward_plan_of({.pass = Pass::backward_recompute, .seq = 1024, .mask = Mask::none});
  const Plan store =
      backward_plan_of({.pass = Pass::backward_store, .seq = 1024, .mask = Mask::none});
  const double again = backward_flops(Pass::backward_recompute, plan, task, {});
  CHECK(again == 10.0 * 1024 * 1024 * 32 * 2);
  // A quarter more, where the mask hides nothing.
  CHECK(again == 1.25 * backward_flops(Pass::backward_store, store, task, {}));
  CHECK(report_with({.seq = 100}).table("passes") == nullptr);
}

TEST_CASE("one key too many shows in a backward pass's trace, and its checks are sound",
          "[flash_attention]") {
  for (const Pass pass : kPasses) {
    const Params params{.pass = pass, .seq = 100, .broken = Break::mask_off_by_one};
    CAPTURE(words(params));
    const lab::Report report = report_with(params);
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
    const Trace of_head = trace_with(one);
    CHECK(count(of_head.wrong) + count(of_head.wrong_dk) + count(of_head.wrong_dv) ==
          of_head.result.wrong);
    CHECK(report.table("broken") != nullptr);
    CHECK(contains(report.summary, "dQ, dK and dV"));
  }
}

TEST_CASE("a forward pass without its rescale leaves a wrong log-sum-exp to the backward pass",
          "[flash_attention]") {
  const Params params{.pass = Pass::backward_recompute, .seq = 100, .broken = Break::skip_rescale};
  const lab::Report report = report_with(params);
  CHECK(report.ok());
  const Trace trace = trace_from_json(report.trace);
  CHECK(trace.result.outcome == "wrong numbers");
  CHECK(std::abs(trace.answer.lse - trace.answer.exact_lse) > 1e-3);
  CHECK(sum_of(trace.backward.p) != Approx(1).margin(1e-3));
}

TEST_CASE("of a large backward pass a part runs, and says so", "[flash_attention]") {
  for (const Pass pass : kPasses) {
    const Params large{.pass = pass, .seq = 16384, .heads = 16, .head_dim = HeadDim::d128};
    const Excerpt excerpt = excerpt_of(large);
    CHECK(excerpt.params.heads == 1);
    CHECK(excerpt.params.seq < excerpt_of({.variant = Variant::naive,
                                           .seq = 16384,
                                           .heads = 16,
                                           .head_dim = HeadDim::d128,
                                           .mask = Mask::none})
                                       .params.seq *
                                   2);
    const Plan plan = backward_plan_of(excerpt.params);
    CHECK(backward_flops(pass, plan, task_of(excerpt.params), excerpt.begins) <= kMostFlops);
    CHECK(contains(excerpt.cut, "head 0 of 16"));
  }
}

TEST_CASE("no damage to a trace of a backward pass goes unnoticed", "[flash_attention]") {
  tests::Part part("damage to the backward pass's traces", 2);
  for (const Pass pass : kPasses) {
    if (part.skips()) continue;
    const nlohmann::json trace = report_with({.pass = pass, .seq = 40}).trace;
    const tests::Damages found = tests::damage(trace, trace_again);
    CHECK(found.complaints == std::vector<std::string>());
    CHECK(found.refused > found.tried / 2);
  }
}
