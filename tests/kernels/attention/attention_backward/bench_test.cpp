// The bench on tiny problems, under an emulation that pretends to a clock.

#include "kernels/attention/attention_backward/bench/bench.hpp"

#include "kernels/attention/attention_backward/bench/problem.hpp"
#include "tests/kernels/attention/attention_backward/testing.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"

using namespace tilestep;
using namespace tilestep::attention_backward;
using tests::contains;

TEST_CASE("the backward pass's bench compares and times both of its rungs",
          "[attention_backward]") {
  tests::TimedEmulation device(kKernels);
  device.pretend().memory_bytes = std::size_t{1} << 34;
  const lab::Report report = bench_report(device, tests::unwatched, BenchSizes::tiny());
  tests::check_holds(report);
  CHECK(report.checks.size() == count_of<BackwardRung>());
  CHECK(tests::table_in(report, "backward").rows.size() == 2 * 2 * count_of<BackwardRung>());
  CHECK(tests::table_in(report, "backward_peers").rows.empty());
  // Five products for the forward pass's two, in 1 ms.
  REQUIRE(report.measurement("backward_rate", "backward-hopper 128 full 136") != nullptr);
  CHECK(report.measurement("backward_rate", "backward-hopper 128 full 136")->value ==
        Approx(10.0 * 136 * 136 * 128 / 1e9));
  CHECK(contains(report.summary, "backward-hopper 128 causal 136"));
}

TEST_CASE("the backward pass's quick bench has one length", "[attention_backward]") {
  tests::TimedEmulation device(kKernels);
  device.pretend().memory_bytes = std::size_t{1} << 34;
  BenchSizes sizes = BenchSizes::tiny();
  sizes.head_dims = {64};
  sizes.quick = true;
  const lab::Report report = bench_report(device, tests::unwatched, sizes);
  tests::check_quick(report, {});
  CHECK(BenchSizes::of_quick().lengths.size() == 1);
}
