// What goes wrong in an edited kernel is one sentence with kernel, block, thread and line, and the next run is right.

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "kernels/answer.hpp"
#include "kernels/base/lab/assets.hpp"
#include "kernels/base/workbench/edited.hpp"
#include "kernels/base/workbench/guarded.hpp"
#include "kernels/catalog.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/workbench/own_cache.hpp"

namespace tilestep::workbench {
namespace {

using tests::contains, tests::kOnePass;

/// Two warps a block.
const lab::Settings kSettings = {{"head_dim", std::int64_t{64}}, {"tile_width", std::int64_t{4}}};

/// All that may go wrong, each in a line of its own, chosen when it runs: so it is compiled once.
constexpr const char* kFaults = R"(
    const std::string_view fault = std::getenv("TILESTEP_TEST_FAULT");
    volatile int zero = 0;
    if (fault == "bounds") weights[shape.tile_width + thread] = 0;
    if (fault == "global") o += row[thread - 1];
    if (fault == "branch" && thread >= 32) __syncthreads();
    if (fault == "lanes" && thread == 3) l += __shfl_sync(1u, l, 0);
    if (fault == "null" && thread == 3) *reinterpret_cast<volatile int*>(zero + 16) = 1;
    if (fault == "wild" && thread == 3) o += *reinterpret_cast<volatile float*>(0x7FFF000000000000);
    if (fault == "far" && thread == 3) o += *reinterpret_cast<volatile float*>(0x100000000000);
    if (fault == "code" && thread == 3) reinterpret_cast<void (*)()>(std::intptr_t{zero})();
    if (fault == "divide" && thread == 3) m += static_cast<float>(thread / zero);
    if (fault == "stack" && thread == 3) o += descend(1);
    if (fault == "trap" && thread == 3) __builtin_trap();
    if (fault == "abort" && thread == 3) std::abort();
    if (fault == "assert" && thread == 3) assert(o < -1e9f);
    if (fault == "fence" && thread == 3) *(&output[0] + 4096) = o;
    if (fault == "smash" && thread == 3) smash(zero);
    while (fault == "loop" && thread == 3) zero = 0;
    while (fault == "warps") __syncwarp();
    while (fault == "blocks") __syncthreads();
    if (fault == "memory") std::vector<double>(std::size_t{1} << 30, 1.0);
    if (fault == "throw" && thread == 3) throw std::runtime_error("too much");
    if (fault == "race") weights[0] = static_cast<float>(thread);
)";
constexpr const char* kParts = R"(
#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <vector>
namespace tilestep::online_softmax::SIMT_BACKEND {
inline void smash(int zero) { volatile int room[4]; for (int i = zero; i < 9; ++i) room[i] = i; }
inline float descend(int depth) {
  volatile float room[100] = {};
  room[depth % 100] = 1;
  return depth == 0 ? 0.0f : descend(depth + 1) + room[depth % 100];
}
}
)";

/// A test names its fault in the environment.
struct Cache {
  Cache() = default;
  ~Cache() { ::unsetenv("TILESTEP_TEST_FAULT"); }
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;
  tests::KeptCache kept;
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string with_faults() {
  std::string text(lab::asset(kOnePass));
  text = replaced(text, "namespace tilestep::online_softmax::SIMT_BACKEND {",
                  std::string(kParts) + "namespace tilestep::online_softmax::SIMT_BACKEND {");
  return replaced(text, "    // 1. The maximum of all keys so far.\n", kFaults);
}

int line_with(const std::string& text, const std::string& part) {
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<int>(at), '\n'));
}

/// The source with all the faults, loaded.
class Faulty {
 public:
  Faulty()
      : text_(with_faults()),
        kernels_("online-softmax", {kOnePass, text_}, {}, lab::NoProgress()) {}

