// The line of what failed on a GPU: who is asked for it, in which order, and what is told. No GPU is needed.
#include "kernels/base/workbench/gpu_faults.hpp"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "kernels/base/simt/cuda/cuda_module.hpp"
#include "kernels/base/workbench/guarded.hpp"
#include "tests/catch.hpp"

namespace tilestep::workbench {
namespace {

using tests::contains;

const std::string kFaulty = "kernels/memory/coalescing/access.cu";
const std::string kIllegal = "an illegal memory access was encountered (cudaErrorIllegalAddress)";

const GpuFault kFault{"gather", kIllegal, false};
const GpuFault kEndless{"gather", "it had not ended after 10 seconds", true};

lab::SourceError at_line(const std::string& sentence, int line) {
  return {sentence, {{line, 0, lab::Severity::error, sentence}}};
}

/// Who is asked, and what comes of it.
class Search {
 public:
  std::function<lab::Report()> emulate = [] { return lab::Report(); };
  Sanitized sanitized{{}, "found nothing"};
  std::vector<std::string> asked;

  KernelStopped told(const GpuFault& fault) {
    try {
      tell_of_fault(fault, kFaulty,
                    {[this] {
                       asked.emplace_back("emulation");
                       return emulate();
                     },
                     [this] {
                       asked.emplace_back("compute-sanitizer");
                       return sanitized;
                     }});
    } catch (const KernelStopped& stopped) {
      CHECK(stopped.code() == ExitCode::check_failed);
      return stopped;
    }
  }
};

const std::vector<std::string> kEmulationAlone = {"emulation"};
const std::vector<std::string> kBoth = {"emulation", "compute-sanitizer"};

}  // namespace

TEST_CASE("what the emulation finds is told with what the GPU said", "[workbench]") {
  Search search;
  search.emulate = []() -> lab::Report {
    throw KernelStopped(
        at_line("gather: thread (3,0,0) of block (0,0,0) writes (line 58 of access.cu)", 58));
  };
  const KernelStopped stopped = search.told(kFault);
  CHECK(search.asked == kEmulationAlone);
  CHECK(std::string(stopped.what()) ==
        "gather: thread (3,0,0) of block (0,0,0) writes (line 58 of access.cu); the GPU said '" +
            kIllegal + "', and the line was found by running the kernel again under emulation");
  REQUIRE(stopped.diagnostics().size() == 1);
  CHECK(stopped.diagnostics().front().line == 58);
}

TEST_CASE("a kernel that does not end on the GPU does not end under emulation", "[workbench]") {
  Search search;
  const std::string endless =
      "gather: thread (0,0,0) of block (0,0,0) still runs after 10 seconds and was ended; an "
      "endless loop is the likely reason (line 60 of access.cu)";
  search.emulate = [&]() -> lab::Report { throw KernelStopped(at_line(endless, 60)); };
  const std::string told = search.told(kEndless).what();
  CHECK(told == endless +
                    "; on the GPU it had not ended after 10 seconds, and the line was found "
                    "by running the kernel again under emulation");
  CHECK(search.asked == kEmulationAlone);
  // One that failed there is no endless loop: the emulation is only slow.
  search.asked.clear();
  const KernelStopped stopped = search.told(kFault);
  CHECK(search.asked == kBoth);
  CHECK(!contains(stopped.what(), "endless"));
  CHECK(contains(stopped.what(), "a run under emulation had not ended in time"));
  CHECK(stopped.diagnostics().front().line == 0);
}

TEST_CASE("what the GPU alone has is found by compute-sanitizer", "[workbench]") {
  Search search;
  search.sanitized = {SanitizerFinding{"invalid __global__ write of size 4 bytes", "gather",
                                       "(3,0,0)", "(1,0,0)", 61},
                      ""};
  const KernelStopped stopped = search.told(kFault);
  CHECK(search.asked == kBoth);
  CHECK(std::string(stopped.what()) ==
        "gather: thread (3,0,0) of block (1,0,0): invalid __global__ write of size 4 bytes (line "
        "61 of access.cu); the GPU said '" +
            kIllegal +
            "', a run under emulation found nothing, and compute-sanitizer found the line");
  REQUIRE(stopped.diagnostics().size() == 1);
  CHECK(stopped.diagnostics().front().line == 61);
}

TEST_CASE("where nobody finds the line that is said, with what each of them did", "[workbench]") {
  Search search;
  search.sanitized.why = "is not installed here";
  search.emulate = []() -> lab::Report {
    throw Error("there is no g++ here", ExitCode::unavailable);
  };
  CHECK(std::string(search.told(kFault).what()) ==
        "gather: the kernel failed on the GPU: " + kIllegal +
            "; the line is not known: a run under emulation was not possible (there is no "
            "g++ here), and compute-sanitizer is not installed here");
  search.emulate = [] { return lab::Report(); };
  CHECK(std::string(search.told({"", "it had not ended after 10 seconds", true}).what()) ==
        "the edited kernel: it had not ended after 10 seconds on the GPU; the line is not known: a "
        "run under emulation found nothing, and compute-sanitizer is not installed here");
}

TEST_CASE("two threads without a barrier under emulation are named beside the GPU's error",
          "[workbench]") {
  Search search;
  search.emulate = [] {
    lab::Report report;
    report.kernel.emplace().diagnostics = {{7, 0, lab::Severity::error, "thread 1 reads"},
                                           {9, 0, lab::Severity::warning, "unused"}};
    return report;
  };
  const KernelStopped stopped = search.told(kFault);
  CHECK(contains(stopped.what(), "finished, but thread 1 reads"));
  REQUIRE(stopped.diagnostics().size() == 2);
  CHECK(stopped.diagnostics().back().line == 7);
}

TEST_CASE("a search that is given up leaves a process that is no good any more", "[workbench]") {
  const FaultSearch search{[]() -> lab::Report { throw Cancelled(); }, [] { return Sanitized(); }};
  CHECK_THROWS_AS(tell_of_fault(kFault, kFaulty, search), DeviceLost);
}

TEST_CASE("the device's sentence is kernel and reason", "[workbench]") {
  const GpuFault fault =
      fault_of(DeviceLost("gather" + std::string(simt::kFailedOnGpu) + kIllegal));
  CHECK(fault.kernel == "gather");
  CHECK(fault.reason == kIllegal);
  CHECK(fault_of(DeviceLost("the GPU did not answer")).reason == "the GPU did not answer");
}

}  // namespace tilestep::workbench
