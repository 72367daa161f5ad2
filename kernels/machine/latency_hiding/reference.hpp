#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/machine/latency_hiding/kernels.hpp"

/// The kernels' expected results, in double and by other means: a chain by its closed form, the ring of the
/// spilling kernel with a copy of it, the chase by its list.
namespace tilestep::latency_hiding {

/// x ← x · scale + add, `steps` times from x on.
double chain_after(double x, double scale, double add, std::int64_t steps);
/// How far FP32 may be off there: each step's rounding shrinks with the steps that follow.
double chain_bound(double x, double scale, double add);

/// out[thread] of the kernels. `in` as the kernel takes it.
std::vector<double> fma_reference(std::span<const float> in, int chains, std::int64_t steps);
std::vector<double> spill_reference(std::span<const float> in, std::int64_t threads, int rounds);
std::vector<double> diverge_reference(std::span<const float> in, int ways, std::int64_t steps);
/// The error per element that rounding to FP32 may cause.
double fma_bound(int chains);
double spill_bound(int rounds);
double diverge_bound(int ways);

/// Nodes that a chase of each warp visits: kProbes each, by levels. `order` is the ring, `starts` three places in it a
/// warp (not nodes).
std::vector<unsigned> chase_reference(std::span<const unsigned> order,
                                      std::span<const unsigned> starts);

/// A ring of `count` nodes in random order, each once.
std::vector<unsigned> random_ring(std::int64_t count, std::int64_t seed);

}  // namespace tilestep::latency_hiding
