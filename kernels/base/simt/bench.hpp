#pragma once

#include <string>
#include <vector>

namespace tilestep::simt {

/// How fast the emulator is on this machine.
struct EmulatorRate {
  std::string id;    ///< "threads" or "gemm"
  std::string what;  ///< one sentence on what ran
  double value = 0;  ///< best of several runs
  std::string unit;  ///< "million threads/s" or "GFLOP/s"
};

/// Runs a kernel without barriers and a 16×16 shared-memory GEMM under emulation, on all cores.
/// Takes about two seconds. Throws Error if a result is wrong.
std::vector<EmulatorRate> measure_emulator();

}  // namespace tilestep::simt
