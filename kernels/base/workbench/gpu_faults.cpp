#include "kernels/base/workbench/gpu_faults.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/simt/cuda/cuda_module.hpp"
#include "kernels/base/workbench/fault_lines.hpp"
#include "kernels/base/workbench/guarded.hpp"

namespace tilestep::workbench {
namespace {

std::string said_by_gpu(const GpuFault& fault) {
  return fault.overdue ? fmt::format("on the GPU {}", fault.reason)
                       : fmt::format("the GPU said '{}'", fault.reason);
}

/// What came of the emulation where it did not find the fault.
struct Emulated {
  std::string words;  ///< "a run under emulation found nothing"
  std::vector<lab::Diagnostic> seen;
};

Emulated emulate(const GpuFault& fault, const FaultSearch& search) {
  try {
    const lab::Report report = search.emulate();
    Emulated emulated{"a run under emulation found nothing", {}};
    if (!report.kernel) return emulated;
    for (const lab::Diagnostic& each : report.kernel->diagnostics) {
      if (each.severity == lab::Severity::error) emulated.seen.push_back(each);
    }
    if (!emulated.seen.empty()) {  // two threads and no barrier: perhaps what it comes from
      emulated.words =
          fmt::format("a run under emulation finished, but {}", emulated.seen.front().text);
    }
    return emulated;
  } catch (const lab::SourceError& error) {
    if (ended_by_deadline(error.what()) && !fault.overdue) {
      return {"a run under emulation had not ended in time", {}};  // it is slow: that is no fault
    }
    throw KernelStopped(lab::SourceError(
        fmt::format("{}; {}, and the line was found by running the kernel again under emulation",
                    error.what(), said_by_gpu(fault)),
        error.diagnostics(), error.code()));
  } catch (const Cancelled&) {
    throw;
  } catch (const Error& error) {
    return {fmt::format("a run under emulation was not possible ({})", error.what()), {}};
  }
}

[[noreturn]] void tell_of_finding(const GpuFault& fault, const std::string& path,
                                  const SanitizerFinding& finding, const Emulated& emulated) {
  const std::string sentence =
      with_line(finding.sentence(), finding.line, {.file = {}, .path = path});
  std::vector<lab::Diagnostic> all = {{finding.line, 0, lab::Severity::error, finding.sentence()}};
  all.insert(all.end(), emulated.seen.begin(), emulated.seen.end());
  throw KernelStopped(lab::SourceError(
      fmt::format("{}; {}, {}, and compute-sanitizer found {}", sentence, said_by_gpu(fault),
                  emulated.words, finding.line > 0 ? "the line" : "the thread"),
      std::move(all)));
}

[[noreturn]] void search_for(const GpuFault& fault, const std::string& path,
                             const FaultSearch& search) {
  const Emulated emulated = emulate(fault, search);
  const Sanitized sanitized = search.sanitize();
  if (sanitized.finding) tell_of_finding(fault, path, *sanitized.finding, emulated);
  const std::string who = fault.kernel.empty() ? "the edited kernel" : fault.kernel;
  const std::string what = fault.overdue
                               ? fmt::format("{}: {} on the GPU", who, fault.reason)
                               : fmt::format("{}{}{}", who, simt::kFailedOnGpu, fault.reason);
  std::vector<lab::Diagnostic> all = {{0, 0, lab::Severity::error, what}};
  all.insert(all.end(), emulated.seen.begin(), emulated.seen.end());
  throw KernelStopped(
      lab::SourceError(fmt::format("{}; the line is not known: {}, and compute-sanitizer {}", what,
                                   emulated.words, sanitized.why),
                       std::move(all)));
}

}  // namespace

GpuFault fault_of(const DeviceLost& error) {
  const std::string_view said = error.what(), mark = simt::kFailedOnGpu;
  const std::size_t at = said.find(mark);
  if (at == said.npos) return {"", std::string(said), false};
  return {std::string(said.substr(0, at)), std::string(said.substr(at + mark.size())), false};
}

void tell_of_fault(const GpuFault& fault, const std::string& path, const FaultSearch& search) {
  try {
    search_for(fault, path, search);
  } catch (const Cancelled& error) {
    throw DeviceLost(error.what());  // whose caller must not take this process for a good one
  }
}

}  // namespace tilestep::workbench
