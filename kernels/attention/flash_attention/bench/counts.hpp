#pragma once

#include "kernels/attention/flash_attention/bench/bench.hpp"
#include "kernels/attention/flash_attention/bench/peers.hpp"
#include "kernels/attention/flash_attention/bench/problem.hpp"

/// What the bench has beside its ladders.
namespace tilestep::flash_attention {

/// Bytes that a forward pass asks for, by formula.
double asked_bytes_of(const Plan& plan, const Task& task);

/// Bytes in three columns, and which unit is busy: bench/counts.cpp. Adds the tables `bytes`, `pipes` and `resources`
/// to the bench's report; of the first two none where there are no counters.
void add_counts(lab::Bench& bench, const BenchSizes& sizes);

}  // namespace tilestep::flash_attention
