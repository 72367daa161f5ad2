#pragma once

#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>

#include "kernels/base/simt/backends.hpp"

namespace tilestep::tests {

/// What tests of kernels run on: the emulation, or with TILESTEP_TEST_DEVICE=cuda this machine's GPU, whose orders are
/// its own. So compute-sanitizer can look on while kernels are compared with their references:
///
///     TILESTEP_TEST_DEVICE=cuda compute-sanitizer --tool racecheck ./kernels_test "Timed decode*"
///
/// Throws Error (unavailable) where there is no GPU.
inline std::unique_ptr<simt::Device> device_under_test(std::span<const simt::KernelEntry> table,
                                                       const simt::EmulationOptions& options = {}) {
  const char* wanted = std::getenv("TILESTEP_TEST_DEVICE");
  if (wanted != nullptr && std::string_view(wanted) == "cuda") return simt::make_cuda_device();
  return simt::make_emulated_device(table, options);
}

}  // namespace tilestep::tests
