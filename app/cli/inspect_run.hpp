#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/report.hpp"

namespace tilestep::app {

/// How a compiled program runs: in a process of its own, and in a sandbox unless it is trusted.
struct ProgramPlan {
  std::string program;             ///< path of tilestep itself
  std::string name;                ///< file name of the source, without its folder
  std::vector<std::string> words;  ///< arguments of its main
  int orders = 2;                  ///< other orders of its threads
  int seconds = 10;
  bool trust = false;
  std::function<bool()> stop = {};  ///< asked now and then; true ends the run
};

/// Runs the program that `module` holds, and if it has no mistake, again with its threads in other orders. Throws Error
/// (check_failed) for a program that leaves no report, Cancelled.
lab::Report run_compiled(const ProgramPlan& plan, const std::filesystem::path& module);

/// The same for the text of another person's program. The sandbox compiles it too, and sees no files beside it. Throws SourceError with the lines at fault for a text that does not compile.
lab::Report run_in_sandbox(const ProgramPlan& plan, std::string_view text);

/// The output of the program, as its report has it.
std::string printed_by(const lab::Report& report);

}  // namespace tilestep::app
