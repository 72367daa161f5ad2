// The cut model against one rank's result in double, and its bytes against what was planned; pipelines against formulas.

#include <algorithm>

#include "kernels/base/lab/knob.hpp"
#include "kernels/systems/parallelism/bench/overlap.hpp"
#include "kernels/systems/parallelism/bench/step.hpp"
#include "kernels/systems/parallelism/gather/gather.hpp"
#include "kernels/systems/parallelism/run/run.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"
#include "tests/kernels/device.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::parallelism;

namespace {

simt::KernelEntry kCutsTable[] = {{"parallelism", kernels_emulated}};

void check_cut(simt::Device& device, Cut cut, int ranks, Schedule schedule, int microbatches,
               simt::ThreadOrder order) {
  CAPTURE(name_of(cut), ranks, name_of(schedule), microbatches);
  const CutRun run = run_cut(device, cut, ranks, schedule, microbatches, 3, order);
  CHECK(run.outputs.ok());
  CHECK(run.inputs.ok());
  CHECK(run.gradients.ok());
  CHECK(run.weights.ok());
  CHECK(run.stuck.empty());
  const ModelShape model = small_model(cut, ranks, schedule);
  const CutPlan plan = plan_of(cut, model, ranks, schedule, microbatches,
                               routed_of(model, make_inputs(model, 3), ranks));
  CHECK(run.memory == plan.memory);
  REQUIRE(run.calls.size() == plan.calls.size());
  for (const CutCall& call : run.calls) {
    CAPTURE(call.name);
    const auto planned = std::find_if(plan.calls.begin(), plan.calls.end(),
                                      [&](const auto& one) { return one.name == call.name; });
    REQUIRE(planned != plan.calls.end());
    CHECK(planned->op == call.op);
    CHECK(planned->backward == call.backward);
    CHECK(planned->bytes == call.bytes);
  }
}

}  // namespace

TEST_CASE("Parallelism: every cut gives one rank's result and sends the planned bytes",
          "[parallelism]") {
  const auto device = tests::device_under_test(kCutsTable);
  tests::Part part("cuts", 3);
  for (const int ranks : {2, 3, 4, 8}) {
    for (const Cut cut : all_of<Cut>()) {
      for (const Schedule schedule : all_of<Schedule>()) {
        if (cut != Cut::pipeline && schedule != Schedule::gpipe) continue;
        if (part.skips()) continue;
        check_cut(*device, cut, ranks, schedule, ranks == 3 ? 5 : 4,
                  ranks == 4 ? simt::ThreadOrder::shuffled : simt::ThreadOrder::ascending);
      }
    }
  }
}

TEST_CASE("Parallelism: a cut that adds in the same order has the same bits", "[parallelism]") {
  const auto device = tests::device_under_test(kCutsTable);
  const Numbers one = run_cut(*device, Cut::data, 1, Schedule::gpipe, 1, 1).z;
  for (const Cut cut : {Cut::data, Cut::fsdp})
    CHECK(run_cut(*device, cut, 4, Schedule::gpipe, 1, 1).z == one);
  CHECK(run_cut(*device, Cut::tensor, 4, Schedule::gpipe, 1, 1).z != one);
}

TEST_CASE("Parallelism: pipelines have the bubbles of their formulas", "[parallelism]") {
  for (int ranks = 2; ranks <= kMostRanks; ++ranks) {
    for (int m = 1; m <= 8; ++m) {
      CAPTURE(ranks, m);
      const double bubble = (ranks - 1.0) / (m + ranks - 1);
      for (const Schedule schedule : all_of<Schedule>()) {
        const std::vector<Slot> slots = pipeline_of(schedule, ranks, m);
        REQUIRE(std::ssize(slots) == 2 * stages_of(schedule, ranks) * m);
        if (schedule != Schedule::interleaved) {
          CHECK(bubble_of(slots, ranks) == Approx(bubble));
        } else if (m % ranks == 0) {
          CHECK(bubble_of(slots, ranks) == Approx((ranks - 1.0) / (2 * m + ranks - 1)));
        }
      }
      const std::vector<Slot> soon = pipeline_of(Schedule::one_f_one_b, ranks, m);
      for (int rank = 0; rank < ranks; ++rank)
        CHECK(in_flight(soon, rank) == std::min(ranks - rank, m));
      CHECK(in_flight(pipeline_of(Schedule::gpipe, ranks, m), 0) == m);
    }
  }
}

TEST_CASE("Parallelism: what a plan says of a large model", "[parallelism]") {
  const auto step = [](Cut cut, int ranks, Link link = Link::nvlink) {
    return planned(cut, ranks, 8192, Schedule::one_f_one_b, 8, link);
  };
  // FSDP sends half as much again as an all-reduce of gradients: three parts instead of two.
  CHECK(step(Cut::fsdp, 8).wire == Approx(1.5 * step(Cut::data, 8).wire));
  CHECK(step(Cut::fsdp, 8).bytes[0] == Approx(step(Cut::data, 8).bytes[0] / 8));
  CHECK(step(Cut::data, 8).memory() > 4 * step(Cut::fsdp, 8).memory());
  CHECK(step(Cut::tensor, 8, Link::pcie).wire == Approx(450.0 / 64 * step(Cut::tensor, 8).wire));
  CHECK(step(Cut::pipeline, 4).idle == Approx(step(Cut::pipeline, 4).compute * 3 / 8));
  for (const Cut cut : all_of<Cut>())
    CHECK(step(cut, 4).compute == Approx(step(cut, 8).compute * 2));
}

