#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace tilestep::workbench {

/// The outcome of a program.
struct Ran {
  int status = -1;         ///< exit status; 128 + n where signal n ended it
  std::string output;      ///< both streams, at most kMostOutput bytes
  bool timed_out = false;  ///< it was ended for taking too long
};
inline constexpr std::size_t kMostOutput = std::size_t{64} << 20;

/// Runs `words[0]`, looked up in PATH, in a process group of its own with at most `memory_mb` of address
/// space (0: no limit), in English, with no input, and waits. `stop` is asked now and then: when it answers true the
/// program is ended and Cancelled is thrown. Throws Error (unavailable) where it cannot be started.
Ran run_program(const std::vector<std::string>& words, std::chrono::milliseconds limit,
                int memory_mb = 0, const std::function<bool()>& stop = {});

/// Where a program of this name lies in PATH; empty: nowhere. A name with a slash is taken as it is.
std::string find_program(const std::string& name);

}  // namespace tilestep::workbench
