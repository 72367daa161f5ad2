#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "app/cli/command.hpp"
#include "app/worker/sandbox.hpp"
#include "app/worker/worker_loop.hpp"
#include "kernels/base/simt/error.hpp"

namespace tilestep::app {
namespace {

int work() {
  ::prctl(PR_SET_NAME, "tilestep");  // started as /proc/self/exe it would be called "exe"
  give_up_system_calls();
  // Messages get a descriptor of their own: what a library prints must not land among them.
  const int output = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (output < 0) {
    throw Error("the worker has no standard output to answer on", ExitCode::unavailable);
  }
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  const int code = worker_loop(STDIN_FILENO, output);
  ::close(output);
  return code;
}

}  // namespace

void add_worker(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand(
      "worker", "Read one JSON request per line (at most 4 MiB), write one JSON message per line");
  command->callback([&invocation] { invocation.action = work; });
}

}  // namespace tilestep::app