  int line_of_fault(const std::string& fault) const {
    return line_with(text_, "fault == \"" + fault + "\"");
  }
  lab::Report run(const std::string& fault, const RunLimits& limits = {}) const {
    ::setenv("TILESTEP_TEST_FAULT", fault.c_str(), 1);
    return guarded(
        {kernels_.file(), kOnePass}, [&] { return lesson_run(kernels_.table()); }, limits);
  }
  /// What is said, with the line of that fault.
  std::string said(const std::string& fault, bool stops, const RunLimits& limits = {}) const {
    INFO(fault);
    try {
      run(fault, limits);
    } catch (const lab::SourceError& error) {
      CHECK((dynamic_cast<const KernelStopped*>(&error) != nullptr) == stops);
      REQUIRE_FALSE(error.diagnostics().empty());
      // A barrier is told of where the others wait, with a note where this thread does.
      const auto at_line = [&](const lab::Diagnostic& each) {
        return each.line == line_of_fault(fault);
      };
      CHECK(std::any_of(error.diagnostics().begin(), error.diagnostics().end(), at_line));
      CHECK(contains(error.what(), "online_softmax: "));
      const std::string line = "line " + std::to_string(line_of_fault(fault)) + " of one_pass.cu";
      CHECK(contains(error.what(), line));
      return error.what();
    }
    FAIL_CHECK("it ran");
    return {};
  }

 private:
  static lab::Report lesson_run(std::span<const simt::KernelEntry> table) {
    const auto device = simt::make_emulated_device(table);
    lab::NoProgress progress;
    lab::Report report = lesson("online-softmax").run(kSettings, *device, progress);
    report.kernel = lab::EditedKernel{};
    return report;
  }

  std::string text_;
  EditedKernels kernels_;
};

TEST_CASE("a fault of an edited kernel is told with its line, and the next run is right",
          "[workbench_run]") {
  const Cache cache;
  const Faulty faulty;
  const lab::Report right = faulty.run("");
  REQUIRE(right.ok());
  CHECK(right.kernel->diagnostics.empty());

  // What the emulation sees leaves the process as it was.
  CHECK(contains(faulty.said("bounds", false), "dynamic shared memory[4]"));
  CHECK(contains(faulty.said("global", false), "scores[-1], but"));
  CHECK(contains(faulty.said("lanes", false), "which does not name its own lane 3"));
  CHECK(contains(faulty.said("branch", false), "all threads of a block must reach the same one"));
  CHECK(contains(faulty.said("assert", false),
                 "thread (3,0,0) of block (0,0,0) fails its assertion 'o < -1e9f'"));
  // What the processor sees does not.
  CHECK(contains(faulty.said("null", true),
                 "thread (3,0,0) of block (0,0,0) writes address 0x10, through a null pointer"));
  CHECK(contains(faulty.said("wild", true), "uses a pointer that leads to no memory"));
  CHECK(contains(faulty.said("far", true), "reads address 0x100000000000, where there is no"));
  CHECK(contains(faulty.said("code", true), "through a null pointer"));
  CHECK(contains(faulty.said("divide", true), "divides a whole number by zero"));
  CHECK(contains(faulty.said("trap", true), "__builtin_trap()"));
  CHECK(contains(faulty.said("abort", true), "an assertion failed"));
  CHECK(contains(faulty.said("fence", true), "writes address 0x"));
  CHECK(faulty.run("").trace == right.trace);
}

TEST_CASE("a stack that is spoiled is told with a line of the function", "[workbench_run]") {
  const Cache cache;
  const Faulty faulty;
  const auto told = [&](const std::string& fault, const std::string& what,
                        const std::string& function) {
    try {
      faulty.run(fault);
      FAIL_CHECK(fault << " ran");
    } catch (const KernelStopped& error) {
      CHECK(contains(error.what(), what));
      const int line = error.diagnostics().front().line;
      INFO(error.what());
      CHECK(std::abs(line - line_with(with_faults(), function)) <= 3);
    }
  };
  told("stack", "needs more stack than a thread has", "float descend(int depth)");
  told("smash", "it wrote past the end of a local array", "void smash(int zero)");
  CHECK(faulty.run("").ok());
}

