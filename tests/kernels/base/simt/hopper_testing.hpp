#pragma once

// What the tests of Hopper's words share.

#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/kernels/base/simt/testing.hpp"
#include "tests/paths.hpp"

namespace tilestep::simt {

/// Earliest, latest, and in between; the threads in several orders.
inline std::vector<EmulationOptions> all_completions() {
  std::vector<EmulationOptions> all;
  for (const auto order :
       {ThreadOrder::ascending, ThreadOrder::descending, ThreadOrder::shuffled}) {
    all.push_back({.order = order, .os_threads = 1, .completion = Completion::earliest});
    all.push_back({.order = order, .os_threads = 1, .completion = Completion::latest});
    all.push_back({.order = order, .os_threads = 1, .completion = Completion::early_copies});
  }
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    all.push_back({.order = ThreadOrder::shuffled,
                   .seed = seed,
                   .os_threads = 1,
                   .completion = Completion::seeded});
  }
  return all;
}

/// "line 12 of hopper_kernels.cu": the first of that file, beside this one, that has `text`.
inline std::string line_in(const std::string& name, const std::string& text) {
  std::ifstream file(std::string(tilestep::tests::paths::kSource) + "/tests/kernels/base/simt/" +
                     name);
  int number = 1;
  for (std::string line; std::getline(file, line); ++number) {
    if (line.find(text) != std::string::npos) {
      return "line " + std::to_string(number) + " of " + name;
    }
  }
  return "no line with " + text;
}

/// The parts must be in what `act` throws, whenever the hardware does its work and in each order.
template <class Act>
void names(Act act, std::initializer_list<std::string> parts) {
  for (const EmulationOptions& options : all_completions()) {
    const std::string said = outcome_of([&] { act(options); });
    for (const std::string& part : parts) {
      INFO(said);
      INFO(part);
      CHECK(said.find(part) != std::string::npos);
    }
  }
}

}  // namespace tilestep::simt
