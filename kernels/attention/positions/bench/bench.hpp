#pragma once

#include <vector>

#include "kernels/base/lab/bench.hpp"
#include "kernels/base/lab/lesson.hpp"

namespace tilestep::positions {

/// What the bench times: heads of 128 numbers, half split, 32 of queries and 8 of keys and values.
struct BenchSizes {
  int heads = 32, kv_heads = 8, dim = 128;
  std::vector<int> tokens = {1, 16, 256, 2048, 8192};
  int launches = 64;  ///< in a CUDA graph, at most
  int repeats = 256;  ///< launches of one token
  bool quick = false;

  static BenchSizes of_quick() { return {.tokens = {1, 8192}, .quick = true}; }
  /// What the emulation does in a moment.
  static BenchSizes tiny() {
    return {.heads = 3, .kv_heads = 1, .dim = 64, .tokens = {1, 20}, .launches = 2, .repeats = 2};
  }
};

/// The bench with these sizes. The device can time.
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::positions