TEST_CASE("a kernel that never ends is ended in its loop", "[workbench_run]") {
  const Cache cache;
  const Faulty faulty;
  // Long enough for a loaded machine to be in the loop by then.
  const RunLimits soon{.deadline = std::chrono::milliseconds(600)};
  for (const std::string loop : {"loop", "warps", "blocks"}) {
    CHECK(contains(faulty.said(loop, true, soon),
                   "still runs after 0.6 seconds and was ended; an endless loop is the likely"));
  }
  CHECK(faulty.run("", soon).ok());
}

TEST_CASE("an edited kernel gets so much memory", "[workbench_run]") {
  const Cache cache;
  const Faulty faulty;
  rlimit before{};
  ::getrlimit(RLIMIT_DATA, &before);
  CHECK(contains(tests::error_of([&] { faulty.run("memory"); }),
                 "there is not enough memory for this run"));
  rlimit after{};
  ::getrlimit(RLIMIT_DATA, &after);
  CHECK(after.rlim_cur == before.rlim_cur);
  CHECK(contains(tests::error_of([&] { faulty.run("throw"); }),
                 "thread (3,0,0) of block (0,0,0) threw an exception: too much"));
  CHECK(faulty.run("").ok());
}

TEST_CASE("threads that no barrier keeps apart are told with both lines", "[workbench_run]") {
  const Cache cache;
  const Faulty faulty;
  const lab::Report report = faulty.run("race");
  const auto check = std::find_if(report.checks.begin(), report.checks.end(),
                                  [](const auto& each) { return each.id == "shared_memory"; });
  REQUIRE(check != report.checks.end());
  CHECK_FALSE(check->ok);
  REQUIRE(report.kernel->diagnostics.size() == 1);
  const int line = faulty.line_of_fault("race");
  CHECK(report.kernel->diagnostics.front().line == line);
  const std::string where = "in line " + std::to_string(line);
  CHECK(check->detail ==
        "online_softmax: thread (1,0,0) of block (0,0,0) writes byte 0 of its dynamic shared "
        "memory " +
            where + ", which thread (0,0,0) has written " + where +
            "; no barrier is between the two");
}

/// All of `answer`, with the default settings but for two warps a block.
lab::Report answer_with(const std::string& text) {
  lab::NoProgress progress;
  return answer({.lesson = "online-softmax",
                 .params = kSettings,
                 .backend = "emulated",
                 .kernel = lab::KernelEdit{kOnePass, text}},
                progress);
}

const lab::Check& check_of(const lab::Report& report, const std::string& id) {
  for (const lab::Check& check : report.checks) {
    if (check.id == id) return check;
  }
  FAIL("no check " << id);
  return report.checks.front();
}

TEST_CASE("a missing barrier is found by who uses the memory, and by the order of threads",
          "[workbench_run]") {
  const Cache cache;
  const std::string text(lab::asset(kOnePass));
  const lab::Report whole = answer_with(text);
  CHECK(whole.ok());
  CHECK(check_of(whole, "thread_order").ok);
  const std::string without = replaced(
      text, "  __syncthreads();  // every warp's slot must be written", "  // every warp's slot");
  const lab::Report report = answer_with(without);
  CHECK_FALSE(report.ok());
  const lab::Check& order = check_of(report, "thread_order");
  CHECK_FALSE(order.ok);
  CHECK(contains(order.detail,
                 "With the threads of a block in descending order, row 1 of the "
                 "column '"));
  const int writes = line_with(without, "= value;");
  const int reads = line_with(without, "value = slots[0];");
  const std::string detail = check_of(report, "shared_memory").detail;
  CHECK(contains(detail, "in line " + std::to_string(writes)));
  CHECK(contains(detail, "in line " + std::to_string(reads)));
}

}  // namespace
}  // namespace tilestep::workbench
