#pragma once

#include "kernels/attention/flash_attention/bench.hpp"
#include "kernels/attention/flash_attention/bench_peers.hpp"
#include "kernels/attention/flash_attention/bench_problem.hpp"

/// What the bench has beside its ladders.
namespace tilestep::flash_attention {

/// Bytes of a forward pass in BF16, by formula.
struct MemoryOf {
  double held = 0, scores = 0;  ///< of memory; of that S and P
  double asked = 0, loaded = 0, stored = 0;
};
MemoryOf memory_of(const Plan& plan, const Task& task);

/// Bytes in three columns, and which unit is busy: bench_counts.cpp. Adds the tables `bytes`, `pipes` and `resources`
/// to the bench's report; of the first two none where there are no counters.
void add_counts(lab::Bench& bench, const BenchSizes& sizes);

}  // namespace tilestep::flash_attention
