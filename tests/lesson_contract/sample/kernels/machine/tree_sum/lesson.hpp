#pragma once

#include <vector>

#include "kernels/lessons.hpp"

/// A block adds up its numbers in a tree: half as many threads in every round.
namespace tilestep::tree_sum {

struct Trace {
  int count = 0;            ///< numbers, a power of two
  int line = 0;             ///< of tree_sum.cu, where a round adds
  std::vector<float> in;    ///< count
  std::vector<float> sums;  ///< rounds × count: what shared memory holds after each round
  int rounds() const { return static_cast<int>(sums.size()) / count; }
};
nlohmann::json to_json(const Trace& trace);
Trace trace_from_json(const nlohmann::json& json);

struct Kernels : simt::KernelSet {
  /// One block of in.count threads; `sums` has room for in.count numbers a round.
  virtual void sum(simt::Device& device, simt::Span<const float> in, simt::Span<float> sums,
                   simt::Span<int> line) const = 0;
};

}  // namespace tilestep::tree_sum
