#pragma once

#include <vector>

#include "kernels/base/lab/bench.hpp"
#include "kernels/base/lab/lesson.hpp"

namespace tilestep::linear_attention {

/// What the bench times: heads of 128 numbers, batch 1, with gates.
struct BenchSizes {
  int heads = 16, dim = 128;
  std::vector<int> lengths = {512, 1024, 2048, 4096, 8192, 16384, 32768};
  std::vector<int> chunks = {16, 32, 64, 128};
  int chunk_length = 16384;  ///< at which chunks of all sizes are timed
  int longest_recurrent = 16384;
  bool flash = true;  ///< whether flash-3 is timed beside them, where it runs
  bool quick = false;

  static BenchSizes of_quick() { return {.lengths = {1024, 16384}, .chunks = {}, .quick = true}; }
  /// What the emulation does in a moment.
  static BenchSizes tiny() {
    return {.heads = 2,
            .dim = 16,
            .lengths = {40},
            .chunks = {16, 128},
            .chunk_length = 150,
            .longest_recurrent = 40,
            .flash = false};
  }
};

/// The bench with these sizes. The device can time.
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::linear_attention
