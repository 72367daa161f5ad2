#pragma once

/// \file
/// CUDA's header of this name, for sources under emulation ("Cooperative Groups", "inclusive_scan
/// and exclusive_scan"). For tiles and coalesced groups; values are put together in the order of
/// ranks.

#include "kernels/base/simt/toolkit/cooperative_groups/operators.hpp"

namespace cooperative_groups {
inline namespace tilestep_toolkit {

/// The values of ranks 0 … the thread's own, put together.
template <class Group, class T, class Operator>
T inclusive_scan(const Group& group, T value, Operator op, Location at = Location::current()) {
  for (unsigned step = 1; step < group.size(); step *= 2) {
    const T lower = group.shfl_up(value, step, at);
    if (group.thread_rank() >= step) value = op(value, lower);
  }
  return value;
}
template <class Group, class T>
T inclusive_scan(const Group& group, T value, Location at = Location::current()) {
  return inclusive_scan(group, value, plus<T>(), at);
}
/// The same without the thread's own value. Rank 0 gets T(): CUDA says so for plus, and nothing for
/// other operators.
template <class Group, class T, class Operator>
requires std::is_invocable_v<Operator, T, T> T exclusive_scan(const Group& group, T value,
                                                              Operator op,
                                                              Location at = Location::current()) {
  const T all = inclusive_scan(group, value, op, at);
  const T lower = group.shfl_up(all, 1, at);
  return group.thread_rank() == 0 ? T() : lower;
}
template <class Group, class T>
T exclusive_scan(const Group& group, T value, Location at = Location::current()) {
  return exclusive_scan(group, value, plus<T>(), at);
}

}  // namespace tilestep_toolkit
}  // namespace cooperative_groups
