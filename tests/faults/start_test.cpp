// The way to a worker, on the command line: what it takes to start one and to talk to it fails.
#include <signal.h>

#include <cstdio>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/faults/case.hpp"
#include "tests/faults/sweep.hpp"
#include "tests/paths.hpp"

using namespace tilestep::tests;

namespace {

/// The command notes the process that it becomes, so that it can be looked for afterwards.
const std::string kMakeLab = "printf '#!/bin/sh\necho $$ >>@/scratch\nexec %s worker\n' '" +
                             std::string(tilestep::tests::paths::kProgram) + "' >lab; chmod +x lab";
const std::vector<std::string> kRunAtLab = {"run",    "online-softmax", "--backend", "emulated",
                                            "--json", "--lab",          "run:@/lab"};

Fault fault_of(const std::string& rules, int code, std::vector<std::string> says) {
  Fault fault{"run --lab run: " + rules, kRunAtLab, rules, code};
  fault.says = std::move(says);
  fault.always = kMakeLab;
  return fault;
}

/// Nobody is left of what it started.
void check_no_process(const Aftermath& after) {
  const auto started = after.files.find(kScratch);
  if (started == after.files.end()) return;
  std::istringstream lines(started->second);
  for (pid_t pid = 0; lines >> pid;) {
    INFO("process " << pid);
    CHECK(::kill(pid, 0) != 0);
  }
}

}  // namespace

TEST_CASE("a worker that cannot be started, or spoken to, is told of in one sentence",
          "[fault_worker]") {
  if (!can_inject()) return;
  std::vector<Fault> faults;
  const auto add = [&](const std::string& rules, std::vector<std::string> says) {
    faults.push_back(fault_of(rules + ",in:run", 3, std::move(says)));
  };
  const std::string lab = "The lab run:@/lab cannot be reached: ";
  add("spawn,1,11", {lab + "'@/lab' cannot be started: Resource temporarily unavailable"});
  add("spawn,1,12", {lab, "Cannot allocate memory"});
  add("spawn,1,/nowhere/at/all", {lab, "No such file or directory"});
  add("spawn,1,/dev/null", {lab, "Permission denied"});
  for (const char* n : {"1", "2", "3"}) {
    add(std::string("pipe,") + n + ",24", {lab + "'@/lab' cannot be given a pipe: Too many open"});
    add(std::string("pipe,") + n + ",23", {lab, "Too many open files in system"});
  }
  add("eventfd,1,24", {"the worker's event cannot be made: Too many open files"});
  add("thread,1,11", {"no thread that talks to the worker can be started: Resource temporarily"});
  for (const char* n : {"1", "5"}) {
    add(std::string("new,") + n + ",12,aside", {"There is not enough memory to ask the worker"});
  }
  for (const Fault& fault : faults) check_no_process(check_fault(fault));
  std::printf("%zu faults\n", faults.size());
}

TEST_CASE("pipes to a worker that fail are told of, that are interrupted or slow are not",
          "[fault_worker]") {
  if (!can_inject()) return;
  std::vector<Fault> faults;
  const auto add = [&](const std::string& rules, int code, std::vector<std::string> says) {
    faults.push_back(fault_of(rules, code, std::move(says)));
  };
  add("write,1,32,in:run,pipe:", 3, {"The lab run:@/lab cannot be reached"});
  add("write,2,32,in:run,pipe:", 3, {"The lab run:@/lab does not accept the run"});
  add("write,1,5,in:run,pipe:", 3, {"The lab run:@/lab cannot be reached"});
  add("read,1,5,in:run,pipe:", 3, {"The lab run:@/lab cannot be reached"});
  add("poll,1,4,in:run", 0, {});
  add("poll,2,4,in:run", 0, {});
  add("read,1,4,in:run,pipe:", 0, {});
  add("read,1+,short,in:run,pipe:", 0, {});
  add("write,1+,short,in:run,pipe:", 0, {});
  add("write,1+,short,in:worker,pipe:", 0, {});
  for (const Fault& fault : faults) check_no_process(check_fault(fault));
  std::printf("%zu faults\n", faults.size());
}

TEST_CASE("memory that ends while a worker is asked", "[fault_memory]") {
  if (!can_inject()) return;
  check_sweep({"run --lab run:, once",
               kRunAtLab,
               "new",
               ENOMEM,
               false,
               2,
               4,
               {3},
               true,
               {},
               ",in:run",
               kMakeLab});
  check_sweep({"run --lab run:, in the lab's thread, once",
               kRunAtLab,
               "new",
               ENOMEM,
               false,
               1.5,
               24,
               {3},
               true,
               {},
               ",in:run,aside",
               kMakeLab});
}
