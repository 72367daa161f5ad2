#pragma once

#include <string>
#include <vector>

namespace tilestep::simt::cuda {

/// Where CUPTI may lie, in the order tried: $TILESTEP_CUPTI (the library or its folder), what the
/// loader finds by itself (LD_LIBRARY_PATH), the CUDA Toolkit, and the folders of NVIDIA's Python
/// packages.
std::vector<std::string> cupti_candidates();

/// Loads CUPTI; the handle stays open for the life of the process, since CUPTI does not allow to be
/// unloaded. Throws Error (unavailable) saying where it was looked for and how to point to it.
void* open_cupti();

}  // namespace tilestep::simt::cuda
