#pragma once

#include "kernels/attention/flash_attention/bench/forward_bench.hpp"
#include "kernels/attention/flash_attention_3/lesson.hpp"

namespace tilestep::flash_attention_3 {

/// What is timed: attention in BF16, batch 1, of random numbers; flash-2 and the rungs for Hopper.
struct BenchSizes : flash_attention::ForwardSizes {
  static BenchSizes of_quick() {
    BenchSizes sizes;
    sizes.make_quick();
    return sizes;
  }
};

/// The bench with these sizes, forward_bench.hpp's tables. The device can time.
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::flash_attention_3
