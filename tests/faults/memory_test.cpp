#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include "tests/catch.hpp"
#include "tests/faults/case.hpp"
#include "tests/faults/sweep.hpp"

using namespace tilestep::tests;

namespace {

const std::vector<std::string> kRunAsJson = {"run", "online-softmax", "--backend", "emulated",
                                             "--json"};
const std::vector<std::string> kCapsule = {"run",      "online-softmax", "--backend",
                                           "emulated", "--capsule",      "@/a.tilestep.json"};
const std::vector<std::string> kSvgOfStart = {"shot",     "online-softmax", "--force", "--backend",
                                              "emulated", "--out",          "@/a.svg"};
const std::vector<std::string> kPng = {"shot",     "online-softmax", "--force", "--backend",
                                       "emulated", "--out",          "@/a.png"};
const std::vector<std::string> kSheet = {"worksheet", "online-softmax", "--force", "--seed",
                                         "3",         "--out",          "@/sheets"};

}  // namespace

TEST_CASE("memory that ends at the n-th request", "[fault_memory]") {
  if (!can_inject()) return;
  const Sweep sweeps[] = {
      {"--version, once", {"--version"}, "new", ENOMEM, false, 1.3, 20},
      {"--help, from then on", {"--help"}, "new", ENOMEM, true, 1.6, 8},
      {"list --json, once", {"list", "--json"}, "new", ENOMEM, false, 2, 8},
      {"run, once", kRunAsJson, "new", ENOMEM, false, 1.35, 12},
      {"run, from then on", kRunAsJson, "new", ENOMEM, true, 1.35, 12},
      {"run --capsule, once", kCapsule, "new", ENOMEM, false, 1.7, 4},
      {"bench, once", {"bench", "online-softmax", "--json"}, "new", ENOMEM, false, 2, 4},
      {"shot, once", kSvgOfStart, "new", ENOMEM, false, 2, 4},
      {"shot PNG, malloc, once", kPng, "malloc", ENOMEM, false, 4, 1},
      {"worksheet, from then on", kSheet, "new", ENOMEM, true, 3, 4},
      {"doctor, once", {"doctor"}, "ownnew", ENOMEM, false, 4, 2},
  };
  for (const Sweep& sweep : sweeps) check_sweep(sweep);
}

TEST_CASE("stacks of kernel threads that the system does not give", "[fault_memory]") {
  if (!can_inject()) return;
  check_sweep({"run, once", kRunAsJson, "mmap", ENOMEM, false, 1.5, 24});
  check_sweep({"run, from then on", kRunAsJson, "mmap", ENOMEM, true, 1.5, 24});
}

TEST_CASE("threads that the system does not start", "[fault_memory]") {
  if (!can_inject()) return;
  // With one of them a run goes on, and gives the same.
  check_sweep({"run, once", kRunAsJson, "thread", EAGAIN, false, 1, 1000, {0, 3}});
  check_sweep({"run, from then on", kRunAsJson, "thread", EAGAIN, true, 1, 1000, {0, 3}});
  check_sweep({"shot, once", kSvgOfStart, "thread", EAGAIN, false, 1, 1000, {0, 3}});
  check_sweep({"worker, once",
               {"worker"},
               "thread",
               EAGAIN,
               false,
               1,
               1000,
               {0, 3},
               false,
               "{\"ticket\": 7, \"lesson\": \"online-softmax\", \"backend\": \"emulated\"}\n"});
}

TEST_CASE("a pool that gets its first thread alone runs on it, and says what it lacks without any",
          "[fault_memory]") {
  if (!can_inject()) return;
  Fault one{"no second thread",
            {"run", "coalescing", "--backend", "emulated", "--json"},
            "thread,2+,11",
            0};
  const TemporaryFolder folder;
  for (int i = 0; i < 5; ++i) {  // it was a race
    const Aftermath after = run_with(one, folder.path());
    INFO(after.outcome.err);
    CHECK(after.outcome.code == 0);
  }
  Fault none{"no thread", kRunAsJson, "thread,1+,11"};
  none.says = {"no thread can be started for the kernels", "Resource temporarily unavailable",
               "ulimit -u"};
  check_fault(none);
}

TEST_CASE("limits of the system", "[fault_memory]") {
  std::vector<Fault> faults;
  const auto limit = [&](const std::string& name, std::vector<std::string> words,
                         const std::string& before) {
    Fault fault{name, std::move(words), ""};
    fault.before = before;
    faults.push_back(fault);
  };
  limit("three descriptors", kCapsule, "ulimit -n 3");
  for (const Fault& fault : faults) {
    const TemporaryFolder folder;
    const Aftermath after = run_with(fault, folder.path());
    INFO(fault.name << ": " << after.outcome.err);
    CHECK(after.outcome.code != 134);
  }
  // Whatever the address space: a result that is right, or one sentence.
  const TemporaryFolder clean_folder;
  Fault fault{"address space",
              {"run", "online-softmax", "--backend", "emulated", "--json", "--set", "preset=random",
               "--set", "keys=1024"},
              ""};
  const Aftermath clean = run_with(fault, clean_folder.path(), false);
  int runs = 0;
  for (int kilobytes = 80'000; kilobytes < 1'500'000; kilobytes = kilobytes * 5 / 4) {
    fault.before = "ulimit -v " + std::to_string(kilobytes);
    const TemporaryFolder folder;
    const Aftermath after = run_with(fault, folder.path());
    INFO(kilobytes << " KB: exit code " << after.outcome.code << ": " << after.outcome.err);
    // The system itself may not load the program, and says so: 126, 127.
    if (after.outcome.code == 127 || after.outcome.code == 126) continue;
    ++runs;
    CHECK((after.outcome.code == 0 || after.outcome.code == 3));
    if (after.outcome.code == 0) CHECK((after.outcome.out == clean.outcome.out));
    if (after.outcome.code == 3) check_sentences(after.outcome.err);
  }
  std::printf("%d faults\n", runs);
}
