#pragma once

#include <array>
#include <string_view>

#include "kernels/base/lab/names.hpp"

namespace tilestep::lab {

/// A whole program's mistakes (`tilestep inspect`), and the ways in which it is slow. The last three are no mistakes.
enum class FindingKind {
  bounds,          ///< a thread leaves its array
  host_pointer,    ///< a kernel is given the host's memory
  device_pointer,  ///< the host uses the device's
  copy_direction,  ///< a copy whose kind or order of arguments is wrong
  copy_bytes,      ///< a copy of too few or too many bytes
  uninitialized,   ///< memory is read that nobody wrote
  coverage,        ///< a grid too small for its array
  launch,          ///< a launch that is refused
  leak,            ///< memory that is never freed
  free,            ///< memory that is freed twice, or is none
  barrier,         ///< threads that wait for each other in vain
  shared_race,     ///< threads of a block that use one place, and nothing orders them
  global_race,     ///< the same in global memory
  order,           ///< results that depend on the order of threads
  crash,           ///< the program ended by a signal, an assertion or its time
  coalescing,      ///< requests that move more sectors than they need
  bank_conflict,   ///< requests of shared memory that take more turns than they need
  divergence,      ///< branches that split warps
};
constexpr auto names_of(FindingKind) {
  return std::to_array<std::string_view>(
      {"bounds", "host_pointer", "device_pointer", "copy_direction", "copy_bytes", "uninitialized",
       "coverage", "launch", "leak", "free", "barrier", "shared_race", "global_race", "order",
       "crash", "coalescing", "bank_conflict", "divergence"});
}
constexpr bool is_mistake(FindingKind kind) {
  return kind < FindingKind::coalescing;
}

}  // namespace tilestep::lab
