#pragma once

#include <string>
#include <vector>

namespace tilestep::app {

/// Runs one command of the command line (or opens the window, which is the command when none is
/// named). `arguments` are those after the program's name, `program` the path of tilestep itself,
/// for the worker. The result goes to standard output, everything else to standard error. Returns
/// the exit code: 0 good, 1 a check failed, 2 bad usage or input, 3 something is not there.
int run_cli(const std::vector<std::string>& arguments, const std::string& program);

}  // namespace tilestep::app
