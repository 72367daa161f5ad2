#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/edit.hpp"
#include "kernels/base/lab/knob.hpp"

/// NVIDIA's compute-sanitizer, which runs a program's kernels instrumented: where the emulation finds nothing, it
/// names the thread and the line of what goes wrong on a GPU.
namespace tilestep::workbench {

/// Its report of the first error.
struct SanitizerFinding {
  std::string what;  ///< "invalid __global__ write of size 4 bytes; address 0x7f… is out of bounds"
  std::string kernel;         ///< "copy"; empty: it does not say
  std::string thread, block;  ///< "(3,0,0)"; empty: it does not say
  int line = 0;               ///< of the edited source, the innermost; 0: none is in it

  /// "copy: thread (3,0,0) of block (1,0,0): invalid …"
  std::string sentence() const;
};

/// The first finding in its output (compute-sanitizer's documentation, "Understanding memcheck errors"); one in the
/// source `path` before others. Nothing: it has none.
std::optional<SanitizerFinding> finding_in(std::string_view output, std::string_view path);

/// $TILESTEP_COMPUTE_SANITIZER, else compute-sanitizer of PATH, of $CUDA_HOME/bin or of /usr/local/cuda/bin; empty: it is
/// not here.
std::string compute_sanitizer();

/// The run to repeat.
struct SanitizedRun {
  std::string lesson;
  lab::Settings settings;
  lab::KernelEdit edit;
  bool barriers = false;  ///< looks at barriers, not at memory
};

/// The result: a finding, or why there is none, in words that follow "compute-sanitizer": "found nothing".
struct Sanitized {
  std::optional<SanitizerFinding> finding;
  std::string why;
};

/// Runs `tilestep run` of it on the GPU, this program in a process of its own, under compute-sanitizer. `stop` as in
/// run_program: Throws Cancelled when it says so, no other Error.
Sanitized run_sanitized(const SanitizedRun& run, const std::function<bool()>& stop);

/// Whether this process is one that `run_sanitized` has started: it looks for no line itself, and runs kernels in
/// this process, which is the one that is instrumented.
bool is_sanitized();

}  // namespace tilestep::workbench
