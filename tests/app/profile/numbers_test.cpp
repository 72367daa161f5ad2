// What is counted in a trace, against counting again in another way; the six questions; the command line.
#include "app/profile/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>

#include "kernels/base/lab/report.hpp"
#include "tests/app/child.hpp"
#include "tests/app/profile/fixtures.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/paths.hpp"

using namespace tilestep;
using namespace tilestep::profile;
using tests::check_contains;
using tests::refusal;

namespace {

Trace kineto_example(const tests::TemporaryFolder& folder) {
  tests::write_text(folder.path() / "trace.json", tests::kineto_trace().dump());
  return read_trace(folder.path() / "trace.json");
}

/// Work on two streams, each submitted by a call that ends somewhere before, or after the device became idle.
nlohmann::json random_trace(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  nlohmann::json events = nlohmann::json::array();
  int at = 50;
  for (int i = 1; i <= 60; ++i) {
    at += below(12);
    const int length = 1 + below(9);
    events.push_back(tests::chrome_event("cuda_runtime", fmt::format("cudaCall{}", below(3)), 1, 1,
                                         at - 2 - below(20), 1 + below(3), {{"correlation", i}}));
    events.push_back(tests::chrome_event(
        below(5) == 0 ? "gpu_memcpy" : "kernel", fmt::format("k{}", below(4)), 0, 7 + below(2), at,
        length, {{"device", 0}, {"stream", 7 + below(2)}, {"correlation", i}, {"bytes", 100}}));
    if (below(3) > 0) at += length;
  }
  return events;
}

}  // namespace

TEST_CASE("shares, gaps and kernels are those that counting each microsecond gives", "[profile]") {
  const tests::TemporaryFolder folder;
  for (unsigned seed = 1; seed <= 12; ++seed) {
    INFO("seed " << seed);
    tests::write_text(folder.path() / "trace.json", random_trace(seed).dump());
    const Trace trace = read_trace(folder.path() / "trace.json");
    const Numbers numbers = numbers_of(trace);
    // Each microsecond against each event.
    const auto lasts = [&](std::int64_t us, const auto& takes) {
      return std::any_of(trace.events.begin(), trace.events.end(), [&](const Event& event) {
        return takes(event) && event.begin_ns <= 1000 * us && event.end_ns >= 1000 * (us + 1);
      });
    };
    std::int64_t busy = 0, kernels = 0, gap_us = 0, late_us = 0, gaps = 0, late = 0, longest = 0;
    std::int64_t idle_since = -1;
    for (std::int64_t us = numbers.stretch.from_ns / 1000; us < numbers.stretch.to_ns / 1000;
         ++us) {
      const bool works = lasts(us, [](const Event& event) { return is_work(event.kind); });
      busy += works;
      kernels += lasts(us, [](const Event& event) { return event.kind == Kind::kernel; });
      if (!works && idle_since < 0) idle_since = us;
      if (!works || idle_since < 0) continue;
      ++gaps;
      gap_us += us - idle_since;
      longest = std::max(longest, us - idle_since);
      // Of the works that begin here, the first in the trace's order.
      const auto next = std::find_if(
          trace.events.begin(), trace.events.end(),
          [&](const Event& event) { return is_work(event.kind) && event.begin_ns == 1000 * us; });
      if (trace.events[static_cast<std::size_t>(next->call)].end_ns > 1000 * idle_since) {
        ++late;
        late_us += us - idle_since;
      }
      idle_since = -1;
    }
    REQUIRE(numbers.devices.size() == 1);
    CHECK(numbers.devices[0].busy_ns == 1000 * busy);
    CHECK(numbers.devices[0].kernel_ns == 1000 * kernels);
    CHECK(numbers.all_gaps.count == gaps);
    CHECK(numbers.all_gaps.ns == 1000 * gap_us);
    CHECK(numbers.late_gaps.count == late);
    CHECK(numbers.late_gaps.ns == 1000 * late_us);
    CHECK(numbers.gaps.at(static_cast<std::size_t>(numbers.all_gaps.longest)).idle.ns() ==
          1000 * longest);
    std::int64_t after = 0;
    for (const auto& [call, sum] : numbers.gaps_after) after += sum.count;
    CHECK(after == late);
    for (const KernelUse& use : numbers.kernels) {
      std::int64_t sum = 0, count = 0, wall = 0;
      const auto is = [&](const Event& event) {
        return event.kind == Kind::kernel && event.name == use.name;
      };
      for (const Event& event : trace.events) {
        sum += is(event) ? event.ns() : 0;
        count += is(event);
      }
      for (std::int64_t us = 0; us < numbers.stretch.to_ns / 1000; ++us) wall += lasts(us, is);
      CHECK(use.ns == sum);
      CHECK(use.launches == count);
      CHECK(use.wall_ns == 1000 * wall);
      CHECK(use.share ==
            Approx(1000.0 * static_cast<double>(wall) / static_cast<double>(numbers.stretch.ns())));
      CHECK(use.bound() == Approx(1 / (1 - use.share)));
    }
    // Parts add up to the whole.
    const std::int64_t middle = (numbers.stretch.from_ns + numbers.stretch.to_ns) / 2;
    const Numbers left = numbers_of(trace, Stretch{numbers.stretch.from_ns, middle}),
                  right = numbers_of(trace, Stretch{middle, numbers.stretch.to_ns});
    CHECK(left.devices[0].busy_ns + right.devices[0].busy_ns == numbers.devices[0].busy_ns);
  }
}

