#include "kernels/memory/coalescing/lesson.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string>

#include "kernels/base/simt/counters.hpp"
#include "kernels/memory/coalescing/reference.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"
#include "tests/traces.hpp"

using namespace tilestep;
using namespace tilestep::coalescing;
using namespace tilestep::tests;

namespace {

const Runs run(lesson(), knob_table(), trace_from_json);

double sectors(const lab::Report& report) {
  return report.measurement("sectors_per_request")->value;
}

/// Touched sectors and lines and bytes of all pattern requests of the traced blocks, byte by byte.
struct Count {
  double requests = 0, sectors = 0, lines = 0, bytes = 0;
};
Count count_by_bytes(const Params& p) {
  Count count;
  IndexWalk walk(shape_of(p));
  const std::int64_t threads = std::min<std::int64_t>(p.elements, 8 * 256);
  for (std::int64_t first = 0; first < threads; first += 32) {
    std::set<std::int64_t> bytes, touched, lines;
    for (std::int64_t i = first; i < std::min(first + 32, threads); ++i) {
      const std::int64_t start = walk.next() * p.element_bytes();
      for (std::int64_t b = start; b < start + p.element_bytes(); ++b) {
        bytes.insert(b);
        touched.insert(b / 32);
        lines.insert(b / 128);
      }
    }
    count.requests += 1;
    count.sectors += static_cast<double>(touched.size());
    count.lines += static_cast<double>(lines.size());
    count.bytes += static_cast<double>(bytes.size());
  }
  return count;
}

}  // namespace

TEST_CASE("the sectors that the lesson promises", "[coalescing]") {
  const std::map<int, double> by_stride = {{1, 4}, {2, 8}, {4, 16}, {8, 32}, {16, 32}, {32, 32}};
  for (const auto& [stride, expected] : by_stride) {
    const lab::Report report = run({.stride = stride});
    INFO("stride " << stride);
    REQUIRE(sectors(report) == expected);
    REQUIRE(report.measurement("sectors_per_request")->provenance == lab::Provenance::traced);
  }
  REQUIRE(sectors(run({.pattern = Pattern::sequential, .element_size = ElementSize::bytes_16})) ==
          16);
  const std::map<Pattern, double> by_pattern = {
      {Pattern::offset, 5},     {Pattern::broadcast, 1},      {Pattern::reversed, 4},
      {Pattern::soa, 4},        {Pattern::aos, 16},           {Pattern::permuted_warp, 4},
      {Pattern::matrix_row, 4}, {Pattern::matrix_column, 32}, {Pattern::custom, 4}};
  for (const auto& [pattern, expected] : by_pattern) {
    INFO(name_of(pattern));
    REQUIRE(sectors(run({.pattern = pattern})) == expected);
  }
}

TEST_CASE("every pattern, size and direction against a count of its own", "[coalescing]") {
  for (const Pattern pattern : kPatterns) {
    for (const ElementSize size : kElementSizes) {
      for (const Access access : {Access::load, Access::store}) {
        // 1024: as the window starts; the others leave partial warps and blocks, or more blocks
        // than are traced.
        for (const std::int64_t elements : {1024, 33, 301, 2500}) {
          if (kFewShapes && elements > 301) continue;
          const Params p{.pattern = pattern,
                         .stride = 3,
                         .offset = 7,
                         .element_size = size,
                         .access = access,
                         .fields = 5,
                         .elements = elements};
          INFO(statement(p) << ", " << p.element_bytes() << " bytes, " << elements);
          const lab::Report report = run(p);
          REQUIRE(failed_checks(report) == "");
          const Count count = count_by_bytes(p);
          REQUIRE(sectors(report) == Approx(count.sectors / count.requests).epsilon(1e-12));
          REQUIRE(report.measurement("lines_per_request")->value ==
                  Approx(count.lines / count.requests).epsilon(1e-12));
          REQUIRE(report.measurement("bytes_used")->value == count.bytes);
          REQUIRE(report.measurement("bytes_fetched")->value == count.sectors * 32);
        }
      }
    }
  }
}

