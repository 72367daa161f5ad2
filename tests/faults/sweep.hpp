#pragma once

#include <cerrno>

#include "tests/faults/case.hpp"

namespace tilestep::tests {

/// A command whose n-th call of a kind fails, for n = 1, 2, 3, … until it has made all its calls: all of the
/// first ones, then ever fewer, since there are tens of thousands.
struct Sweep {
  std::string name;
  std::vector<std::string> words;
  std::string call;  ///< of shim.cpp's rules
  int error = ENOMEM;
  bool on = false;  ///< all from the n-th on fail
  double step = 1;  ///< factor from one n to the next, once they are larger than `dense`
  long dense = 1'000'000;
  std::vector<int> codes = {3};  ///< that a failure may exit with; 0 where it is no reason to fail
  bool same =
      true;  ///< what exits with 0 gives what a good run gives; else an answer says what failed
  std::string input = {};
  std::string where = {};   ///< more words of the rule: ",in:run"
  std::string always = {};  ///< as of a Fault
};

/// Runs all of a sweep. A run whose fault was not met must have gone well, and ends the sweep; afterwards the
/// command without a fault is right.
void check_sweep(const Sweep& sweep);

}  // namespace tilestep::tests
