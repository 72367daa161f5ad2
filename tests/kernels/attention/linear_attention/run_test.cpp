// Whole runs of the lesson: checks, what each rule forgets or overwrites, mistakes; and the bench on few tokens.

#include "kernels/attention/linear_attention/run/run.hpp"

#include <cmath>

#include "kernels/attention/linear_attention/bench/bench.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"
#include "tests/kernels/device.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::linear_attention;
using tests::contains;

namespace {

simt::KernelEntry kLessonTable[] = {{"linear-attention", kernels_emulated}};

lab::Report run_with(const lab::Settings& settings) {
  const auto device = tests::device_under_test(kLessonTable);
  lab::NoProgress nobody;
  return lesson().run(settings, *device, nobody);
}
Trace trace_with(const lab::Settings& settings) {
  return trace_from_json(run_with(settings).trace);
}
std::string failed_of(const lab::Report& report) {
  std::string all;
  for (const lab::Check& check : report.checks) {
    if (!check.ok) all += check.id + " ";
  }
  return all;
}

}  // namespace

TEST_CASE("Linear attention: runs of every feature, rule, head and chunk pass their checks",
          "[linear_attention]") {
  for (const char* feature : {"elu", "relu", "random", "none"}) {
    for (const char* rule : {"sum", "gate", "delta", "gated-delta"}) {
      INFO(feature << " " << rule);
      CHECK(failed_of(run_with({{"feature", feature}, {"rule", rule}})).empty());
    }
  }
  for (const char* dim : {"32", "64"}) {
    INFO(dim);
    CHECK(failed_of(run_with({{"dim", dim}, {"rule", "gated-delta"}, {"chunk", "32"}})).empty());
    CHECK(failed_of(run_with({{"dim", dim}, {"context", std::int64_t{17}}})).empty());
  }
  CHECK(failed_of(run_with({{"rule", "gate"},
                            {"gate", 0.5},
                            {"context", std::int64_t{96}},
                            {"repeat", std::int64_t{1}}}))
            .empty());
}

TEST_CASE("Linear attention: by chunks the outputs are those of the tokens one by one",
          "[linear_attention]") {
  for (const char* rule : {"sum", "gate", "delta", "gated-delta"}) {
    const Trace trace = trace_with({{"rule", rule}, {"context", std::int64_t{43}}});
    for (std::size_t i = 0; i < trace.out.size(); ++i)
      CHECK(trace.chunk_out[i] == Approx(trace.out[i]).margin(0.06 * std::abs(trace.out[i]) + 0.3));
    // A chunk begins with what the token before it left.
    for (int number = 1; number < trace.chunks(); ++number) {
      const int last = number * trace.chunk - 1;
      for (int i = 0; i < kShown * kShown; ++i) {
        const auto to = static_cast<std::size_t>(number * kShown * kShown + i);
        const auto from = static_cast<std::size_t>(last * kShown * kShown + i);
        CHECK(trace.handed[to] == Approx(trace.states[from]).margin(0.2));
      }
    }
    // No product is above the diagonal.
    for (int t = 0; t < trace.tokens; ++t) {
      for (int j = t % trace.chunk + 1; j < trace.chunk; ++j)
        CHECK(trace.products[static_cast<std::size_t>(t * trace.chunk + j)] == 0);
    }
  }
}

TEST_CASE("Linear attention: each rule keeps, forgets or overwrites as it says",
          "[linear_attention]") {
  const lab::Settings plain = {{"feature", "none"}, {"repeat", std::int64_t{4}}};
  const auto with = [&](const char* rule) {
    lab::Settings settings = plain;
    settings["rule"] = rule;
    return trace_with(settings);
  };
  const Trace sum = with("sum"), gate = with("gate"), delta = with("delta"),
              both = with("gated-delta");
  const int last = sum.tokens - 1, newest = sum.key_of(last), oldest = sum.key_of(last - 3);
  // The delta rule at full strength leaves the newest value alone for its key, whatever came before.
  CHECK(delta.off(last, newest) < 0.02);
  CHECK(both.off(last, newest) < 0.02);
  CHECK(sum.off(last, newest) > 1);
  CHECK(gate.off(last, newest) > delta.off(last, newest));
  // Gates forget: the state stays smaller than the sum of all.
  const auto size = [&](const Trace& trace, int token) {
    double squares = 0;
    for (int i = 0; i < kShown * kShown; ++i) {
      const auto s =
          static_cast<double>(trace.states[static_cast<std::size_t>(token * kShown * kShown + i)]);
      squares += s * s;
    }
    return std::sqrt(squares);
  };
  CHECK(size(gate, last) < 0.8 * size(sum, last));
  CHECK(both.strength(last, oldest) < delta.strength(last, oldest));
  // One key, written in full: each value replaces the one before it.
  lab::Settings one = plain;
  one["rule"] = "delta";
  one["repeat"] = std::int64_t{1};
  const Trace same = trace_with(one);
  for (int t = 0; t < same.tokens; ++t) CHECK(same.off(t, 0) < 0.02);
}

