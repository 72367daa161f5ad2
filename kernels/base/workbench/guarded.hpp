#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string_view>

#include "kernels/base/lab/report.hpp"
#include "kernels/base/workbench/fault_lines.hpp"

namespace tilestep::workbench {

/// What a run's progress says while it is compiled, and from then on: its deadline counts from there.
inline constexpr std::string_view kCompiling = "compiling your kernel";
inline constexpr std::string_view kRunning = "running your kernel";
/// The same of a kernel that failed on a GPU, while its line is looked for: each has a deadline of its own.
inline constexpr std::string_view kEmulating =
    "the GPU failed: running your kernel again under emulation to find the line";
inline constexpr std::string_view kSanitizing =
    "the GPU failed: running your kernel again under compute-sanitizer to find the line";

/// Limits on a run of an edited kernel under emulation.
struct RunLimits {
  std::chrono::milliseconds deadline = std::chrono::seconds(10);
  std::size_t memory_bytes = std::size_t{4} << 30;  ///< beyond what the process has before
};

/// The Error of a kernel that was stopped in the middle of something: this process should say so, and end.
class KernelStopped final : public lab::SourceError {
 public:
  explicit KernelStopped(const lab::SourceError& error) : lab::SourceError(error) {}
};

/// Whether what a run of an edited kernel under emulation was told is that its time was up.
bool ended_by_deadline(std::string_view sentence);

/// Calls `run`, which makes a device of the module's kernels and runs a lesson on it. Throws lab::SourceError with the
/// line of what goes wrong in the edited source, KernelStopped for a wild pointer, an overflowing stack and the
/// like, and for a thread that still runs at the deadline; Error (unavailable) where the memory is not enough.
/// Where two threads use the same shared memory with no barrier between, the report's check `shared_memory` fails and
/// its kernel has a diagnostic at that line.
lab::Report guarded(const EditedModule& module, const std::function<lab::Report()>& run,
                    const RunLimits& limits = {});

}  // namespace tilestep::workbench
