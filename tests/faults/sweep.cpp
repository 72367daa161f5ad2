#include "tests/faults/sweep.hpp"

#include <algorithm>
#include <cstdio>

#include "tests/catch.hpp"
#include "tests/part.hpp"

namespace tilestep::tests {

namespace {

/// Which call fails next.
long next_of(const Sweep& sweep, long n) {
  if (n < sweep.dense) return n + 1;
  return std::max(n + 1, static_cast<long>(static_cast<double>(n) * sweep.step));
}

}  // namespace

void check_sweep(const Sweep& sweep) {
  int runs = 0;
  long n = 1;
  Fault fault{sweep.name, sweep.words, ""};
  fault.input = sweep.input;
  fault.always = sweep.always;
  const TemporaryFolder clean_folder;
  const Aftermath clean = run_with(fault, clean_folder.path(), false);
  REQUIRE(clean.outcome.code == 0);
  Part part(sweep.name, 9);
  for (bool met = true; met;) {
    if (part.skips() && n > 1) {
      n = next_of(sweep, n);
      continue;
    }
    fault.rules = sweep.call + "," + std::to_string(n) + (sweep.on ? "+," : ",") +
                  std::to_string(sweep.error) + sweep.where;
    const TemporaryFolder folder;
    const Aftermath after = run_with(fault, folder.path());
    met = after.failures > 0;
    runs += met ? 1 : 0;
    INFO(sweep.name << ", " << fault.rules << ": exit code " << after.outcome.code
                    << "; on standard error: " << after.outcome.err);
    if (!met) CHECK(after.outcome.code == 0);
    if (met) CHECK(std::count(sweep.codes.begin(), sweep.codes.end(), after.outcome.code) == 1);
    if (after.outcome.code == 0 && !sweep.same) {
      const bool failed = contains(after.outcome.out, "\"code\":3,");
      CHECK(failed != contains(after.outcome.out, "\"report\""));
    } else if (after.outcome.code == 0) {
      CHECK((after.outcome.out == clean.outcome.out));
    } else {
      // `bench` has said before where its numbers come from.
      const bool recorded = after.outcome.err.starts_with("tilestep: nothing was measured here");
      const bool both =
          recorded && std::count(after.outcome.err.begin(), after.outcome.err.end(), '\n') == 2;
      check_sentences(after.outcome.err, both ? 2 : 1);
    }
    for (const auto& [name, bytes] : after.files) {
      if (name == kScratch) continue;
      INFO("left: " << name);
      const auto right = clean.files.find(name);
      CHECK((right != clean.files.end() && right->second == bytes));
    }
    // Once a sweep, where a fault has been.
    if (n == 1) check_as(run_with(fault, folder.path(), false), clean);
    n = next_of(sweep, n);
  }
  std::printf("%s: %d faults\n", sweep.name.c_str(), runs);
}

}  // namespace tilestep::tests