TEST_CASE("Parallelism: a run's checks pass, and a broken one says what went wrong",
          "[parallelism]") {
  const auto device = tests::device_under_test(kCutsTable);
  lab::NoProgress progress;
  for (const Break broken : all_of<Break>()) {
    Params params;
    params.broken = broken;
    const lab::Report report = report_of(run_of(params, *device, progress));
    for (const lab::Check& check : report.checks) {
      CAPTURE(name_of(broken), check.id);
      CHECK(check.ok);
    }
    if (broken == Break::wrong_order)
      CHECK(report.summary ==
            "wrong-order: deadlock: rank 0 waits in call 2 for rank 3, which is in call 1.");
  }
}

TEST_CASE("Parallelism: the bench compares all, and times where ranks have GPUs", "[parallelism]") {
  tests::TimedEmulation device(kCutsTable);
  const lab::Report report = bench_report(device, tests::unwatched, BenchSizes::tiny());
  tests::check_holds(report);
  CHECK(tests::table_in(report, "all_reduce").rows.size() == 3 + 1);
  CHECK(tests::table_in(report, "all_to_all").rows.size() == 1);
  CHECK(tests::table_in(report, "all_gather").rows.size() == 2 * 2);
  CHECK(tests::table_in(report, "reduce_scatter").rows.size() == 1);
  CHECK(tests::table_in(report, "overlap").rows.size() == 5);
  CHECK(tests::table_in(report, "planned").rows.size() == 7);
  REQUIRE(report.measurement("gpus") != nullptr);
  CHECK(report.measurement("gpus")->value == 2);
  CHECK(report.ok());
  const auto alone = simt::make_emulated_device(kCutsTable);
  const lab::Report untimed = bench_report(*alone, tests::unwatched, BenchSizes::tiny());
  CHECK(untimed.ok());
  CHECK(untimed.tables.empty());
  CHECK(tests::contains(untimed.summary, "no second one"));
}

TEST_CASE("Parallelism: a step's products and collectives give one rank's numbers",
          "[parallelism]") {
  const auto device = tests::device_under_test(kCutsTable);
  tests::Part part("steps", 3);
  for (const int ranks : {2, 4, 8}) {
    for (const Cut cut : all_of<Cut>()) {
      ModelShape model{.layers = 2, .sequences = 8, .length = 8, .heads = 8, .dim = 4, .inner = 64};
      if (cut == Cut::pipeline) model.layers = ranks;
      if (cut == Cut::expert) model.experts = 8;
      if (!Step::has(cut, model, ranks, 4) || part.skips()) continue;
      CAPTURE(name_of(cut), ranks);
      const auto step =
          Step::make(*device, cut, model, ranks,
                     {.blocks = 2, .threads = 64, .microbatches = 4, .numbers = true});
      step->warm();
      CHECK(step->compared().ok());
      CHECK(step->compared().ok());  // what an earlier step has left does no harm
    }
  }
  CHECK_FALSE(Step::has(Cut::tensor, large_model(Cut::tensor, 3, 8192), 3, 4));
}

TEST_CASE("Parallelism: tokens that come while others are multiplied", "[parallelism]") {
  const auto device = tests::device_under_test(kCutsTable);
  NcclRanks nccl;
  for (const int ranks : {2, 3, 8}) {
    Overlap both(*device, ranks, {.tokens = 50 * ranks, .width = 32, .inner = 17 * ranks},
                 BenchSizes::tiny(), nccl);
    CHECK(both.shape().tokens == 48 * ranks);
    CHECK(both.columns() == 16);
    both.warm();
    for (const Overlap::Way& way : both.ways()) {
      CAPTURE(way.name, way.chunks, ranks);
      CHECK(both.compared(way).ok());
    }
  }
}

TEST_CASE("Parallelism: a bench's call without one of its ranks ends in a sentence",
          "[parallelism]") {
  const auto device = tests::device_under_test(kCutsTable);
  Team team(*device, 4);
  const int call = team.add({.op = Op::all_reduce, .ranks = 4, .units = 16});
  for (int rank = 0; rank < 4; ++rank)
    team.join(call, rank, team.unwritten<float>(rank, 64), team.unwritten<float>(rank, 64));
  team.ranks().run([&](int rank) {
    if (rank != 2) team.make(call, rank);
  });
  CHECK(tests::contains(tests::error_of([&] { team.require_met(); }), "waited in vain for rank"));
}

TEST_CASE("Parallelism: a product whose tokens never come ends, and says whose", "[parallelism]") {
  const auto device = tests::device_under_test(kCutsTable);
  Team team(*device, 2);
  if (!team.kernels().multiplies_coming(*device)) return;  // a GPU other than Hopper's
  const auto numbers = [&](std::size_t count) {
    return team.uploaded(0, std::vector<std::uint16_t>(count, std::uint16_t{0x3F80}));
  };
  const ComingArrays arrays{numbers(256 * 16), numbers(16 * 16), numbers(256 * 16),
                            team.uploaded(0, std::vector<unsigned>(2, 0))};
  team.ranks().run([&](int rank) {
    if (rank == 0)
      team.kernels().multiply_coming(team.ranks(), 0,
                                     {.m = 256, .n = 16, .k = 16, .rows = 128, .call = 3}, arrays);
  });
  CHECK(tests::error_of([&] { team.require_met(); }) ==
        "rank 0 waited in vain for rank 1, in call 4");
}
