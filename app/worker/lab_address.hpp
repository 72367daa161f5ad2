#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilestep::app {

/// Where kernels run, as `--lab` names it.
struct LabAddress {
  enum class Kind {
    here,     ///< a worker process on this machine
    ssh,      ///< one on another machine, started by the system's ssh
    command,  ///< one that some other command starts: srun, kubectl exec, a container
  };
  Kind kind = Kind::here;
  std::string text = "here";                ///< as it was written
  std::string host;                         ///< of ssh: "ada@gpu1"
  std::vector<std::string> arguments = {};  ///< the program and its arguments; none: here

  /// The worker may be of another build than we are.
  bool elsewhere() const { return kind != Kind::here; }
};

/// `here`, `ssh:[USER@]HOST[:/PATH/OF/tilestep]` or `run:COMMAND ARGUMENTS…`. A command is split into
/// arguments at spaces; '…', "…" and \ keep them together, and no shell ever sees it. TILESTEP_SSH is the
/// command to use in place of `ssh`, split the same way. Throws Error that says what is allowed.
LabAddress parse_lab(std::string_view text);

}  // namespace tilestep::app
