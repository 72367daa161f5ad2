#include "app/cli/interrupt.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"

using namespace tilestep::tests;
using namespace std::chrono_literals;

namespace {

/// True once the program has a handler for SIGINT: it runs a lesson.
bool takes_interrupts(pid_t pid) {
  const std::string status = file_text("/proc/" + std::to_string(pid) + "/status");
  const std::size_t at = status.find("SigCgt:");
  if (at == std::string::npos) return false;
  return (std::stoull(status.substr(at + 7), nullptr, 16) & (1ull << (SIGINT - 1))) != 0;
}

}  // namespace

TEST_CASE("Ctrl-C in the command line cancels the run and ends as by the signal", "[cli]") {
  Child child({tilestep::tests::paths::kProgram, "run", "online-softmax", "--backend", "emulated",
               "--json", "--set", "preset=random", "--set", "keys=65536", "--set",
               "tile_width=1024", "--set", "head_dim=128"});
  REQUIRE(eventually([&] { return takes_interrupts(child.pid()); }));
  ::kill(child.pid(), SIGINT);
  CHECK(child.finish(60s) == 128 + SIGINT);
  CHECK(child.out().empty());
  CHECK(child.err() == "tilestep: the run was cancelled\n");
}

TEST_CASE("the first Ctrl-C is remembered, the second ends the program", "[cli]") {
  const pid_t child = ::fork();
  if (child == 0) {
    const tilestep::app::Interrupt interrupt;
    if (interrupt.pressed()) ::_exit(1);
    ::raise(SIGINT);
    if (!interrupt.pressed()) ::_exit(2);
    ::raise(SIGINT);
    ::_exit(3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 128 + SIGINT);
}

TEST_CASE("where Ctrl-C is meant for others it stays ignored", "[cli]") {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGINT, SIG_IGN);
    {
      const tilestep::app::Interrupt interrupt;
      ::raise(SIGINT);
      if (interrupt.pressed()) ::_exit(1);
    }
    ::raise(SIGINT);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}
