// Edits that are right at the defaults and wrong elsewhere are caught at the lesson's trial settings.

#include "kernels/base/workbench/trials.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "kernels/answer.hpp"
#include "kernels/base/lab/assets.hpp"
#include "kernels/base/simt/emulator/clockless.hpp"
#include "kernels/base/simt/emulator/evidence.hpp"
#include "kernels/base/workbench/orders.hpp"
#include "kernels/base/workbench/program.hpp"
#include "kernels/base/workbench/sources.hpp"
#include "kernels/catalog.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/workbench/own_cache.hpp"
#include "tests/part.hpp"

namespace tilestep::workbench {
namespace {

using tests::contains;
using Result = Trial::Result;

/// The names of kernels by their addresses in this program.
std::set<std::string> names_of_kernels(const std::set<const void*>& kernels) {
  std::vector<std::string> words = {"addr2line", "-f", "-C", "-e",
                                    std::filesystem::read_symlink("/proc/self/exe").string()};
  for (const void* kernel : kernels) {
    Dl_info info{};
    REQUIRE(dladdr(kernel, &info) != 0);
    words.push_back(fmt::format("0x{:x}", reinterpret_cast<std::uintptr_t>(kernel) -
                                              reinterpret_cast<std::uintptr_t>(info.dli_fbase)));
  }
  std::istringstream output(run_program(words, std::chrono::seconds(60)).output);
  std::set<std::string> names;
  for (std::string line; std::getline(output, line); std::getline(output, line)) {
    std::string name = line.substr(0, line.find_first_of("<(", line.find("backend::")));
    names.insert(name.substr(name.rfind(':') + 1));
  }
  return names;
}

/// Whether a kernel of one of these names stands in the source.
bool has_kernel(std::string_view source, const std::set<std::string>& names) {
  constexpr std::string_view kWord = "__global__";
  for (std::size_t at = source.find(kWord); at != source.npos; at = source.find(kWord, at + 1)) {
    const std::string_view head = source.substr(at, source.find('{', at) - at);
    for (const std::string& name : names) {
      if (head.find(" " + name + "(") != head.npos) return true;
    }
  }
  return false;
}

TEST_CASE("trial settings are right with the lesson's own kernels, and run every source",
          "[workbench_run]") {
  // One is not emulated. Of the others a lesson has what they do inside a kernel of its own: paged.cu, sparse attention's
  // lists.cu, many GPUs' coming.cu.
  const std::set<std::string> not_here = {"kernels/attention/flash_attention_3/flash_3.cu",
                                          "kernels/attention/kv_cache/paged/merge.cu",
                                          "kernels/matmul/hopper_gemm/specialized.cu",
                                          "kernels/numbers/accumulator_precision/tensor_core.cu"};
  std::set<std::string> never;
  tests::Part part("trial settings", 3);
  for (const lab::Lesson* lesson : lessons()) {
    if (part.skips()) continue;
    INFO(lesson->info().id);
    const auto trials = lesson->trials();
    CHECK(trials.size() >= 3);
    CHECK(std::set(trials.begin(), trials.end()).size() == trials.size());
    std::set<const void*> kernels;
    lab::NoProgress progress;
    for (const lab::Settings& settings : trials) {
      INFO(words_of(settings));
      for (const auto order : {simt::ThreadOrder::ascending, simt::ThreadOrder::shuffled}) {
        std::vector<const void*> launched;
        simt::EvidenceWriter evidence;
        const auto device = simt::make_witnessed_device(
            emulated_kernels(), {.order = order, .launched = &launched}, evidence);
        lab::Report report;
        CHECK_NOTHROW(report = lesson->run(settings, *device, progress));
        CHECK(report.ok());
        CHECK_FALSE(evidence.full());  // else its exercises are judged no more
        kernels.insert(launched.begin(), launched.end());
      }
    }
    std::vector<const void*> of_bench;
    simt::emulated::ClocklessDevice clockless(emulated_kernels(), {.launched = &of_bench});
    if (const auto report = lesson->small_bench(clockless, progress)) CHECK(report->ok());
    kernels.insert(of_bench.begin(), of_bench.end());
    const std::set<std::string> names = names_of_kernels(kernels);
    for (const std::string& source : editable_sources(lesson->info().id)) {
      const bool header = !source.ends_with(".cu");  // whose functions the kernels of others call
      if (!header && !has_kernel(lab::asset(source), names)) never.insert(source);
    }
  }
  // Of the lessons of the day none but these; of all of them these.
  INFO(fmt::format("{}", fmt::join(never, "\n")));
  CHECK(std::includes(not_here.begin(), not_here.end(), never.begin(), never.end()));
  if (tests::all_is_wanted()) CHECK(never == not_here);
}

/// An edit that looks right at the defaults.
struct LessonEdit {
  std::string lesson, path;
  std::string from, to;  ///< `from` stands in the source once
  std::string knobs;     ///< of the first setting that shows it
  std::string found;     ///< a part of what is found there
};

std::string edited(const LessonEdit& edit) {
  std::string text(lab::asset(edit.path));
  const std::size_t at = text.find(edit.from);
  REQUIRE(at != text.npos);
  REQUIRE(text.find(edit.from, at + 1) == text.npos);
  return text.replace(at, edit.from.size(), edit.to);
}

lab::Report answered(const LessonEdit& edit, lab::Request::Action action, bool orders = false,
                     const lab::Settings& params = {}) {
  lab::NoProgress progress;
  return answer({.lesson = edit.lesson,
                 .params = params,
                 .action = action,
                 .backend = "emulated",
                 .kernel = lab::KernelEdit{edit.path, edited(edit)},
                 .orders = orders},
                progress);
}

TEST_CASE("what is wrong elsewhere than on show is named with its setting", "[workbench_run]") {
  const tests::KeptCache cache;
  const LessonEdit edits[] = {
      {"online-softmax", "kernels/attention/online_softmax/one_pass.cu",
       "return m == -INFINITY ? 0.0f : m;", "return m;", "preset=all-masked", "finds NaN"},
      {"accumulator-precision", "kernels/numbers/accumulator_precision/sums.cu",
       "adder.plus(t, -c, i, 0)", "adder.plus(t, c, i, 0)", "accumulators=all terms=77",
       "the check sums "},
      {"flash-attention", "kernels/attention/flash_attention/naive.cu",
       "__syncthreads();  // all warps' parts are written", "", "seq=50 variant=naive",
       "no barrier is between the two"},
      {"decode", "kernels/attention/kv_cache/paged/paged.cu", "      me.meet();\n", "",
       "context=100 heads=64 scheme=mqa splits=0", "still copies to by cp.async"},
  };
  tests::Part part("wrong elsewhere", 2);
  for (const LessonEdit& edit : edits) {
    if (part.skips()) continue;
    INFO(edit.path);
    CHECK(answered(edit, lab::Request::Action::run).ok());
    const lab::Report report = answered(edit, lab::Request::Action::trials);
    CHECK_FALSE(report.ok());
    CHECK(report.summary.starts_with("Wrong with " + edit.knobs));
    const std::vector<Trial> trials = trials_of(report);
    const Trial* wrong = first_wrong(trials);
    REQUIRE(wrong != nullptr);
    CHECK(wrong->knobs == edit.knobs);
    CHECK(contains(wrong->found, edit.found));
  }
}

TEST_CASE("trials come after the orders of the threads that the run had no time for",
          "[workbench_run]") {
  const tests::KeptCache cache;
  const LessonEdit without_barrier{"online-softmax",
                                   "kernels/attention/online_softmax/one_pass.cu",
                                   "  __syncthreads();  // every warp's slot must be written",
                                   "  // every warp's slot",
                                   "",
                                   ""};
  const lab::Settings two_warps = {{"head_dim", std::int64_t{64}}, {"tile_width", std::int64_t{4}}};
  const lab::Report wrong =
      answered(without_barrier, lab::Request::Action::trials, true, two_warps);
  REQUIRE(wrong.checks.size() == 1);
  CHECK(wrong.checks.front().id == kOrderCheck);
  CHECK_FALSE(wrong.checks.front().ok);
  CHECK(contains(wrong.summary, "With the threads of a block in descending order"));
  CHECK(trials_of(wrong).empty());

  const LessonEdit same{"online-softmax",
                        "kernels/attention/online_softmax/one_pass.cu",
                        "return m == -INFINITY ? 0.0f : m;",
                        "return m == -INFINITY ? 0.0f : m; ",
                        "",
                        ""};
  const lab::Report run = answered(same, lab::Request::Action::run);
  CHECK(std::none_of(run.checks.begin(), run.checks.end(),
                     [](const lab::Check& check) { return check.id == kOrderCheck; }));
  const lab::Report right = answered(same, lab::Request::Action::trials, true);
  CHECK(right.checks.front().id == kOrderCheck);
  CHECK(right.ok());
  CHECK(trials_of(right).size() == lesson("online-softmax").trials().size());
}

TEST_CASE("code that kernels of other sources have in them is tried with those",
          "[workbench_run]") {
  if (tests::Part("code in other sources", 3).skips()) return;
  const tests::KeptCache cache;
  const LessonEdit same{
      "decode", "kernels/attention/kv_cache/paged/merge.cu", "#pragma once", "#pragma once", "",
      ""};
  const lab::Report report = answered(same, lab::Request::Action::trials);
  CHECK(report.ok());
  CHECK(trials_of(report).size() == lesson("decode").trials().size());
}

TEST_CASE("a kernel of the bench alone is tried in a small bench", "[workbench_run]") {
  const tests::KeptCache cache;
  const LessonEdit edit{"moe-routing",
                        "kernels/experts/moe_routing/grouped_mma.cu",
                        "const int tiles_of_k = shape.hidden / kDepth;",
                        "const int tiles_of_k = shape.hidden / kDepth - 1;",
                        "",
                        ""};
  const lab::Report run = answered(edit, lab::Request::Action::run);
  CHECK(run.ok());
  CHECK(run.kernel->idle);
  const lab::Report report = answered(edit, lab::Request::Action::trials);
  CHECK_FALSE(report.ok());
  CHECK(contains(report.summary, "Wrong with the bench at small sizes: the check grouped_"));
  CHECK_FALSE(report.kernel->idle);
}

TEST_CASE("a kernel for a GPU alone is not said to be right", "[workbench_run]") {
  if (tests::Part("a kernel for a GPU alone is not said to be right", 2).skips()) return;
  const tests::KeptCache cache;
  const LessonEdit same{"accumulator-precision",
                        "kernels/numbers/accumulator_precision/tensor_core.cu",
                        "namespace tilestep::accumulator_precision::cuda_backend {",
                        "namespace tilestep::accumulator_precision::cuda_backend {",
                        "",
                        ""};
  const lab::Report report = answered(same, lab::Request::Action::trials);
  CHECK(report.checks.empty());
  CHECK(report.summary.starts_with("None of this source runs under emulation"));
}

TEST_CASE("of a right kernel it is said what it takes more than the original", "[workbench_run]") {
  const tests::KeptCache cache;
  const std::string path = "kernels/memory/coalescing/ladders.cu";
  std::string text(lab::asset(path));
  // The tile loses its padding.
  for (std::size_t at = text.find("* kPitch"); at != text.npos; at = text.find("* kPitch"))
    text.replace(at, 8, "* kTile");
  lab::NoProgress progress;
  const lab::Report report = answer({.lesson = "coalescing",
                                     .params = {},
                                     .action = lab::Request::Action::trials,
                                     .kernel = lab::KernelEdit{path, text}},
                                    progress);
  CHECK(report.ok());
  CHECK(report.summary == fmt::format("Right with all {} settings that tell. With defaults it "
                                      "takes 32 times the bank-conflict ways of "
                                      "the original (32 against 1).",
                                      lesson("coalescing").trials().size()));
}

TEST_CASE("a rung that reads tiles past the tape is run all the same", "[workbench_run]") {
  const tests::KeptCache cache;
  const std::string path = "kernels/matmul/tiling/register_tile.cu";
  std::string text(lab::asset(path));
  for (const std::string name : {"a_shared), kSiteTileA)", "b_shared), kSiteTileB)"}) {
    const std::string from = "seen(tape, simt::Shared<float>(" + name;
    for (std::size_t at = text.find(from); at != text.npos; at = text.find(from))
      text.replace(at, from.size(), "simt::Shared<float>(" + name.substr(0, 9));
  }
  lab::NoProgress progress;
  const lab::Report report = answer({.lesson = "tiling",
                                     .params = {{"variant", std::string("register-tile-1d")}},
                                     .kernel = lab::KernelEdit{path, text}},
                                    progress);
  CHECK(report.ok());
}

TEST_CASE("trials are of an edited kernel", "[workbench_run]") {
  lab::NoProgress progress;
  CHECK(contains(tests::error_of([&] {
                   answer(
                       {.lesson = "tiling", .params = {}, .action = lab::Request::Action::trials},
                       progress);
                 }),
                 "allowed without: run, bench"));
}

}  // namespace
}  // namespace tilestep::workbench
