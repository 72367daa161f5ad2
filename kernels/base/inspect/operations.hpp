#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tilestep::inspect {

/// Floating-point operations of a run of code: additions, subtractions, multiplications, divisions and roots; an FMA is two.
/// Calls of exp, sin and their like are none, as a GPU's counters have it.
struct Operations {
  std::uint32_t fp32 = 0, fp64 = 0;
};

/// By the offset in the module at which its hook returns (lockstep.hpp); none where objdump (binutils) is missing. The source is
/// compiled for the CPU without optimization, so that each operation of the source is an instruction.
std::map<std::uint64_t, Operations> operations_of(const std::string& module);
/// The same of what `objdump -d --no-show-raw-insn` prints.
std::map<std::uint64_t, Operations> read_operations(std::string_view disassembly);

}  // namespace tilestep::inspect
