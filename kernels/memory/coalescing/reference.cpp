#include "kernels/memory/coalescing/reference.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace tilestep::coalescing {
namespace {

/// Where each of 2^k places goes in one pass of the permutation: the kernel's definition in whole
/// numbers, with remainders and quotients where the kernel masks and shifts bits.
std::vector<std::uint32_t> permutation_table(const PatternShape& shape) {
  const std::uint64_t size = std::uint64_t{shape.mask} + 1;
  const std::uint64_t divisor = std::uint64_t{1} << shape.shift;
  std::vector<std::uint32_t> table(size);
  for (std::uint64_t from = 0; from < size; ++from) {
    std::uint64_t to = from;
    for (std::uint64_t round = 0; round < 3; ++round) {
      to = (to * (shape.multiplier % size) + round) % size;
      to ^= to / divisor;
    }
    table[from] = static_cast<std::uint32_t>(to);
  }
  return table;
}

std::vector<std::uint32_t> lane_table(const PatternShape& shape) {
  std::vector<std::uint32_t> table(kLanes);
  std::uint32_t at = shape.lane_addend;
  for (std::uint32_t& lane : table) {
    lane = at % kLanes;
    at += shape.lane_multiplier;
  }
  return table;
}

}  // namespace

IndexWalk::IndexWalk(const PatternShape& shape) : shape_(shape) {
  if (shape.pattern == Pattern::permuted) order_ = permutation_table(shape);
  if (shape.pattern == Pattern::permuted_warp) order_ = lane_table(shape);
}

std::int64_t IndexWalk::next() {
  const bool first = ++thread_ == 0;
  switch (shape_.pattern) {
    case Pattern::sequential:
    case Pattern::matrix_row:
      return first ? 0 : ++index_;
    case Pattern::strided:
      return first ? 0 : index_ += shape_.stride;
    case Pattern::offset:
      return first ? index_ = shape_.offset : ++index_;
    case Pattern::reversed:
      return first ? index_ = shape_.elements - 1 : --index_;
    case Pattern::permuted_warp: {
      const auto lane = static_cast<std::size_t>(thread_ % kLanes);
      if (lane == 0 && !first) index_ += kLanes;
      return index_ + order_[lane];
    }
    case Pattern::permuted: {
      std::uint32_t at = order_[thread_];
      while (at >= shape_.elements) at = order_[at];
      return at;
    }
    case Pattern::broadcast:
      if (!first && thread_ % kLanes == 0) ++index_;
      return index_;
    case Pattern::aos:
      return first ? index_ = 1 : index_ += shape_.fields;
    case Pattern::soa:
      return first ? index_ = shape_.pitch : ++index_;
    case Pattern::custom: {
      const auto lane = static_cast<std::size_t>(thread_ % kLanes);
      if (lane == 0 && !first) index_ += kLaneElements;
      return index_ + shape_.lane_element[lane];
    }
    case Pattern::matrix_column: {
      const std::int64_t index = row_ * shape_.columns + column_;
      if (++row_ == shape_.rows) {
        row_ = 0;
        ++column_;
      }
      return index;
    }
  }
  assert(false);
  return 0;
}

std::int64_t wrong_elements(const PatternShape& shape, std::int64_t threads,
                            std::span<const unsigned char> in, std::span<const unsigned char> out,
                            unsigned char before) {
  const bool load = shape.access == Access::load;
  const auto size = static_cast<std::size_t>(shape.element_bytes);
  const std::int64_t count = load ? shape.elements : shape.array_elements;
  std::vector<unsigned char> expected(static_cast<std::size_t>(count) * size, before);
  assert(out.size() >= expected.size());
  IndexWalk walk(shape);
  for (std::int64_t thread = 0; thread < threads; ++thread) {
    const std::int64_t index = walk.next();
    const std::int64_t to = load ? thread : index;
    const std::int64_t from = load ? index : thread;
    std::memcpy(&expected[static_cast<std::size_t>(to) * size],
                &in[static_cast<std::size_t>(from) * size], size);
  }
  if (std::memcmp(out.data(), expected.data(), expected.size()) == 0) return 0;
  const auto same = [&](const unsigned char* a, const unsigned char* b) {
    return std::memcmp(a, b, size) == 0;
  };
  const bool any_lane = !load && shape.pattern == Pattern::broadcast;
  std::int64_t wrong = 0;
  for (std::size_t at = 0; at < expected.size() / size; ++at) {
    bool right = same(&out[at * size], &expected[at * size]);
    // Which of the lanes that store to one place wins is not defined (CUDA C++ Programming Guide).
    const auto end = std::min<std::size_t>((at + 1) * kLanes, static_cast<std::size_t>(threads));
    for (std::size_t lane = at * kLanes; any_lane && !right && lane < end; ++lane) {
      right = same(&out[at * size], &in[lane * size]);
    }
    if (!right) ++wrong;
  }
  return wrong;
}

RequestTotals reference_cost(const PatternShape& shape, std::int64_t max_warps) {
  IndexWalk walk(shape);
  RequestTotals cost;
  const std::int64_t threads = std::min(shape.elements, max_warps * kLanes);
  for (std::int64_t first = 0; first < threads; first += kLanes) {
    WarpRequest request;
    for (int lane = 0; lane < kLanes && first + lane < threads; ++lane) {
      request.active_lanes |= 1U << lane;
      request.byte_offset[lane] = walk.next() * shape.element_bytes;
    }
    cost.add(request_stats(request, shape.element_bytes));
  }
  return cost;
}

}  // namespace tilestep::coalescing
