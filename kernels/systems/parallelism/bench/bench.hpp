#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/lab/bench.hpp"
#include "kernels/base/lab/lesson.hpp"
#include "kernels/systems/parallelism/kernels.hpp"
#include "kernels/systems/parallelism/plan.hpp"

namespace tilestep::parallelism {

/// A product that needs the tokens of all ranks: each has a part of them, and some columns of the weights.
struct OverlapShape {
  int tokens = 0, width = 0;
  int inner = 0;  ///< columns of all ranks
};

/// What the bench times.
struct BenchSizes {
  /// Bytes of a rank's message.
  std::vector<std::int64_t> reduced = {1 << 10, 1 << 14, 1 << 16, 1 << 18,
                                       1 << 20, 1 << 24, 1 << 28, 1 << 30};
  /// Bytes that all ranks have together, or a rank adds up parts of, or has for all.
  std::vector<std::int64_t> gathered = reduced, scattered = {1 << 20, 1 << 24, 1 << 28},
                            exchanged = scattered;
  /// Projections to q, k and v, and the first product of an MLP, of 4096 wide models; the latter of a wider one.
  std::vector<OverlapShape> overlapped = {
      {8192, 4096, 12288}, {8192, 4096, 16384}, {8192, 8192, 28672}};
  /// Steps of the planned model, with fewer layers; and of a small one, whose every number is compared.
  std::vector<Cut> cuts = {Cut::data,   Cut::fsdp,     Cut::tensor, Cut::sequence,
                           Cut::expert, Cut::pipeline, Cut::context};
  int tokens = 8192, layers = 4, microbatches = 8;
  int checked_dim = 16;
  bool large_steps = true;  ///< false: the small ones are timed
  /// All at once and as a tree up to here: their room grows with the ranks.
  std::int64_t small = 1 << 20;
  std::vector<int> few_blocks = {1, 4, 16}, many_blocks = {32, 64, 128};
  int threads = 512;
  int samples = 24;
  bool quick = false;

  static BenchSizes of_quick() {
    BenchSizes quick;
    quick.reduced = {1 << 12, 1 << 16, 1 << 20, 1 << 28};
    quick.gathered = quick.scattered = quick.exchanged = {1 << 28};
    quick.overlapped = {{8192, 4096, 16384}};
    quick.cuts = {Cut::data, Cut::tensor};
    quick.few_blocks = {4};
    quick.many_blocks = {64};
    quick.quick = true;
    return quick;
  }
  /// What the emulation does in a moment.
  static BenchSizes tiny() {
    BenchSizes tiny;
    tiny.reduced = {1 << 10, 1 << 12};
    tiny.gathered = {1 << 10, 1 << 12};
    tiny.scattered = tiny.exchanged = {1 << 12};
    tiny.overlapped = {{64, 32, 48}};
    tiny.tokens = 64;
    tiny.layers = 2;
    tiny.microbatches = 4;
    tiny.checked_dim = 4;
    tiny.large_steps = false;
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
