#include "kernels/machine/latency_hiding/reference.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/base/lab/random.hpp"

namespace tilestep::latency_hiding {
namespace {

constexpr double kRounding = 0x1p-24;  // of FP32, relative

/// x ← x · kScale + add, `steps` times from x on, by its closed form.
double chain_after(double x, double add, std::int64_t steps) {
  const double power = std::pow(kScale, static_cast<double>(steps));
  return power * x + add * (1 - power) / (1 - kScale);
}
/// How far FP32 may be off there: each step's rounding shrinks with the steps that follow.
double chain_bound(double x, double add) {
  const double most = std::max(std::abs(x), std::abs(add) / (1 - kScale));
  return 2 * kRounding * most / (1 - kScale);
}

/// The spilling kernel's ring, with a copy of it.
double ring_sum(std::span<const float> in, std::size_t thread, std::size_t threads, int rounds) {
  std::vector<double> before(kLive), after(kLive);
  std::iota(before.begin(), before.end(), 0.0);
  for (int round = 0; round < rounds; ++round) {
    const double c = static_cast<double>(in[static_cast<std::size_t>(round) * threads + thread]);
    for (std::size_t i = 0; i < kLive; ++i) {
      // The last seven take what the first have become.
      after[i] = (i + 7 < kLive ? before[i + 7] : after[i + 7 - kLive]) / 2 + c;
    }
    before.swap(after);
  }
  return std::accumulate(before.begin(), before.end(), 0.0);
}

}  // namespace

std::vector<double> compute_reference(const Compute& what, std::span<const float> in) {
  const bool spills = what.kernel == Kernel::spill;
  const auto threads = spills ? static_cast<std::size_t>(what.grid.all_threads()) : in.size();
  const std::int64_t steps = std::int64_t{what.rounds} * what.steps;
  std::vector<double> out;
  out.reserve(threads);
  for (std::size_t i = 0; i < threads; ++i) {
    if (spills) {
      out.push_back(ring_sum(in, i, threads, what.rounds));
      continue;
    }
    const double x = static_cast<double>(in[i]);
    if (what.kernel == Kernel::diverge) {
      const auto arm = static_cast<double>(i % kLanes % static_cast<std::size_t>(what.ways));
      out.push_back(chain_after(x, x + arm, steps));
      continue;
    }
    const int chains = what.kernel == Kernel::tail ? 1 : what.chains;
    double sum = 0;
    for (int c = 0; c < chains; ++c) sum += chain_after(c, x, steps);
    out.push_back(sum);
  }
  return out;
}

double compute_bound(const Compute& what) {
  // The sum in[thread] + arm is rounded too.
  if (what.kernel == Kernel::diverge)
    return chain_bound(1, what.ways) + kRounding * what.ways / (1 - static_cast<double>(kScale));
  if (what.kernel == Kernel::spill) {
    // A number is at most 127 / 2^rounds + 2, and was rounded at that size; then kLive of them are added.
    const double most = kLive * std::pow(0.5, what.rounds) + 2;
    return kRounding * kLive * (2 * (most + 2) + kLive * most);
  }
  if (what.kernel == Kernel::tail) return chain_bound(0, 1);
  // Adding chains up rounds once more for each.
  const int chains = what.chains;
  return chains * (chain_bound(chains, 1) + kRounding * chains * std::max(chains, 4));
}

std::vector<unsigned> chase_reference(std::span<const unsigned> order,
                                      std::span<const unsigned> starts) {
  std::vector<unsigned> visited;
  for (std::size_t warp = 0; warp < starts.size() / 3; ++warp) {
    unsigned place = 0;
    for (int h = 0; h < kHops; ++h) visited.push_back(place = (place * 5 + 3) % kLanes);
    for (std::size_t level = 0; level < 3; ++level) {
      const std::size_t start = starts[3 * warp + level];
      for (std::size_t h = 1; h <= kHops; ++h) visited.push_back(order[(start + h) % order.size()]);
    }
  }
  return visited;
}

std::vector<unsigned> random_ring(std::int64_t count, std::int64_t seed) {
  std::vector<unsigned> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0u);
  std::mt19937 random = lab::generator_of(seed);
  for (std::size_t i = order.size(); i > 2; --i) {
    std::swap(order[i - 1], order[1 + random() % (i - 1)]);  // node 0 stays where walks begin
  }
  return order;
}

}  // namespace tilestep::latency_hiding
