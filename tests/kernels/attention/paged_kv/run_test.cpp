// Whole runs of the lesson: checks, the stale page, the trace against what it is a record of; and the bench on tiny caches.

#include "kernels/attention/paged_kv/run/run.hpp"

#include "kernels/attention/paged_kv/bench/bench.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"
#include "tests/kernels/device.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::paged_kv;
using tests::contains;

namespace {

simt::KernelEntry kTable[] = {{"paged_kv", kernels_emulated}};

lab::Report run(const lab::Settings& settings) {
  const auto device = tests::device_under_test(kTable);
  lab::NoProgress nobody;
  return lesson().run(settings, *device, nobody);
}

}  // namespace

TEST_CASE("Paged cache: every size of a page, format and prefix passes its checks", "[paged_kv]") {
  for (const char* size : {"1", "4", "16", "64", "256"}) {
    CHECK(run({{"page_size", size}}).ok());
    CHECK(run({{"page_size", size}, {"prefix", std::int64_t{33}}}).ok());
  }
  for (const char* type : {"fp8", "int8", "int4"}) CHECK(run({{"kv_dtype", type}}).ok());
}

TEST_CASE("Paged cache: a stale page is named and makes numbers wrong", "[paged_kv]") {
  for (const char* size : {"1", "16", "64"}) {
    const lab::Report report = run({{"break", "stale-page"}, {"page_size", size}});
    CHECK(report.ok());
    const Trace trace = trace_from_json(report.trace);
    CHECK(trace.result.wrong > 0);
    CHECK(contains(report.summary, "wrong"));
    int foreign = 0;
    for (const GatherTrace& one : trace.gathers) foreign += one.owned ? 0 : 1;
    CHECK(foreign == 1);
  }
}

TEST_CASE("Paged cache: each page of a table is read once, whoever shares it", "[paged_kv]") {
  for (const std::int64_t prefix : {0, 48}) {
    const Trace trace = trace_from_json(run({{"prefix", prefix}}).trace);
    CHECK(trace.requests.size() == trace.serving.back().running.size());
    int shared = 0;
    for (std::size_t row = 0; row < trace.requests.size(); ++row) {
      std::vector<int> read(trace.requests[row].pages.size());
      for (const ItemTrace& item : trace.items) {
        const auto at = static_cast<int>(row);
        if (at < item.row || at >= item.row + item.rows) continue;
        shared += item.rows > 1 ? item.pages : 0;
        for (int page = item.first_page; page < item.first_page + item.pages; ++page) {
          ++read[static_cast<std::size_t>(page)];
        }
      }
      CHECK(read == std::vector<int>(read.size(), 1));
    }
    CHECK((shared > 0) == (prefix > 0));
    int tokens = 0;
    for (const GatherTrace& one : trace.gathers) tokens += one.tokens;
    CHECK(tokens == trace.items[static_cast<std::size_t>(trace.traced_item)].tokens);
  }
}

TEST_CASE("Paged cache: what is too large is explained in part", "[paged_kv]") {
  const lab::Report report = run({{"context", std::int64_t{8192}},
                                  {"batch", std::int64_t{64}},
                                  {"requests", std::int64_t{100}}});
  CHECK(report.ok());
  CHECK(contains(report.summary, "explains a part"));
}

TEST_CASE("paged-kv's bench compares, times and counts all that it has", "[paged_kv]") {
  tests::TimedEmulation device(kTable);
  BenchSizes sizes = BenchSizes::tiny();
  const lab::Report report = bench_report(device, tests::unwatched, sizes);
  tests::check_holds(report);
  CHECK(tests::table_in(report, "page_sizes").rows.size() == 2);
  const lab::Table& prefixes = tests::table_in(report, "prefixes");
  REQUIRE(prefixes.rows.size() == 3);
  // Two pages of three requests, of 16 tokens of K and V for two heads: held three times, or once.
  const double page = 16 * 2 * 128 * 2 * 2 / 1e6;
  CHECK(tests::number_in(prefixes, 0, "cache") == Approx(3 * 3 * page));
  CHECK(tests::number_in(prefixes, 1, "cache") == Approx((3 * 1 + 2) * page));
  CHECK(tests::number_in(prefixes, 2, "cache") == Approx((3 * 1 + 2) * page));
  sizes.quick = true;
  tests::check_quick(bench_report(device, tests::unwatched, sizes), {"prefixes"});
}
