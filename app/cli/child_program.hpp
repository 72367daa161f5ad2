#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tilestep::app {

/// A started program whose output lines are read; its standard error is discarded.
class ChildProgram {
 public:
  /// `words[0]` is the program, looked up in PATH; `extra` is added to the environment. Throws Error
  /// (unavailable).
  ChildProgram(const std::vector<std::string>& words,
               const std::map<std::string, std::string>& extra);
  /// Ends it.
  ~ChildProgram();
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;

  /// Its next line; nothing at the end, or after `limit`.
  std::optional<std::string> read_line(std::chrono::milliseconds limit);
  /// Waits until it ends by itself. Returns what it took of memory at most, in MB; negative: it failed.
  double finish();

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  std::string read_;
};

}  // namespace tilestep::app