TEST_CASE("between the kernels of a graph the host is not late", "[profile]") {
  const tests::TemporaryFolder folder;
  nlohmann::json events = {
      tests::chrome_event("cuda_runtime", "cudaGraphLaunch", 1, 1, 0, 100, {{"correlation", 1}}),
      tests::chrome_event("kernel", "a", 0, 7, 10, 10, {{"correlation", 1}}),
      tests::chrome_event("kernel", "b", 0, 7, 30, 10, {{"correlation", 1}}),
      tests::chrome_event("cuda_runtime", "cudaLaunchKernel", 1, 1, 110, 5, {{"correlation", 2}}),
      tests::chrome_event("kernel", "c", 0, 7, 120, 10, {{"correlation", 2}})};
  tests::write_text(folder.path() / "trace.json", events.dump());
  const Numbers numbers = numbers_of(read_trace(folder.path() / "trace.json"));
  CHECK(numbers.all_gaps.count == 2);
  CHECK(numbers.late_gaps.count == 1);
  CHECK(numbers.late_gaps.ns == 80'000);
  CHECK(numbers.graph_kernels == 2);
}

TEST_CASE("the six questions are answered from the trace, or say how to record it", "[profile]") {
  const tests::TemporaryFolder folder;
  const Trace trace = kineto_example(folder);
  const Numbers numbers = numbers_of(trace);
  CHECK(numbers.graph_kernels == 2);
  CHECK(numbers.steps.kernels == 2);
  CHECK(numbers.steps.median_ns == 900'000);
  REQUIRE(numbers.waits.size() == 1);
  CHECK(numbers.waits[0].ns == 330'000);  // the last is cut where the work ends
  REQUIRE(numbers.copies.size() == 1);
  CHECK(numbers.copies[0].direction == "HtoD");
  CHECK(numbers.copies[0].bytes == 500'000);
  const auto answers = answers_of(trace, numbers);
  REQUIRE(answers.size() == 6);
  check_contains(answers[0].text, "The host. GPU 0 runs kernels 27 %");
  check_contains(answers[0].text, "after cudaStreamSynchronize");
  CHECK(answers[0].shown == Stretch{560'000, 1'020'000});
  check_contains(answers[1].text, "aten::mm (77 %)");
  check_contains(answers[2].text, "8×4097, 4097×64");
  check_contains(answers[2].text, "4097 is no multiple of 8");
  check_contains(answers[3].text, "bf16 (77 %)");
  check_contains(answers[4].text, "2 launches of 200 µs on average");
  check_contains(answers[4].text, "32 blocks of 128 threads for 132 multiprocessors, 96 registers");
  check_contains(answers[4].text, "CUTLASS");
  check_contains(answers[5].text, "2 of 4 kernels came from CUDA graphs");
  for (const Answer& answer : answers) CHECK(answer.known);
  // Without shapes and operators.
  auto json = tests::kineto_trace();
  auto& events = json["traceEvents"];
  events.erase(std::remove_if(events.begin(), events.end(),
                              [](const auto& event) { return event.value("cat", "") == "cpu_op"; }),
               events.end());
  tests::write_text(folder.path() / "bare.json", json.dump());
  const Trace bare = read_trace(folder.path() / "bare.json");
  const auto less = answers_of(bare, numbers_of(bare));
  CHECK_FALSE(less[2].known);
  CHECK(less[2].record == "record_shapes=True");
  check_contains(less[3].text, "fp32 (77 %)");  // by the kernel's name
  check_contains(less[3].text, "by the kernels' names");
}

TEST_CASE("a report's tables say what the numbers do", "[profile]") {
  const tests::TemporaryFolder folder;
  const Trace trace = kineto_example(folder);
  const lab::Report report = report_of(trace, numbers_of(trace), 1);
  CHECK(report.device.name == "NVIDIA H200");
  CHECK(report.recorded_at == "2026-01-01");
  for (const char* id : {"questions", "devices", "kernels", "gaps", "copies", "host", "steps"}) {
    INFO(id);
    REQUIRE(report.table(id) != nullptr);
    for (const auto& row : report.table(id)->rows)
      CHECK(row.size() == report.table(id)->columns.size());
  }
  CHECK(report.table("kernels")->rows.size() == 1);
  CHECK(report.table("kernels")->text(0, 0) == "Kernel<float, Tile<8> >");
  CHECK(report.table("kernels")->text(0, 12) == "aten::mm");
  CHECK(report.table("kernels")->text(0, 13) == "8×4097, 4097×64");
  CHECK(report.table("kernels")->text(0, 14) == "bf16");
  CHECK(report.table("copies")->text(0, 4) == "25.0");  // 500,000 bytes in 20 µs
  CHECK(lab::report_from_json(lab::to_json(report)).table("gaps")->rows.size() ==
        report.table("gaps")->rows.size());
}

// ---- the command line -----------------------------------------------------------------------------------------------

TEST_CASE("tilestep profile prints, as text and as JSON, what a trace says", "[profile]") {
  const tests::TemporaryFolder folder;
  const std::string file = (folder.path() / "trace.json").string();
  tests::write_text(file, tests::kineto_trace().dump());
  const auto text = tests::run_tilestep({"profile", file});
  INFO(text.err);
  CHECK(text.code == 0);
  for (const char* words :
       {"trace.json: 4 kernels in 1.54 ms", "recorded by PyTorch's profiler on NVIDIA H200",
        "1 Bottleneck", "6 System", "Kernels by time", "cudaStreamSynchronize", "Copies and fills"})
    check_contains(text.out, words);
  const auto json = tests::run_tilestep({"profile", file, "--json", "--top", "1"});
  CHECK(json.code == 0);
  CHECK(json.json().at("lesson") == "profile");
  CHECK(json.json().at("trace").at("file") == "trace.json");
  const auto part = tests::run_tilestep({"profile", file, "--json", "--from", "1ms"});
  CHECK(part.json().at("trace").at("from_ms") == 1.0);
  check_contains(part.json().at("summary").get<std::string>(), "2 kernels");
  const auto page =
      tests::run_tilestep({"profile", file, "--html", (folder.path() / "page.html").string()});
  CHECK(page.code == 0);
  check_contains(tests::file_text(folder.path() / "page.html"), "<h2>Kernels by time</h2>");
}

TEST_CASE("the examples are of our own lesson, small, and say what they are", "[profile]") {
  for (const char* name : {"decode", "decode-graph"}) {
    const auto outcome = tests::run_tilestep({"profile", "--example", name, "--json"});
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    check_contains(outcome.json().at("summary").get<std::string>(), "39 kernels");
    check_contains(outcome.json().at("summary").get<std::string>(),
                   "recorded by tilestep's lesson launches on NVIDIA H200");
    const std::string text = tests::file_text(std::filesystem::path(tests::paths::kSource) /
                                              "assets/profiles" / (std::string(name) + ".json"));
    CHECK(text.size() < 100'000);
    check_contains(text, "not a run of PyTorch");
  }
}

TEST_CASE("tilestep profile refuses with one sentence that names what is allowed", "[profile]") {
  const tests::TemporaryFolder folder;
  const std::string file = (folder.path() / "trace.json").string();
  tests::write_text(file, tests::kineto_trace().dump());
  struct Refused {
    std::vector<std::string> words;
    int code;
    const char* named;
  };
  for (const Refused& each :
       std::vector<Refused>{{{}, 2, "decode-graph"},
                            {{"/no/such/trace.json"}, 3, "cannot be read"},
                            {{"--example", "none"}, 2, "decode"},
                            {{file, "--example", "decode"}, 2, "name one trace"},
                            {{file, "--from", "soon"}, 2, "12.5ms"},
                            {{file, "--from", "2ms", "--to", "1ms"}, 2, "later"},
                            {{file, "--from", "5s", "--to", "6s"}, 2, "nothing ran on a GPU"},
                            {{file, "--top", "0"}, 2, "1 to 10000"},
                            {{file, "--shot", "a.svg"}, 2, ".png"},
                            {{file, "--theme", "blue"}, 2, "dark"}}) {
    std::vector<std::string> words = {"profile"};
    words.insert(words.end(), each.words.begin(), each.words.end());
    const auto outcome = tests::run_tilestep(words);
    INFO(outcome.err);
    CHECK(outcome.code == each.code);
    CHECK(outcome.out.empty());
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    check_contains(outcome.err, each.named);
  }
}
