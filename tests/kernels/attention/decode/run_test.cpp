// Whole runs of the lesson: checks, breaks, and the trace against what it is a record of.

#include "kernels/attention/decode/run/run.hpp"

#include "tests/catch.hpp"
#include "tests/kernels/attention/decode/testing.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::decode;
using tests::contains;

namespace {

lab::Report run(const lab::Settings& settings) {
  const auto device = device_under_test();
  lab::NoProgress nobody;
  return lesson().run(settings, *device, nobody);
}

}  // namespace

TEST_CASE("Decode: every scheme, format and way to split passes its checks", "[decode]") {
  std::vector<lab::Settings> settings;
  for (const char* scheme : {"mha", "gqa", "mqa", "mla"}) {
    for (const std::int64_t splits : {0, 1, 2, 7}) {
      settings.push_back({{"scheme", scheme}, {"splits", splits}});
    }
  }
  for (const char* type : {"bf16", "fp8", "int8", "int4"}) {
    for (const char* scales : {"token", "channel"}) {
      settings.push_back({{"kv_dtype", type}, {"scales", scales}});
    }
  }
  tests::Part part("decode runs", 2);
  for (const lab::Settings& one : settings) {
    if (part.skips()) continue;
    INFO(words(knob_table().params(one).of()));
    CHECK(run(one).ok());
  }
}

TEST_CASE("Decode: the breaks do what they say", "[decode]") {
  const Trace repeated = trace_from_json(run({{"break", "repeat-kv"}}).trace);
  CHECK(repeated.result.wrong == 0);
  CHECK(repeated.result.more_bytes > 0);
  const Trace unmerged = trace_from_json(run({{"break", "unmerged-splits"}}).trace);
  CHECK(unmerged.result.wrong > unmerged.result.elements / 2);
  CHECK(unmerged.result.more_bytes == 0);
}

TEST_CASE("Decode: the trace is a record of one launch", "[decode]") {
  for (const std::int64_t splits : {0, 1, 2}) {
    const Trace trace = trace_from_json(run({{"splits", splits}}).trace);
    CHECK(trace.tokens.size() == 4);
    // Each tile of the chosen head comes once, and their tokens are the request's.
    int tokens = 0;
    for (const StepTrace& step : trace.steps) tokens += step.tokens;
    CHECK(tokens == trace.tokens[static_cast<std::size_t>(trace.request)]);
    // The parts, weighed and added, are the answer.
    double l = 0, o = 0;
    for (const PartTrace& part : trace.parts) {
      l += static_cast<double>(part.weight) * static_cast<double>(part.l);
      o += static_cast<double>(part.weight) * static_cast<double>(part.o);
    }
    CHECK(static_cast<double>(trace.o) == Approx(o / l).margin(0.01));
    CHECK(trace.merged == (trace.parts.size() > 1));
    CHECK(trace.length() == trace.rounds() + (trace.merged ? 1 : 0) + 1);
    // No block takes two tiles in one round.
    for (int round = 1; round <= trace.rounds(); ++round) {
      std::vector<int> busy(static_cast<std::size_t>(trace.blocks));
      for (const ItemTrace& item : trace.items) {
        if (round > item.first_round && round <= item.first_round + item.tiles) {
          ++busy[static_cast<std::size_t>(item.block)];
        }
      }
      for (const int tiles : busy) CHECK(tiles <= 1);
    }
  }
}

TEST_CASE("Decode: how many blocks are at work follows from tiles, or from clocks", "[decode]") {
  Trace trace;
  trace.blocks = 2;
  trace.items.resize(2);
  trace.items[0].tiles = 4;
  trace.items[0].begin = 100;
  trace.items[0].end = 1000;
  trace.items[1].tiles = 2;
  trace.items[1].begin = 0;
  trace.items[1].end = 300;
  trace.clock_unit = "items";
  CHECK(trace.launch_end() == 4);
  CHECK(trace.mean_at_work() == 1.5);
  trace.clock_unit = "ns";
  CHECK(trace.launch_end() == 1000);
  CHECK(trace.mean_at_work() == 1.2);
  trace.items.clear();
  CHECK(trace.mean_at_work() == 0);
}

TEST_CASE("Decode: what is too large is explained in part, and the formulas are of the whole",
          "[decode]") {
  const lab::Report report = run({{"heads", std::int64_t{32}},
                                  {"kv_heads", std::int64_t{4}},
                                  {"context", std::int64_t{8192}},
                                  {"batch", std::int64_t{64}}});
  CHECK(report.ok());
  CHECK(contains(report.summary, "explains a part"));
  CHECK(report.measurement("token_bytes")->value == 4 * 2 * 32 * 2);
  CHECK(report.measurement("intensity")->value == 8);
}