TEST_CASE("settings of strided, offset and aos against a count of their own", "[coalescing]") {
  const auto agree = [&](const Params& p) {
    INFO(statement(p) << ", " << p.element_bytes() << " bytes");
    const lab::Report report = run(p);
    REQUIRE(failed_checks(report) == "");
    const Count count = count_by_bytes(p);
    REQUIRE(sectors(report) == Approx(count.sectors / count.requests).epsilon(1e-12));
  };
  for (const ElementSize size : {ElementSize::bytes_1, ElementSize::bytes_8}) {
    for (const int stride : {1, 2, 5, 17, 31, 64}) {
      agree({.stride = stride, .element_size = size});
    }
    for (const int offset : {0, 2, 13, 31}) {
      agree({.pattern = Pattern::offset, .offset = offset, .element_size = size});
    }
    for (int fields = 2; fields <= 8; ++fields) {
      agree({.pattern = Pattern::aos, .element_size = size, .fields = fields});
    }
  }
  for (const std::int64_t seed : {0, 2, 2147483647}) {
    agree({.pattern = Pattern::permuted, .seed = seed});
  }
}

TEST_CASE("the order of threads changes nothing", "[coalescing]") {
  for (const Access access : {Access::load, Access::store}) {
    const Params p{.pattern = Pattern::permuted, .access = access, .elements = 700};
    const nlohmann::json expected = run(p).trace;
    in_other_orders(1, [&](simt::Device& device) {
      const lab::Report report = run(p, device);
      REQUIRE(failed_checks(report) == "");
      REQUIRE(report.trace == expected);
    });
  }
}

TEST_CASE("the trace holds both requests of every traced warp", "[coalescing]") {
  const Trace trace = run.trace({.elements = 2500});  // 10 blocks, of which 8 are traced
  REQUIRE(trace.warps == 79);
  REQUIRE(trace.traced_warps == 64);
  REQUIRE(trace.requests.size() == 128);
  for (std::size_t i = 0; i < trace.requests.size(); ++i) {
    const WarpRequest& request = trace.requests[i];
    REQUIRE(request.block == static_cast<int>(i / 16));
    REQUIRE(request.warp == static_cast<int>(i / 2 % 8));
    REQUIRE((request.site == Site::pattern) == (i % 2 == 0));
    REQUIRE((request.kind == Access::load) == (i % 2 == 0));
  }
  const Trace stores = run.trace({.access = Access::store, .elements = 2500});
  REQUIRE(stores.requests[0].site == Site::plain);
  REQUIRE(stores.requests[0].kind == Access::load);
  REQUIRE(stores.requests[1].site == Site::pattern);
  REQUIRE(stores.requests[1].kind == Access::store);
  REQUIRE(stores.requests.size() == 128);

  // The last warp has 8 lanes.
  const Trace partial = run.trace({.access = Access::store, .elements = 40});
  REQUIRE(partial.requests.size() == 4);
  REQUIRE(std::popcount(partial.requests.back().active_lanes) == 8);
  REQUIRE(partial.requests.back().byte_offset[8] == -1);
}

TEST_CASE("sectors of a request know their bytes and lanes", "[coalescing]") {
  WarpRequest request;
  request.byte_offset.fill(-1);
  request.active_lanes = 0b111;
  request.byte_offset[0] = 40;
  request.byte_offset[1] = 32;
  request.byte_offset[2] = 128;
  const std::vector<Sector> sectors = touched_sectors(request, 4);
  REQUIRE(sectors.size() == 2);
  REQUIRE(sectors[0] == Sector{1, 0xF0F, 0b011});
  REQUIRE(sectors[1] == Sector{4, 0xF, 0b100});
  const RequestStats stats = request_stats(request, 4);
  REQUIRE(stats.lanes == 3);
  REQUIRE(stats.sectors == 2);
  REQUIRE(stats.lines == 2);
  REQUIRE(stats.bytes_used == 12);
  REQUIRE(stats.bytes_fetched == 64);
  REQUIRE(stats.best_sectors == 1);
  REQUIRE(stats.efficiency() == 18.75);
}

TEST_CASE("the numbered source lines are those of the statement", "[coalescing]") {
  const std::map<Pattern, std::string> index = {
      {Pattern::sequential, "[i]"},
      {Pattern::strided, "[i * s.stride]"},
      {Pattern::offset, "[i + s.offset]"},
      {Pattern::reversed, "[s.elements - 1 - i]"},
      {Pattern::permuted_warp, "[permuted_in_warp(i, s)]"},
      {Pattern::permuted, "[permuted(i, s)]"},
      {Pattern::broadcast, "[i / 32]"},
      {Pattern::aos, "[i * s.fields + 1]"},
      {Pattern::soa, "[1 * s.pitch + i]"},
      {Pattern::matrix_row, "[row * s.columns + column]"},
      {Pattern::matrix_column, "[row * s.columns + column]"},
      {Pattern::custom, "[i / 32 * 256 + s.lane_element[i % 32]]"}};
  std::set<int> lines;
  for (const Pattern pattern : kPatterns) {
    const SourceLines load = source_lines(pattern, Access::load);
    const SourceLines store = source_lines(pattern, Access::store);
    const int both[] = {load.access, store.access};
    check_lines(kSourcePath, both,
                {"out[i] = in" + index.at(pattern) + ";", "out" + index.at(pattern) + " = in[i];"});
    REQUIRE(load.access < store.access);
    if (pattern == Pattern::permuted_warp) {
      REQUIRE(contains(source_line(kSourcePath, load.index),
                       "lane * s.lane_multiplier + s.lane_addend"));
    } else if (pattern == Pattern::permuted) {
      REQUIRE(contains(source_line(kSourcePath, load.index), "x * s.multiplier + round"));
    } else {
      REQUIRE(load.index == load.access);
    }
    lines.insert(load.access);
    lines.insert(store.access);
  }
  REQUIRE(lines.size() == 2 * kPatterns.size());
}

