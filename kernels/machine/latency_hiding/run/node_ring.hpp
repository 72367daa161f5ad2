#pragma once

#include "kernels/machine/latency_hiding/reference.hpp"

namespace tilestep::latency_hiding {

/// A ring of nodes on a device, in random order.
class NodeRing {
 public:
  NodeRing(simt::Device& device, std::int64_t count, std::int64_t seed)
      : order_(random_ring(count, seed)), nodes_(device, order_.size()) {
    const simt::Buffer<unsigned> order(device, order_);
    kernels_of(device).link(device, nodes_.span(), order.span());
    device.synchronize();
  }

  std::int64_t count() const { return static_cast<std::int64_t>(order_.size()); }
  const std::vector<unsigned>& order() const { return order_; }
  simt::Span<const Node> nodes() const { return nodes_.span(); }
  unsigned node_at(std::int64_t place) const {
    return order_[static_cast<std::size_t>(place % count())];
  }
  /// What a chase visited, as numbers instead of addresses; the first kHops of each warp are places in shared memory.
  std::vector<unsigned> numbers(std::vector<unsigned long long> visited) const {
    const auto origin = reinterpret_cast<std::uintptr_t>(nodes_.span().data);
    for (std::size_t i = 0; i < visited.size(); ++i) {
      if (i % kProbes >= kHops) visited[i] = (visited[i] - origin) / sizeof(Node);
    }
    return {visited.begin(), visited.end()};
  }

 private:
  std::vector<unsigned> order_;
  simt::Buffer<Node> nodes_;
};

}  // namespace tilestep::latency_hiding
