#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/lab/bench.hpp"
#include "kernels/base/lab/lesson.hpp"
#include "kernels/systems/parallelism/kernels.hpp"

namespace tilestep::parallelism {

/// What the bench times.
struct BenchSizes {
  /// Bytes of a rank's message.
  std::vector<std::int64_t> reduced = {1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20,
                                       1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 30};
  std::vector<std::int64_t> exchanged = {1 << 20, 1 << 24, 1 << 28};
  /// All at once and as a tree up to here: their room grows with the ranks.
  std::int64_t small = 1 << 20;
  std::vector<int> few_blocks = {1, 4, 16}, many_blocks = {32, 64, 128};
  int threads = 512;
  int samples = 24;
  bool quick = false;

  static BenchSizes of_quick() {
    BenchSizes quick;
    quick.reduced = {1 << 12, 1 << 16, 1 << 20, 1 << 28};
    quick.exchanged = {1 << 28};
    quick.few_blocks = {4};
    quick.many_blocks = {64};
    quick.quick = true;
    return quick;
  }
  /// What the emulation does in a moment.
  static BenchSizes tiny() {
    BenchSizes tiny;
    tiny.reduced = {1 << 10, 1 << 12};
    tiny.exchanged = {1 << 12};
    tiny.small = 1 << 10;
    tiny.few_blocks = {1, 2};
    tiny.many_blocks = {2};
    tiny.threads = 64;
    return tiny;
  }
};

/// The bench with these sizes. The device can time. Where ranks have no GPU each, kernels are compared and nothing is
/// timed.
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::parallelism
