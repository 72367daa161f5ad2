// Whole runs of the lesson: checks, mistakes, what tiles and choices come to; and the formulas.

#include "kernels/attention/sparse_attention/run/run.hpp"

#include "kernels/attention/sparse_attention/cost.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/device.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::sparse_attention;
using tests::contains;

namespace {

simt::KernelEntry kRunTable[] = {{"sparse_attention", kernels_emulated}};

lab::Report run_with(const lab::Settings& settings) {
  const auto device = tests::device_under_test(kRunTable);
  lab::NoProgress nobody;
  return lesson().run(settings, *device, nobody);
}
Trace trace_with(const lab::Settings& settings) {
  return trace_from_json(run_with(settings).trace);
}

}  // namespace

TEST_CASE("Sparse attention: runs of every method pass their checks", "[sparse_attention]") {
  for (const char* method : {"causal", "sliding-window", "strided", "block-sparse", "documents",
                             "prefix", "own", "dsa"}) {
    for (const std::int64_t context : {29, 64}) {
      INFO(method << " " << context);
      const lab::Report report = run_with({{"method", method}, {"context", context}});
      for (const lab::Check& check : report.checks) {
        INFO(check.id << " " << check.max_error << " of " << check.tolerance);
        CHECK(check.ok);
      }
    }
  }
}

TEST_CASE("Sparse attention: kinds are those that the kernel visited, and larger tiles keep more",
          "[sparse_attention]") {
  for (const char* method : {"sliding-window", "strided", "block-sparse", "documents", "own"}) {
    INFO(method);
    const Trace trace = trace_with({{"method", method}});
    CHECK(trace.visited == trace.kinds);
    for (std::size_t i = 1; i < trace.sizes.size(); ++i)
      CHECK(trace.sizes[i].computed >= trace.sizes[i - 1].computed);
  }
  const Trace blind = trace_with({{"found", "nothing"}});
  CHECK(std::count(blind.visited.begin(), blind.visited.end(), 1) == 64);
  CHECK(blind.result.wrong == 0);
  CHECK(blind.result.outcome == "64 tiles are computed where 26 would do");
}

TEST_CASE("Sparse attention: mistakes are made by the kernels, and found", "[sparse_attention]") {
  const auto broken = [](lab::Settings settings) {
    const lab::Report report = run_with(settings);
    CHECK(report.ok());
    return trace_from_json(report.trace);
  };
  for (const char* what : {"scattered-keys", "stale-top-k", "topk-ties"}) {
    INFO(what);
    CHECK(broken({{"method", "dsa"}, {"break", what}}).result.wrong > 20);
  }
  CHECK(broken({{"method", "strided"}, {"found", "corners"}, {"window", std::int64_t{6}}})
            .result.wrong > 20);
  CHECK(broken({{"method", "causal"}, {"found", "corners"}}).result.wrong == 0);
  const Trace sound = trace_with({{"method", "dsa"}});
  CHECK(broken({{"method", "dsa"}, {"break", "scattered-keys"}}).rows == sound.chosen);
  CHECK(broken({{"method", "dsa"}, {"break", "stale-top-k"}}).chosen != sound.chosen);
  CHECK(sound.rows != sound.chosen);
}

TEST_CASE("Sparse attention: the kept set grows to the choice, and has most of the weight",
          "[sparse_attention]") {
  const Trace trace = trace_with({{"method", "dsa"}});
  const auto k = static_cast<std::ptrdiff_t>(trace.top_k);
  CHECK(std::vector<int>(trace.best.end() - k, trace.best.end()) == trace.chosen);
  CHECK(trace.mass() > 0.6);
  CHECK(trace.mass() < 1);
  double sum = 0;
  for (const float one : trace.sparse) sum += static_cast<double>(one);
  CHECK(sum == Approx(1));
  CHECK(trace_with({{"method", "dsa"}, {"top_k", std::int64_t{64}}}).mass() == Approx(1));
}

TEST_CASE("Sparse attention: the ledger has the published shape's numbers", "[sparse_attention]") {
  CHECK(break_even() == Approx(2176));
  const Cost at_end = flops_at(131072), bytes = bytes_at(131072);
  CHECK(at_end.index / at_end.attention == Approx(3.76).margin(0.01));
  CHECK(at_end.times() == Approx(13.4).margin(0.1));
  CHECK(bytes.times() == Approx(4.6).margin(0.05));
  CHECK(flops_at(1024).times() < 1);
}
