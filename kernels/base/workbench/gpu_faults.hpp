#pragma once

#include <functional>
#include <string>

#include "kernels/base/lab/report.hpp"
#include "kernels/base/workbench/compute_sanitizer.hpp"

/// A GPU reports that a kernel failed, but not where. The same source is run again by tools that can.
namespace tilestep::workbench {

/// The GPU's report of an edited kernel that did not finish.
struct GpuFault {
  std::string kernel;    ///< the last one launched; empty: none is known
  std::string reason;    ///< "an illegal memory access was encountered (cudaErrorIllegalAddress)"
  bool overdue = false;  ///< it did not end; the reason then is "it had not ended after 10 seconds"
};
/// The fault that the device's DeviceLost tells.
GpuFault fault_of(const DeviceLost& error);

/// Who can say it, in this order.
struct FaultSearch {
  /// The same run under emulation. Throws lab::SourceError with the line, or another Error where it cannot be had.
  std::function<lab::Report()> emulate;
  std::function<Sanitized()> sanitize;
};

/// Throws KernelStopped: kernel, block, thread and line where one of the search finds them, with what the GPU said;
/// else that alone, and that none of them found the line. Throws DeviceLost where the search was given up: either way
/// this process can use the GPU no more. `path` is the edited source's.
[[noreturn]] void tell_of_fault(const GpuFault& fault, const std::string& path,
                                const FaultSearch& search);

}  // namespace tilestep::workbench