TEST_CASE("lanes that are sent where one likes", "[coalescing]") {
  // Lane 0 leaves the first sector for one far away, lane 9 joins lane 1.
  const lab::Report report =
      run({.pattern = Pattern::custom, .elements = 70, .lanes = "0:255,9:1"});
  REQUIRE(failed_checks(report) == "");
  REQUIRE(std::abs(sectors(report) - (5 + 5 + 2) / 3.0) < 1e-9);
  const Trace trace = trace_from_json(report.trace);
  const WarpRequest& second = trace.requests.at(2);
  REQUIRE(second.byte_offset[0] == (256 + 255) * 4);
  REQUIRE(second.byte_offset[9] == (256 + 1) * 4);
  REQUIRE(lanes_text(lane_elements({.lanes = "3:3,0:255,9:7,9:1"})) == "0:255,9:1");
  const lab::Knobs knobs = knob_table().knobs();
  for (const char* bad : {"32:0", "0:256", "-1:0", "0", "0:1,", "a:b"}) {
    lab::Settings settings;
    REQUIRE(contains(error_of([&] { knobs.set(settings, std::string("lanes=") + bad); }),
                     "lanes 0–31 and elements 0–255"));
  }
  // Which of two that store to one place wins is not defined.
  const std::string text =
      error_of([&] { run({.pattern = Pattern::custom, .access = Access::store, .lanes = "0:1"}); });
  REQUIRE(contains(text, "no two lanes may store to the same element"));
  REQUIRE(failed_checks(run(
              {.pattern = Pattern::custom, .access = Access::store, .lanes = "0:1,1:0"})) == "");
}

TEST_CASE("an array that is too large is refused with what is allowed", "[coalescing]") {
  const lab::Knobs knobs = knob_table().knobs();
  lab::Settings settings = knobs.defaults();
  knobs.set(settings, "stride=64");
  knobs.set(settings, "element_bytes=16");
  knobs.set(settings, "elements=16777216");
  const std::string text = error_of([&] { knob_table().params(settings); });
  REQUIRE(contains(text, "32–524288"));
  REQUIRE(contains(text, "stride = 64"));
  knobs.set(settings, "elements=524288");
  REQUIRE(knob_table().params(settings).elements == 524288);
}

TEST_CASE("the report of a run has its tables and best values", "[coalescing]") {
  const lab::Report report = run();
  REQUIRE(failed_checks(report) == "");
  REQUIRE(report.table("requests")->rows.size() == 64);
  REQUIRE(report.table("patterns")->rows.size() == kPatterns.size());
  REQUIRE(report.table("bank_conflicts")->rows.size() == 4);
  REQUIRE(report.measurement("best_sectors_per_request")->value == 4);
  REQUIRE(report.measurement("efficiency")->value == 50);
  const Trace trace = trace_from_json(report.trace);
  const bool counted = report.measurement("sectors_per_request", "hardware") != nullptr;
  REQUIRE(counted == trace.counters_available);
  REQUIRE(counted != contains(trace.counters_reason, "GPU"));
  REQUIRE(trace.statement == "out[i] = in[i × 2]");
  REQUIRE(contains(report.summary, "8 sectors"));
}

TEST_CASE("a run whose counters another program holds says so and goes on", "[coalescing]") {
  TimedEmulation device;
  device.counter = [](const std::string&) -> double { throw simt::CountersBusy(); };
  const lab::Report report = run({}, device);
  REQUIRE(failed_checks(report) == "");
  REQUIRE(report.measurement("sectors_per_request", "hardware") == nullptr);
  const Trace trace = trace_from_json(report.trace);
  REQUIRE_FALSE(trace.counters_available);
  REQUIRE(contains(trace.counters_reason, "another program"));
}
