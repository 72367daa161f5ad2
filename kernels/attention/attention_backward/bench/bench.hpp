#pragma once

#include <vector>

#include "kernels/attention/attention_backward/lesson.hpp"
#include "kernels/attention/shared/bench/bench.hpp"

namespace tilestep::attention_backward {

/// What is timed: the gradients of attention in BF16, batch 1, of random numbers.
struct BenchSizes {
  std::vector<int> lengths = {4096, 16384};
  std::vector<int> head_dims = {64, 128};  ///< of them, each with so many heads
  std::vector<int> heads = {32, 16};
  BenchPace pace = {};
  bool quick = false;

  /// What the emulation does in a moment.
  static BenchSizes tiny() {
    return {.lengths = {136}, .heads = {2, 1}, .pace = {.rounds = 1, .peers = false}};
  }
  static BenchSizes of_quick() {
    return {.lengths = {4096}, .head_dims = {128}, .heads = {16}, .quick = true};
  }
};

/// The bench with these sizes. The device can time.
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::attention_backward
