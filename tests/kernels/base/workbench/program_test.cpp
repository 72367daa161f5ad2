// Programs that the workbench starts: what they say, and how they are ended.

#include "kernels/base/workbench/program.hpp"

#include <string>

#include "tests/catch.hpp"

namespace tilestep::workbench {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a program's words, its status and the signal that ended it are told", "[workbench]") {
  const Ran ran = run_program({"sh", "-c", "echo out; echo err >&2; cat; exit 3"}, 20s);
  CHECK(ran.status == 3);
  CHECK(ran.output == "out\nerr\n");
  CHECK_FALSE(ran.timed_out);
  CHECK(run_program({"sh", "-c", "kill -KILL $$"}, 20s).status == 128 + 9);
  CHECK(run_program({"sh", "-c", "echo $LC_ALL"}, 20s).output == "C\n");
  CHECK(run_program({"sh", "-c", "ulimit -v"}, 20s, 512).output == "524288\n");
}

TEST_CASE("a program that takes too long, or that nobody waits for, is ended with its children",
          "[workbench]") {
  const Ran ran = run_program({"sh", "-c", "sleep 600 & sleep 600"}, 50ms);
  CHECK(ran.timed_out);
  CHECK_THROWS_AS(run_program({"sleep", "600"}, 20s, 0, [] { return true; }), Cancelled);
}

TEST_CASE("a program is found by name or by path, or is not there", "[workbench]") {
  const std::string shell = find_program("sh");
  CHECK(shell.ends_with("/sh"));
  CHECK(find_program(shell) == shell);
  CHECK(find_program("no-such-program").empty());
  CHECK(find_program("/no/such/program").empty());
  CHECK(find_program("").empty());
  CHECK(tests::contains(tests::error_of([] { run_program({"/no/such/program"}, 1s); }),
                        "'/no/such/program' cannot be started"));
}

}  // namespace
}  // namespace tilestep::workbench
