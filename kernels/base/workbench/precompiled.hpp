#pragma once

#include <string>
#include <vector>

#include "kernels/base/workbench/job.hpp"

namespace tilestep::workbench {

/// Flags by which the job's compiler takes kernel_headers.hpp as it was precompiled with the job's other flags: for g++
/// and clang++. Made on first use, some tens of megabytes below cache_folder(); the newest few are kept. Empty where it
/// cannot be made, on a full disk say, or is not wanted: everything compiles without it too, a second later. Throws Cancelled.
std::vector<std::string> precompiled_headers(const Job& job);

/// "no" of this variable: none is to be made. Else the folder that they are in, in place of the cache's: one for many caches.
inline constexpr const char* kPrecompiledVariable = "TILESTEP_PRECOMPILED";

}  // namespace tilestep::workbench
