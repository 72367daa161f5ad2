#include "kernels/experts/moe_routing/grouped.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

namespace tilestep::moe_routing {
namespace {

/// Whole numbers in proportion to `weights` that add up to `total`: each share is rounded down, and
/// the rest goes to the largest remainders.
std::vector<int> apportion(std::span<const double> weights, int total) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int> counts;
  std::vector<double> remainders;
  for (const double weight : weights) {
    const double share = weight / sum * total;
    counts.push_back(static_cast<int>(share));
    remainders.push_back(share - std::floor(share));
  }
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  int left = total - std::accumulate(counts.begin(), counts.end(), 0);
  for (std::size_t i = 0; left > 0; i = (i + 1) % order.size(), --left) ++counts[order[i]];
  return counts;
}

}  // namespace

std::vector<int> top1_counts(Routing routing, double skew, int tokens, int experts) {
  if (tokens < 0 || experts < 1) {
    throw Error("moe-routing: " + std::to_string(tokens) + " tokens for " +
                std::to_string(experts) + " experts; it takes 0 tokens or more, 1 expert or more");
  }
  std::vector<double> weights(static_cast<std::size_t>(experts), 1.0);
  switch (routing) {
    case Routing::balanced:
      break;
    case Routing::skewed:
      for (std::size_t e = 0; e < weights.size(); ++e) {
        weights[e] = std::pow(static_cast<double>(e) + 1, -skew);
      }
      break;
    case Routing::one_hot:
      std::fill(weights.begin() + 1, weights.end(), 0.0);
      break;
    case Routing::random:
    case Routing::custom:
      throw Error("moe-routing: the counts of '" + std::string(name_of(routing)) +
                  "' come from the router; without one: balanced, skewed, one-hot");
  }
  return apportion(weights, tokens);
}

std::int64_t GroupedLayout::kept_tokens() const {
  return std::accumulate(kept.begin(), kept.end(), std::int64_t{0});
}

GroupedLayout layout_of(std::span<const int> kept, Scheme scheme, int tile) {
  assert(tile > 0 && !kept.empty());
  GroupedLayout layout{scheme, tile, {kept.begin(), kept.end()}, {0}, {0}};
  const int most = *std::max_element(kept.begin(), kept.end());
  std::int64_t slots = 0;
  for (const int count : kept) {
    const int multiplied = scheme == Scheme::padded_to_capacity ? most : count;
    const std::int64_t tiles = (std::int64_t{multiplied} + tile - 1) / tile;
    slots += scheme == Scheme::packed ? count : tiles * tile;
    if (slots > std::numeric_limits<int>::max()) {
      throw Error("moe-routing: " + std::string(name_of(scheme)) +
                  " would lay out more than 2147483647 slots");
    }
    layout.first_slot.push_back(static_cast<int>(slots));
    layout.first_tile.push_back(layout.first_tile.back() + static_cast<int>(tiles));
  }
  return layout;
}

std::vector<int> tails_last(const GroupedLayout& layout, int tiles_across) {
  std::vector<int> order, rows;
  for (int e = 0; e < layout.experts(); ++e) {
    const auto at = static_cast<std::size_t>(e);
    const int first = layout.first_tile[at];
    const int down = layout.first_tile[at + 1] - first;
    for (int i = 0; i < down * tiles_across; ++i) {
      order.push_back(first * tiles_across + i);
      const int tile = tile_down(i, down, tiles_across);
      rows.push_back(std::min(layout.kept[at] - tile * layout.tile, layout.tile));
    }
  }
  std::vector<int> by_rows(order.size());
  std::iota(by_rows.begin(), by_rows.end(), 0);
  std::stable_sort(by_rows.begin(), by_rows.end(), [&](int a, int b) {
    return rows[static_cast<std::size_t>(a)] > rows[static_cast<std::size_t>(b)];
  });
  for (int& i : by_rows) i = order[static_cast<std::size_t>(i)];
  return by_rows;
}

numeric::Bounded grouped_element(std::span<const std::uint16_t> w, std::span<const std::uint16_t> x,
                                 numeric::Adding adding) {
  assert(w.size() == x.size());
  numeric::RunningSum sum(adding);
  for (std::size_t k = 0; k < w.size(); ++k) {
    sum.add(static_cast<double>(numeric::Bf16::value(w[k])) *
            static_cast<double>(numeric::Bf16::value(x[k])));
  }
  return sum.result();
}

}  // namespace tilestep::moe_routing
