#pragma once

#include <vector>

#include "kernels/attention/kv_cache/bench/paged_problem.hpp"

namespace tilestep::paged_kv {

/// What the bench times: a step of decoding, BF16, 32 query heads of 128 that share 4 K/V heads.
struct BenchSizes {
  kv_cache::Step step;
  std::vector<int> page_sizes = {1, 4, 16, 64, 256};
  std::vector<int> prefixes = {2048, 4096, 7168};  ///< tokens that all requests have in common
  double settle_ms = 150;
  bool quick = false;  ///< pages alone

  /// What the emulation does in a moment.
  static BenchSizes tiny() {
    return {.step = {.heads = 4, .kv_heads = 2, .batch = 3, .context = 40},
            .page_sizes = {1, 16},
            .prefixes = {32}};
  }
};

/// The bench with these sizes. The device can time.
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::paged_kv
