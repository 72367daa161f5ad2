#pragma once

#include <vector>

#include "kernels/base/lab/bench.hpp"
#include "kernels/base/lab/lesson.hpp"
#include "kernels/systems/launches/kernels.hpp"

namespace tilestep::launches {

/// What the bench times.
struct BenchSizes {
  StepShape model{
      .width = 2048, .inner = 8192, .batch = 1, .layers = 16};  ///< 100 MB of weights per layer
  std::vector<int> batches = {1, 4};
  int launches = 256;     ///< in a row
  int waits = 400;        ///< samples of a launch that the host waits for
  std::vector<int> rows;  ///< m of the staircase; empty: those round the tiles' edges
  int n = 4096, k = 4096;
  ProductShape streamed{.rows = 65536, .k = 8192, .batch = 1};  ///< a product that memory bounds
  bool peers = true;                                            ///< PyTorch is asked
  bool quick = false;

  static BenchSizes of_quick() {
    BenchSizes quick;
    quick.batches = {1};
    quick.rows = {128, 129, 2048, 2049};
    quick.quick = true;
    quick.peers = false;
    return quick;
  }
  /// What the emulation does in a moment.
  static BenchSizes tiny() {
    BenchSizes tiny;
    tiny.model = {.width = 64, .inner = 128, .batch = 1, .layers = 2};
    tiny.batches = {1, 3};
    tiny.launches = 4;
    tiny.waits = 20;
    tiny.rows = {3, 130};
    tiny.n = 256;
    tiny.k = 64;
    tiny.streamed = {.rows = 40, .k = 64, .batch = 1};
    tiny.peers = false;
    return tiny;
  }
};

/// The bench with these sizes. The device can time.
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

/// The table `compilers`: the step by PyTorch, or in `compilers_missing` a sentence why not.
void add_compilers(lab::Bench& bench, const BenchSizes& sizes, double share);
/// The table `head_dims`: attention by PyTorch with one head dimension after another; no rows without it.
void add_head_dims(lab::Bench& bench, const BenchSizes& sizes, double share);

}  // namespace tilestep::launches
