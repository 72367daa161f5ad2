#pragma once

#include "kernels/attention/flash_attention/bench/forward_bench.hpp"
#include "kernels/attention/flash_attention/lesson.hpp"

namespace tilestep::flash_attention {

/// What is timed: attention in BF16, batch 1, of random numbers.
struct BenchSizes : ForwardSizes {
  /// Lengths up to which flash-1 is timed, which has a block a head and nothing else to do, and naive, which stores all
  /// scores (further by the memory that they take).
  int longest_flash_1 = 4096, longest_stored = 16384;

  /// At a length that all rungs are timed at.
  static BenchSizes of_quick() {
    BenchSizes sizes;
    sizes.make_quick();
    return sizes;
  }
};

/// The bench with these sizes, forward_bench.hpp's tables. The device can time.
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::flash_attention
