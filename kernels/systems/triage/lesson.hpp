#pragma once

#include <vector>

#include "kernels/lessons.hpp"

/// A block adds up its numbers in a tree: half as many threads in every round.
namespace tilestep::triage {

struct Trace {
  int rounds = 0;
  std::vector<float> sums;  ///< a row of what the threads hold at first, and one after each round
  int threads() const { return 1 << rounds; }
  lab::When since(std::size_t cell) const { return {static_cast<int>(cell) / threads(), 0}; }
  int cells() const { return (rounds + 1) * threads(); }
  float sum(int round, int thread) const { return sums[round * threads() + thread]; }
  /// How many threads have added in a round: their sums have grown.
  int adding(int round) const {
    int count = 0;
    for (int i = 0; round > 0 && i < threads(); ++i) count += sum(round, i) > sum(round - 1, i);
    return count;
  }
};

}  // namespace tilestep::triage