TEST_CASE("Linear attention: both orders of multiplication answer alike, and softmax otherwise",
          "[linear_attention]") {
  const Trace trace = trace_with({{"feature", "elu"}});
  double apart = 0;
  for (std::size_t i = 0; i < kShown; ++i) {
    CHECK(trace.by_weights[i] == Approx(trace.by_state[i]).margin(1e-4));
    apart =
        std::max(apart, static_cast<double>(std::abs(trace.by_weights[i] - trace.by_softmax[i])));
  }
  CHECK(apart > 0.1);
  double exact = 0, approximate = 0;
  for (const float one : trace.exact) exact += static_cast<double>(one);
  for (const float one : trace.approximate) approximate += static_cast<double>(one);
  CHECK(exact == Approx(1).margin(1e-4));
  CHECK(approximate == Approx(1).margin(1e-4));
}

TEST_CASE("Linear attention: mistakes are made by the kernel on show, and found",
          "[linear_attention]") {
  const auto broken = [](const char* what, lab::Settings settings) {
    settings["break"] = what;
    const lab::Report report = run_with(settings);
    INFO(what << ": " << report.summary);
    CHECK(failed_of(report).empty());
    return trace_from_json(report.trace);
  };
  // The first chunk hands nothing on yet: it is right.
  const auto first_wrong = [](const Trace& trace) {
    int token = 0;
    while (token < trace.tokens && trace.wrong[static_cast<std::size_t>(token)] == 0) ++token;
    return token;
  };
  const Trace undecayed = broken("no-decay", {{"rule", "gate"}, {"feature", "elu"}});
  CHECK(undecayed.result.wrong > 100);
  CHECK(first_wrong(undecayed) >=
        2 * undecayed.chunk);  // the second begins with a state of one chunk
  const Trace stale = broken("stale-state", {});
  CHECK(stale.result.wrong > 100);
  CHECK(first_wrong(stale) == stale.chunk);
  const Trace unmasked = broken("unmasked-chunk", {});
  CHECK(unmasked.result.wrong > 100);
  CHECK(first_wrong(unmasked) == 0);
  CHECK(unmasked.wrong[15] == 0);  // the last token of a chunk has none behind it
  CHECK(unmasked.products[15] != 0);
  // Without gates there is nothing to leave out.
  CHECK(broken("no-decay", {}).result.wrong == 0);
}

TEST_CASE("Linear attention: a cache grows, a state does not", "[linear_attention]") {
  CHECK(state_bytes(128) == 65536);
  CHECK(cache_bytes(128, 128) == state_bytes(128));
  CHECK(cache_bytes(128, 1 << 16) == 512 * state_bytes(128));
  CHECK(softmax_flops(128, 65536) == 64 * softmax_flops(128, 1024));
  CHECK(state_flops(128) == softmax_flops(128, 128));
}

TEST_CASE("Linear attention: the bench compares and times all that it has", "[linear_attention]") {
  tests::TimedEmulation device(kLessonTable);
  const lab::Report report = bench_report(device, tests::unwatched, BenchSizes::tiny());
  tests::check_holds(report);
  CHECK(tests::table_in(report, "timed_lengths").rows.size() == 3);
  CHECK(tests::table_in(report, "chunk_sizes").rows.size() == 3);
  // Beside flash-3, on the same numbers.
  simt::KernelEntry both[] = {kLessonTable[0],
                              {"flash-attention-3", flash_attention_3::kernels_emulated}};
  tests::TimedEmulation hopper(both);
  BenchSizes beside = BenchSizes::tiny();
  beside.heads = 1;
  beside.dim = 64;
  beside.chunks = {};
  beside.flash = true;
  const lab::Report other = bench_report(hopper, tests::unwatched, beside);
  tests::check_holds(other);
  CHECK(contains(other.summary, "as fast as flash-3"));
  CHECK(tests::number_in(tests::table_in(other, "timed_lengths"), 0, "times") == Approx(1));
  BenchSizes quick = BenchSizes::tiny();
  quick.quick = true;
  tests::check_quick(bench_report(device, tests::unwatched, quick), {});
}
