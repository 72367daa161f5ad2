#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/machine/latency_hiding/kernels.hpp"

/// The kernels' expected results, in double and by other means: a chain by its closed form, the ring of the
/// spilling kernel with a copy of it, the chase by its list.
namespace tilestep::latency_hiding {

/// out[thread] of a kernel that computes; `in` as it takes it.
std::vector<double> compute_reference(const Compute& what, std::span<const float> in);
/// The error per element that rounding to FP32 may cause.
double compute_bound(const Compute& what);

/// Nodes that a chase of each warp visits: kProbes each, by levels. `order` is the ring, `starts` three places in it a
/// warp (not nodes).
std::vector<unsigned> chase_reference(std::span<const unsigned> order,
                                      std::span<const unsigned> starts);

/// A ring of `count` nodes in random order, each once.
std::vector<unsigned> random_ring(std::int64_t count, std::int64_t seed);

}  // namespace tilestep::latency_hiding
