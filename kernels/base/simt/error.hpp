#pragma once

#include <stdexcept>
#include <string>

namespace tilestep {

/// The process exit codes of every tilestep command.
enum class ExitCode {
  good = 0,
  check_failed = 1,  ///< a result disagreed with its reference
  bad_input = 2,     ///< a flag, knob, file or message was wrong; the text names the allowed values
  unavailable = 3,   ///< the device, display or file is not there
};

/// An error that a user can act on: one sentence in plain words, and the exit code that fits it.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& sentence, ExitCode code = ExitCode::bad_input)
      : std::runtime_error(sentence), code_(code) {}

  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// Thrown out of a run that its caller gave up (a newer request, a deadline, Ctrl-C).
class Cancelled : public Error {
 public:
  Cancelled() : Error("the run was cancelled", ExitCode::unavailable) {}
};

/// Thrown when the device does no more work for this process, whatever is asked of it: only another
/// process gets it back. CUDA calls such errors sticky.
class DeviceLost : public Error {
 public:
  explicit DeviceLost(const std::string& sentence) : Error(sentence, ExitCode::check_failed) {}
};

}  // namespace tilestep
