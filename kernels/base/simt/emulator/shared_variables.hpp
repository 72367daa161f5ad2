#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tilestep::simt::emulated {

/// A `__shared__` variable of an edited source, where the calling OS thread has it.
struct SharedVariable {
  std::string name;  ///< as it is written: "tile"; empty: none of the source's
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
};

/// Reads from the module `file`, which `inside` lies in, which variables its kernels have: `__shared__` ones are watched
/// from now on by shared_races.hpp, `__device__` ones by global_watch.hpp. A module without a table of symbols has none.
void know_variables(const std::string& file, const void* inside);
/// The `__shared__` ones of the module that was read last. `seen`, 0 at first, says which that was; false: the same as
/// then.
bool shared_variables(std::uint64_t& seen, std::vector<SharedVariable>& variables);

}  // namespace tilestep::simt::emulated
