#include "kernels/machine/latency_hiding/reference.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/base/lab/random.hpp"

namespace tilestep::latency_hiding {
namespace {

constexpr double kRounding = 0x1p-24;  // of FP32, relative

}  // namespace

double chain_after(double x, double scale, double add, std::int64_t steps) {
  const double power = std::pow(scale, static_cast<double>(steps));
  return power * x + add * (1 - power) / (1 - scale);
}

double chain_bound(double x, double scale, double add) {
  const double most = std::max(std::abs(x), std::abs(add) / (1 - scale));
  return 2 * kRounding * most / (1 - scale);
}

std::vector<double> fma_reference(std::span<const float> in, int chains, std::int64_t steps) {
  std::vector<double> out;
  out.reserve(in.size());
  for (const float add : in) {
    double sum = 0;
    for (int c = 0; c < chains; ++c) sum += chain_after(c, kScale, static_cast<double>(add), steps);
    out.push_back(sum);
  }
  return out;
}

double fma_bound(int chains) {
  // Adding them up rounds once more for each.
  return chains * (chain_bound(chains, kScale, 1) + kRounding * chains * std::max(chains, 4));
}

std::vector<double> spill_reference(std::span<const float> in, std::int64_t threads, int rounds) {
  std::vector<double> out;
  std::vector<double> before(kLive), after(kLive);
  for (std::int64_t thread = 0; thread < threads; ++thread) {
    std::iota(before.begin(), before.end(), 0.0);
    for (int round = 0; round < rounds; ++round) {
      const double c = static_cast<double>(in[static_cast<std::size_t>(round * threads + thread)]);
      for (std::size_t i = 0; i < kLive; ++i) {
        // The last seven take what the first have become.
        after[i] = (i + 7 < kLive ? before[i + 7] : after[i + 7 - kLive]) / 2 + c;
      }
      before.swap(after);
    }
    out.push_back(std::accumulate(before.begin(), before.end(), 0.0));
  }
  return out;
}

double spill_bound(int rounds) {
  // A number is at most 127 / 2^rounds + 2, and was rounded at that size; then kLive of them are added.
  const double most = kLive * std::pow(0.5, rounds) + 2;
  return kRounding * kLive * (2 * (most + 2) + kLive * most);
}

std::vector<double> diverge_reference(std::span<const float> in, int ways, std::int64_t steps) {
  std::vector<double> out;
  out.reserve(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double start = static_cast<double>(in[i]);
    const auto arm = static_cast<double>(i % kLanes % static_cast<std::size_t>(ways));
    out.push_back(chain_after(start, kScale, start + arm, steps));
  }
  return out;
}

double diverge_bound(int ways) {
  // The sum in[thread] + arm is rounded too.
  return chain_bound(1, kScale, ways) + kRounding * ways / (1 - static_cast<double>(kScale));
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
