// What an edited kernel does to the worker that runs it.
#include <cstdlib>

#include "tests/app/process_lab_rig.hpp"
#include "tests/app/text_checks.hpp"

using namespace tilestep;
using namespace tilestep::app;
using namespace tilestep::tests;

TEST_CASE("a wild pointer of an edited kernel ends the worker with its line", "[workbench_run]") {
  const TemporaryFolder cache;
  ::setenv("TILESTEP_CACHE", cache.path().c_str(), 1);
  const auto lab = make_process_lab(options_with());
  const lab::Request wild = edited_request("    *reinterpret_cast<int*>(0x123456789000) = 1;");
  const LabFailure failure = check_failure(*lab, lab->submit(wild));
  CHECK(failure.worker_died);
  check_contains(failure.sentence,
                 "writes address 0x123456789000, where there is no memory (line ");
  CHECK(failure.next == "The worker has ended; the next run starts another.");
  REQUIRE(failure.diagnostics.size() == 1);
  CHECK(failure.diagnostics.front().line > 100);
  check_report(*lab, lab->submit(edited_request()));
  ::unsetenv("TILESTEP_CACHE");
}
